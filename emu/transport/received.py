"""How a responder behaves, and what it says of a receive that was used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from emu.frame import Frame
from emu.transport.requester_config import check_limits
from emu.transport.wc import WcStatus
from emu.transport.work import RecvWqe

RNR_TIMER_CODE = 31  # the highest


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponderConfig:
    """How a responder behaves: the RNR timer it asks for, how many READs and atomics it may owe at once.

    Raises VerbsError for what no queue pair can be.
    """

    path_mtu_bytes: int
    min_rnr_timer: int = 12  # code: 0.64 ms
    max_dest_rd_atomic: int = 16
    hold_packets: int = 0  # that come early and wait; 0: none do, the sender goes back to the gap
    end_to_end_credits: bool = False  # whether acknowledgements say how many receives there are

    def __post_init__(self) -> None:
        check_limits(
            ("min_rnr_timer", self.min_rnr_timer, RNR_TIMER_CODE), ("max_dest_rd_atomic", self.max_dest_rd_atomic, 255)
        )


class Received(NamedTuple):
    """A receive that was used: what its completion says."""

    wqe: RecvWqe
    status: WcStatus
    byte_len: int
    imm_data: int | None = None
    invalidated: int | None = None
    is_write: bool = False
    solicited: bool = False
    frame: Frame | None = None  # a datagram's, which says who sent it
