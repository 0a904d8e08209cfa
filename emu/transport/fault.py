"""What can be wrong with a packet of a SEND, or with the receive that it goes to."""

from __future__ import annotations

from emu.frame import Frame
from emu.transport.memory import MemoryTable
from emu.transport.place import ENDS, INVALIDATES, STARTS
from emu.transport.wc import WcStatus
from emu.transport.work import RecvWqe


def fault_of(frame: Frame, place: int, wqe: RecvWqe, filled: int, mtu_bytes: int, memory: MemoryTable) -> WcStatus:
    """The status that the receive, `filled` so far, ends with for this; SUCCESS: nothing is wrong."""
    length, ends = len(frame.payload), place & ENDS
    if filled + length > wqe.sink.length:
        return WcStatus.LOC_LEN_ERR
    wrong_length = length > mtu_bytes if ends else length != mtu_bytes
    if wrong_length or (ends and not place & STARTS and not length):
        return WcStatus.LOC_QP_OP_ERR
    if not wqe.sink.region.is_known and length:
        return WcStatus.LOC_PROT_ERR
    if place & INVALIDATES and not (frame.extension and memory.may_revoke(frame.extension[0])):
        return WcStatus.REM_INV_REQ_ERR
    return WcStatus.SUCCESS
