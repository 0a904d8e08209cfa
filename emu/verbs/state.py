"""Queue pair types, states and legal moves (IBTA vol. 1, 10.3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from emu.addresses import Address


class QPType(IntEnum):
    """`enum ibv_qp_type`."""

    RC = 2
    UC = 3
    UD = 4


class QPState(IntEnum):
    """`enum ibv_qp_state`."""

    RESET = 0
    INIT = 1
    RTR = 2  # ready to receive
    RTS = 3  # ready to send
    SQD = 4  # the send queue drains
    SQE = 5  # an error of the send queue (not RC)
    ERR = 6


MOVES: dict[QPState, frozenset[QPState]] = {
    QPState.RESET: frozenset((QPState.INIT,)),
    QPState.INIT: frozenset((QPState.INIT, QPState.RTR)),
    QPState.RTR: frozenset((QPState.RTS,)),
    QPState.RTS: frozenset((QPState.RTS, QPState.SQD)),
    QPState.SQD: frozenset((QPState.RTS, QPState.SQD)),
    QPState.SQE: frozenset((QPState.RTS,)),
    QPState.ERR: frozenset(),
}
"""Where `ibv_modify_qp` may go from each state, besides RESET and ERR, which are always allowed."""


def may_move(here: QPState, there: QPState) -> bool:
    """Whether a queue pair in state `here` may be told to go `there`."""
    return there in (QPState.RESET, QPState.ERR) or there in MOVES[here]


@dataclass(frozen=True, slots=True, kw_only=True)
class QPAttr:
    """`struct ibv_qp_attr`, as far as it is used. What is None stays as the context has it."""

    dest: Address | None = None  # to RTR, of connected types
    dest_qp_num: int | None = None
    rq_psn: int | None = None  # 0 unless given
    sq_psn: int | None = None
    qkey: int | None = None  # of datagrams, at INIT
    path_mtu_bytes: int | None = None
    min_rnr_timer: int | None = None
    max_dest_rd_atomic: int | None = None
    timeout: int | None = None  # code: 4.096 us x 2^code
    retry_cnt: int | None = None
    rnr_retry: int | None = None
    max_rd_atomic: int | None = None
