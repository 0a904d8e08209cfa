"""What a NIC is told when it is built: how long its legs take, and its part in congestion control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from emu.devices.queue_pair import RateMaker


@dataclass(frozen=True, slots=True, kw_only=True)
class NicTiming:
    """The legs that a message spends in NICs, in picoseconds."""

    post_ps: int  # from posting a work request to its first bit being ready to leave
    receive_ps: int  # from a frame's last bit in to the transport acting on it
    ack_turnaround_ps: int  # from there to the acknowledgement being ready to leave
    delivery_ps: int  # from there to the data being visible in memory
    cqe_ps: int  # from an acknowledgement taken to the CQE being seen


class Congestion(NamedTuple):
    """A NIC's part in congestion control."""

    make_rate: RateMaker  # of a new flow
    min_notice_interval_ps: int  # between the CNPs of one flow
