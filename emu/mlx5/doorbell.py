"""How a NIC is told of WQEs: doorbell register and BlueFlame in a UAR page, the doorbell record; all big-endian."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from emu.errors import InvariantBroken, WireError
from emu.frame import Buffer
from emu.mlx5.segments import blocks_of

UAR_BYTES = 4096
BLUEFLAME_OFFSET = 0x800
BLUEFLAME_BUFFER_BYTES = 256  # half of the register's usual 512: the two buffers are used in turn
DOORBELL_BYTES = 8
RECORD_BYTES = 8
SEND_COUNTER_OFFSET = 4  # in the record; the receive counter is at 0

WORDS = Struct("!II")
COUNTER = Struct("!I")
COUNTER_MASK = 0xFFFF
QP_NUM_LIMIT = 1 << 24


class Doorbell(NamedTuple):
    """WQEBBs posted so far (low 16 bits), without a WQE: what IBGDA writes."""

    producer: int
    qp_num: int


class WqeHead(NamedTuple):
    """The first 8 bytes of a WQE: what BlueFlame, or libmlx5's plain doorbell, begins with. Its opcode and DS are not
    checked."""

    wqe_index: int
    qp_num: int
    opcode: int
    ds: int

    @property
    def producer(self) -> int:
        """WQEBBs posted once this WQE is (low 16 bits)."""
        return self.wqe_index + blocks_of(self.ds) & COUNTER_MASK


def encode_doorbell(producer: int, qp_num: int) -> bytes:
    """8 bytes {producer << 8, QPN << 8}, of `producer` the low 16 bits. Raises InvariantBroken for no QPN."""
    if not 0 <= qp_num < QP_NUM_LIMIT:
        raise InvariantBroken(f"QPN {qp_num}: it has 24 bits")
    return WORDS.pack((producer & COUNTER_MASK) << 8, qp_num << 8)


def decode_doorbell(data: Buffer) -> Doorbell:
    """What 8 bytes say that are no WQE. Raises WireError, also for a WQE's first 8."""
    if len(data) != DOORBELL_BYTES:
        raise WireError(f"{len(data)} B are no doorbell: it has {DOORBELL_BYTES}")
    found = decode(data)
    if isinstance(found, WqeHead):
        raise WireError(f"opcode 0x{found.opcode:02x} and DS {found.ds}: a WQE's first bytes, no doorbell of its own")
    return found


def decode(data: Buffer) -> Doorbell | WqeHead:
    """What was written to a doorbell register or BlueFlame buffer: a doorbell has neither opcode nor DS, any WQE has a
    DS. Raises WireError."""
    if len(data) < DOORBELL_BYTES:
        raise WireError(f"{len(data)} B are no doorbell: it has {DOORBELL_BYTES}")
    first, second = WORDS.unpack_from(data)
    opcode, ds = first & 0xFF, second & 0xFF
    index, qp_num = first >> 8 & COUNTER_MASK, second >> 8
    if ds:
        return WqeHead(index, qp_num, opcode, ds)
    if opcode or first >> 24:
        raise WireError(f"opcode 0x{opcode:02x} without DS: neither doorbell nor WQE")
    return Doorbell(index, qp_num)


def encode_counter(counter: int) -> bytes:
    """One word of a doorbell record: the low 16 bits of the counter."""
    return COUNTER.pack(counter & COUNTER_MASK)


def encode_record(send: int, receive: int = 0) -> bytes:
    """A whole doorbell record."""
    return WORDS.pack(receive & COUNTER_MASK, send & COUNTER_MASK)


def decode_record(data: Buffer) -> tuple[int, int]:
    """Send and receive counter of a doorbell record, 16 bits each. Raises WireError."""
    if len(data) != RECORD_BYTES:
        raise WireError(f"{len(data)} B are no doorbell record: it has {RECORD_BYTES}")
    receive, send = WORDS.unpack(data)
    if (receive | send) & ~COUNTER_MASK:
        raise WireError(f"a doorbell record's counters have 16 bits: 0x{receive:08x} 0x{send:08x}")
    return send, receive


class BlueFlame:
    """The two buffers of one BlueFlame register, in turn."""

    __slots__ = ("_offset",)

    def __init__(self) -> None:
        self._offset = BLUEFLAME_OFFSET

    def next_offset(self) -> int:
        """Where in the UAR page the next doorbell or WQE goes."""
        offset = self._offset
        self._offset ^= BLUEFLAME_BUFFER_BYTES
        return offset
