"""What mlx5 means by data that crosses a bus: told by size and content alone, so it is a guess.

Any bytes are taken. emu/wireshark/emu.lua guesses the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from emu.mlx5.cqe import CQE, CQE_BYTES, CqeOpcode
from emu.mlx5.doorbell import DOORBELL_BYTES
from emu.mlx5.segments import (
    CONTROL,
    DS_LIMIT,
    FLAGS,
    MASKED,
    MODELED,
    OPCODES,
    SEGMENT_BYTES,
    WQEBB_BYTES,
    blocks_of,
)

CQE_NAMES = {
    CqeOpcode.REQUESTER: "requester",
    CqeOpcode.RESPONDER_WRITE_IMM: "responder WRITE_IMM",
    CqeOpcode.RESPONDER_SEND: "responder SEND",
    CqeOpcode.RESPONDER_SEND_IMM: "responder SEND_IMM",
    CqeOpcode.RESPONDER_SEND_INVAL: "responder SEND_INVAL",
    CqeOpcode.RESIZE: "resize",
    CqeOpcode.NO_PACKET: "no packet",
    CqeOpcode.REQUESTER_ERROR: "requester error",
    CqeOpcode.RESPONDER_ERROR: "responder error",
}
_NAMES = {int(opcode): name for opcode, name in CQE_NAMES.items()}
_RESERVED_OF_CQE = bytes(17)  # its first bytes, in what we write
_FORMAT_OF_CQE = 0b1100
_UNUSED_FLAG = 0x10  # between fence and CQ update
_LOW_24 = 0xFFFFFF

assert not FLAGS & _UNUSED_FLAG


def meaning(data: bytes, *, writes: bool) -> str:
    """`doorbell QP 0x11 producer 1`, `RDMA_WRITE QP 0x11 WQE 0`, `CQE ...`; empty where it is none of these.

    `writes`: it is a write's data, not what was read: only those are doorbells and CQEs.
    """
    if writes and len(data) == DOORBELL_BYTES:
        return _doorbell(data)
    said = _cqe(data) if writes and len(data) == CQE_BYTES else ""
    if said or len(data) % WQEBB_BYTES:
        return said
    return ", ".join(_wqes(data))


def _doorbell(data: bytes) -> str:
    if data[7]:
        head = _wqe_head(data)
        return f"doorbell {head}" if head else ""
    qp_num, counter = int.from_bytes(data[4:7], "big"), int.from_bytes(data[1:3], "big")
    if data[0] or data[3] or not qp_num:
        return ""
    return f"doorbell QP 0x{qp_num:x} producer {counter}"


def _cqe(data: bytes) -> str:
    *_, sent, counter, _, last = CQE.unpack(data)
    name, qp_num = _NAMES.get(last >> 4), sent & _LOW_24
    if not data.startswith(_RESERVED_OF_CQE) or name is None or last & _FORMAT_OF_CQE or not qp_num:
        return ""
    return f"CQE {name} QP 0x{qp_num:x} WQE {counter}"


def _wqes(data: bytes) -> Iterator[str]:
    """Those that begin it, one after the other."""
    place = 0
    while place < len(data):
        head, ds = _wqe_head(data[place : place + DOORBELL_BYTES]), data[place + 7]
        rest = data[place : place + CONTROL.size]
        if not head or place + ds * SEGMENT_BYTES > len(data) or rest[8] or rest[11] & _UNUSED_FLAG:
            return
        yield head
        place += blocks_of(ds) * WQEBB_BYTES


def _wqe_head(data: bytes) -> str:
    """Its first 8 bytes, if they could be a WQE's."""
    opcode, ds = OPCODES.get(data[3]), data[7]
    has_opmod = opcode in MASKED or opcode not in MODELED
    if opcode is None or not 0 < ds < DS_LIMIT or (data[0] and not has_opmod):
        return ""
    return f"{opcode.name} QP 0x{int.from_bytes(data[4:7], 'big'):x} WQE {int.from_bytes(data[1:3], 'big')}"
