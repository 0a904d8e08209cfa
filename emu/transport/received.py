"""How a responder behaves, and what it says of a receive that was used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from emu.frame import Frame
from emu.transport.wc import WcStatus
from emu.transport.work import RecvWqe


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponderConfig:
    """How a responder behaves: the RNR timer it asks for, how many READs and atomics it may owe at once."""

    path_mtu_bytes: int
    min_rnr_timer: int = 12  # code: 0.64 ms
    max_dest_rd_atomic: int = 16
    hold_packets: int = 0  # that come early and wait; 0: none do, the sender goes back to the gap
    end_to_end_credits: bool = False  # whether acknowledgements say how many receives there are


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
