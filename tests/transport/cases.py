"""What each capture's frames do not say by themselves, and what Linux 6.1's rdma_rxe driver does otherwise than we."""

from __future__ import annotations

from dataclasses import dataclass

from emu import opcodes
from emu.transport.psn import expand
from emu.transport.wc import WcStatus
from tests.transport.captured import Direction, Seen, Work, directions
from tests.tree import ROOT

CAPTURES = ROOT / "tests" / "data" / "captures"
DIFFERENCES = (
    # what, in which capture, Linux 6.1, here
    ("a SEND longer than the receive", "rc_nak_recv_too_small", "NAK 0x63", "NAK 0x61"),
    ("MigReq (M) of every frame", "all", "0", "1"),
    ("AckReq of datagrams to QP 1", "cm_rping", "1", "0"),
    ("ACK timer", "rc_loss_data", "ticks of 4 ms; progress does not restart it", "exact; progress restarts it"),
    ("a NAK 0x60 while sending again for one before", "rc_loss_data", "ignored: the timeout follows", "goes back"),
    ("ACKs of duplicates in a row", "rc_loss_data", "one each", "one each; a NIC merges those that wait to leave"),
)
TOO_LONG = (0x63, 0x61)


@dataclass(frozen=True)
class Case:
    """What a capture's frames do not say by themselves. `statuses` of work requests that fail, by their place."""

    direction: int = 0
    retry_cnt: int = 7
    lost: int = 0  # frames that were sent and not captured
    ours: int = 0  # frames that we send at a NAK which the driver ignored
    timeouts: int = 0
    is_answered: bool = True
    receive_from: int = 0  # the first frame that finds receives posted
    receive_bytes: int = 16_384
    min_rnr_timer: int = 12
    is_registered: bool = True
    ends_at: int | None = None  # where the registered memory ends
    changes: bool = False  # whether the application changes what is read between READs
    statuses: tuple[WcStatus, ...] = ()


CASES = {
    "cm_rping": [Case(), Case(1), Case(2), Case(3, changes=True)],
    "rc_atomic": [Case()],
    "rc_dscp26_ect": [Case()],
    "rc_ipv6": [Case()],
    "rc_loss_data": [Case(lost=23, ours=16, timeouts=8)],
    "rc_nak_bad_rkey": [Case(is_registered=False, statuses=(WcStatus.REM_ACCESS_ERR,))],
    "rc_nak_out_of_bounds": [Case(ends_at=0x15991000, statuses=(WcStatus.REM_ACCESS_ERR,))],
    "rc_nak_read_bad_rkey": [Case(is_registered=False, statuses=(WcStatus.REM_ACCESS_ERR,))],
    "rc_nak_recv_too_small": [Case(receive_bytes=64, statuses=(WcStatus.REM_OP_ERR,))],
    "rc_psn_wrap": [Case()],
    "rc_read": [Case()],
    "rc_rnr": [Case(receive_from=7, min_rnr_timer=24)],
    "rc_send": [Case()],
    "rc_send_imm": [Case()],
    "rc_timeout_blackhole": [Case(retry_cnt=2, timeouts=2, is_answered=False, statuses=(WcStatus.RETRY_EXC_ERR,))],
    "rc_write": [Case()],
    "rc_write_imm": [Case()],
    "uc_send_write": [Case()],
    "ud_send": [Case()],
}
ALL_CASES = [(name, case) for name, cases in CASES.items() for case in cases]


def id_of(value: object) -> str:
    return str(value.direction) if isinstance(value, Case) else str(value)


def load(name: str, case: Case) -> Direction:
    return directions(CAPTURES / f"rxe61__{name}.pcap")[case.direction]


def transport_of(direction: Direction) -> int:
    return direction.requests[0].frame.opcode & opcodes.TRANSPORT_MASK


def work_of(direction: Direction, seen: Seen) -> Work:
    number = expand(seen.frame.psn, direction.first_psn)
    return next(work for work in direction.works if work.first <= number < work.first + work.packets)


def as_ours(name: str, wire: bytes) -> bytes:
    """A captured frame with what we do otherwise, by choice, put in its place."""
    if name == "rc_nak_recv_too_small" and wire[0] == opcodes.ACKNOWLEDGE and wire[12] == TOO_LONG[0]:
        return wire[:12] + bytes([TOO_LONG[1]]) + wire[13:]
    if wire[0] & opcodes.TRANSPORT_MASK == opcodes.UD and wire[5:8] == b"\0\0\1":
        return wire[:8] + bytes([wire[8] & 0x7F]) + wire[9:]
    return wire
