"""The 16-byte segments that a send WQE is made of, and which of them each opcode has; all big-endian."""

from __future__ import annotations

from enum import IntEnum
from struct import Struct

SEGMENT_BYTES = 16
WQEBB_BYTES = 64
DS_LIMIT = 64  # the field has 6 bits

CONTROL = Struct("!BHBIBHBI")  # opmod, index, opcode, QPN and DS, signature, DCI stream, fm_ce_se, immediate
REMOTE = Struct("!QII")  # virtual address, rkey, reserved
DATA = Struct("!IIQ")  # byte count, lkey, address
INLINE = Struct("!I")  # byte count with bit 31 set; the bytes follow
ATOMIC = Struct("!QQ")  # swap or add, compare; of 8-byte masked fetch-and-add: add, field boundary
MASKED_4 = Struct("!IIII")  # swap, compare and their masks; of fetch-and-add: add, field boundary, reserved

INLINE_FLAG = 1 << 31
DATA_LIMIT_BYTES = 1 << 31  # 2 GiB, written as byte count 0

CE_ALWAYS = 0x08  # a CQE for this WQE
SOLICITED = 0x02
FENCE_SHIFT = 5
FLAGS = CE_ALWAYS | SOLICITED | 0b111 << FENCE_SHIFT

OPMOD_MASKED_4 = 0x08
OPMOD_MASKED_8 = 0x09


class WqeOpcode(IntEnum):
    """MLX5_OPCODE_*; not all of them can be encoded here."""

    NOP = 0x00
    SEND_INVAL = 0x01
    RDMA_WRITE = 0x08
    RDMA_WRITE_IMM = 0x09
    SEND = 0x0A
    SEND_IMM = 0x0B
    TSO = 0x0E
    RDMA_READ = 0x10
    ATOMIC_CS = 0x11
    ATOMIC_FA = 0x12
    ATOMIC_MASKED_CS = 0x14
    ATOMIC_MASKED_FA = 0x15
    FMR = 0x19
    LOCAL_INV = 0x1B
    DUMP = 0x23
    UMR = 0x25
    MMO = 0x2F


class Fence(IntEnum):
    """What a WQE waits for before it starts."""

    NONE = 0
    INITIATOR_SMALL = 1  # earlier local operations, such as UMR
    STRONG_ORDERING = 3
    FENCE = 4  # earlier READs and atomics: IBV_SEND_FENCE


NO_DATA = frozenset({WqeOpcode.NOP})
ATOMICS = frozenset({WqeOpcode.ATOMIC_CS, WqeOpcode.ATOMIC_FA, WqeOpcode.ATOMIC_MASKED_CS, WqeOpcode.ATOMIC_MASKED_FA})
MASKED = frozenset({WqeOpcode.ATOMIC_MASKED_CS, WqeOpcode.ATOMIC_MASKED_FA})
SENDS = frozenset({WqeOpcode.SEND, WqeOpcode.SEND_IMM, WqeOpcode.SEND_INVAL})
WRITES = frozenset({WqeOpcode.RDMA_WRITE, WqeOpcode.RDMA_WRITE_IMM})
MAY_INLINE = SENDS | WRITES
WITH_REMOTE = WRITES | ATOMICS | {WqeOpcode.RDMA_READ}
MODELED = SENDS | WITH_REMOTE | NO_DATA
OPCODES = {int(opcode): opcode for opcode in WqeOpcode}
FENCES = {int(fence): fence for fence in Fence}


def inline_segments(length: int) -> int:
    """Segments of `length` bytes that are in the WQE itself; of no bytes there is none."""
    return (INLINE.size + length + SEGMENT_BYTES - 1) // SEGMENT_BYTES if length else 0


def atomic_segments(opcode: WqeOpcode, operand_bytes: int) -> int:
    """Segments of an atomic's operands: two where each of 8 bytes has a mask."""
    return 2 if opcode is WqeOpcode.ATOMIC_MASKED_CS and operand_bytes == 8 else 1


def blocks_of(ds: int) -> int:
    """WQEBBs that `ds` segments take."""
    return (ds * SEGMENT_BYTES + WQEBB_BYTES - 1) // WQEBB_BYTES
