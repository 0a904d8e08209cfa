"""From a work request to the frame that carries one packet of it."""

from __future__ import annotations

from emu import opcodes
from emu.frame import Envelope, Frame
from emu.transport.psn import PSN_MASK
from emu.transport.work import WITH_IMMEDIATE, WRITES, SendWqe, WROpcode

FIRST, MIDDLE, LAST, ONLY = range(4)  # places in SEGMENTS' tuples


def segment_frame(envelope: Envelope, wqe: SendWqe, number: int, mtu_bytes: int, *, ask: bool, base: int = 0) -> Frame:
    """Packet `number` of a SEND or WRITE; `base` is the transport's part of the opcode (0: RC)."""
    index, last = number - wqe.first, wqe.packets - 1
    segments = wqe.segments
    assert segments is not None
    start = index * mtu_bytes
    payload = wqe.payload[start : start + mtu_bytes]
    place = (ONLY if last == 0 else LAST) if index == last else (FIRST if index == 0 else MIDDLE)
    reth = None
    if index == 0 and wqe.opcode in WRITES:
        reth = (wqe.remote_addr, wqe.rkey, wqe.size_bytes)
    frame = Frame(envelope, base | segments[place], number & PSN_MASK, payload, wqe.message, ask, reth)
    if index == last and wqe.special:
        if wqe.opcode in WITH_IMMEDIATE or wqe.opcode is WROpcode.SEND_WITH_INV:
            frame.extension = (wqe.imm_data,)
        frame.solicited = wqe.solicited
    return frame


def fetch_frame(envelope: Envelope, wqe: SendWqe, number: int, mtu_bytes: int) -> Frame:
    """What asks for a READ from packet `number` on, or for an atomic."""
    if wqe.opcode is WROpcode.RDMA_READ:
        done_bytes = (number - wqe.first) * mtu_bytes
        reth = (wqe.remote_addr + done_bytes, wqe.rkey, wqe.size_bytes - done_bytes)
        return Frame(envelope, opcodes.READ_REQUEST, number & PSN_MASK, b"", wqe.message, True, reth)
    swaps = wqe.opcode is WROpcode.ATOMIC_CMP_AND_SWP
    opcode = opcodes.COMPARE_SWAP if swaps else opcodes.FETCH_ADD
    frame = Frame(envelope, opcode, number & PSN_MASK, b"", wqe.message, True)
    operands = (wqe.swap, wqe.compare_add) if swaps else (wqe.compare_add, 0)
    frame.extension = (wqe.remote_addr, wqe.rkey, *operands)
    return frame
