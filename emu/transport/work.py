"""Work requests as a NIC holds them: what to send and from where, what may be received and to where.

Opcodes and flags have libibverbs' names and values (`enum ibv_wr_opcode`, `enum ibv_send_flags`).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum, IntFlag
from typing import Protocol

from emu import opcodes
from emu.addresses import Address
from emu.frame import Buffer, Message


class WROpcode(IntEnum):
    """`enum ibv_wr_opcode`."""

    RDMA_WRITE = 0
    RDMA_WRITE_WITH_IMM = 1
    SEND = 2
    SEND_WITH_IMM = 3
    RDMA_READ = 4
    ATOMIC_CMP_AND_SWP = 5
    ATOMIC_FETCH_AND_ADD = 6
    SEND_WITH_INV = 9


class SendFlags(IntFlag):
    """`enum ibv_send_flags`."""

    NONE = 0
    FENCE = 1
    SIGNALED = 2
    SOLICITED = 4
    INLINE = 8


FENCE, SIGNALED, SOLICITED, INLINE = (
    int(flag) for flag in (SendFlags.FENCE, SendFlags.SIGNALED, SendFlags.SOLICITED, SendFlags.INLINE)
)


ATOMICS = (WROpcode.ATOMIC_CMP_AND_SWP, WROpcode.ATOMIC_FETCH_AND_ADD)
ATOMIC_BYTES = 8
FETCHES = (WROpcode.RDMA_READ, *ATOMICS)
"""What brings something back, and so takes of the read depth."""
CONSUMES_RECEIVE = frozenset(
    (WROpcode.SEND, WROpcode.SEND_WITH_IMM, WROpcode.SEND_WITH_INV, WROpcode.RDMA_WRITE_WITH_IMM)
)
WITH_IMMEDIATE = (WROpcode.SEND_WITH_IMM, WROpcode.RDMA_WRITE_WITH_IMM)
WRITES = (WROpcode.RDMA_WRITE, WROpcode.RDMA_WRITE_WITH_IMM)

Segments = tuple[int, int, int, int]
# The packets of each operation's message, by their place: first, middle, last, only.
SEGMENTS: dict[int, Segments] = {
    WROpcode.RDMA_WRITE: (opcodes.WRITE_FIRST, opcodes.WRITE_MIDDLE, opcodes.WRITE_LAST, opcodes.WRITE_ONLY),
    WROpcode.RDMA_WRITE_WITH_IMM: (
        opcodes.WRITE_FIRST,
        opcodes.WRITE_MIDDLE,
        opcodes.WRITE_LAST_WITH_IMMEDIATE,
        opcodes.WRITE_ONLY_WITH_IMMEDIATE,
    ),
    WROpcode.SEND: (opcodes.SEND_FIRST, opcodes.SEND_MIDDLE, opcodes.SEND_LAST, opcodes.SEND_ONLY),
    WROpcode.SEND_WITH_IMM: (
        opcodes.SEND_FIRST,
        opcodes.SEND_MIDDLE,
        opcodes.SEND_LAST_WITH_IMMEDIATE,
        opcodes.SEND_ONLY_WITH_IMMEDIATE,
    ),
    WROpcode.SEND_WITH_INV: (
        opcodes.SEND_FIRST,
        opcodes.SEND_MIDDLE,
        opcodes.SEND_LAST_WITH_INVALIDATE,
        opcodes.SEND_ONLY_WITH_INVALIDATE,
    ),
}


class Gather:
    """Bytes that lie in several places, read as they are sent; slices are copies."""

    __slots__ = ("_pieces", "length")

    def __init__(self, pieces: Sequence[memoryview]) -> None:
        self._pieces = pieces
        self.length = sum(len(piece) for piece in pieces)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, part: slice) -> bytes:
        start, stop, _ = part.indices(self.length)
        taken, at = [], 0
        for piece in self._pieces:
            if at + len(piece) > start and at < stop:
                taken.append(bytes(piece[max(0, start - at) : stop - at]))
            at += len(piece)
        return b"".join(taken)


class Known(Protocol):
    """A region of memory, or several: whether their keys are known still."""

    @property
    def is_known(self) -> bool: ...


class _Nowhere:
    is_known = True


class All:
    """Several regions as one."""

    __slots__ = ("_regions",)

    def __init__(self, regions: Sequence[Known]) -> None:
        self._regions = regions

    @property
    def is_known(self) -> bool:
        """Whether every one is."""
        return all(region.is_known for region in self._regions)


Places = tuple[tuple[int, int], ...]
"""Address and length of each piece of memory."""


class Scatter:
    """Places that received bytes go to, one after the other; `region`: where they lie, which may go before they do."""

    __slots__ = ("_addrs", "_pieces", "length", "region")

    def __init__(self, pieces: Sequence[memoryview], addrs: Sequence[int] = (), regions: Sequence[Known] = ()) -> None:
        self._pieces = pieces
        self._addrs = addrs  # of each, as far as somebody wants to know
        self.region: Known = _NOWHERE if not regions else regions[0] if len(regions) == 1 else All(regions)
        self.length = sum(len(piece) for piece in pieces)

    def write(self, offset: int, data: Buffer) -> None:
        """Put bytes at `offset`; the caller has checked that they fit."""
        done, at = 0, 0
        for piece in self._pieces:
            start = offset + done - at
            if done < len(data) and 0 <= start < len(piece):
                length = min(len(piece) - start, len(data) - done)
                piece[start : start + length] = data[done : done + length]
                done += length
            at += len(piece)

    def places(self, offset: int, length: int) -> Places:
        """Where so many bytes from `offset` on lie."""
        found, at, end = [], 0, offset + length
        for addr, piece in zip(self._addrs, self._pieces, strict=False):
            start, stop = max(offset, at), min(end, at + len(piece))
            if start < stop:
                found.append((addr + start - at, stop - start))
            at += len(piece)
        return tuple(found)


_NOWHERE = _Nowhere()
NOWHERE = Scatter(())


class Payload(Protocol):
    """What a message's bytes are read from: anything with a length that can be sliced."""

    def __len__(self) -> int: ...
    def __getitem__(self, part: slice, /) -> Buffer: ...


class Target(Protocol):
    """Where a datagram goes."""

    @property
    def address(self) -> Address: ...
    @property
    def priority(self) -> int | None: ...
    @property
    def remote_qpn(self) -> int: ...
    @property
    def remote_qkey(self) -> int: ...


class SendWqe:
    """A work request in the send queue: its bytes, where they go, and the packets it takes."""

    __slots__ = (
        "available",
        "compare_add",
        "fence",
        "first",
        "imm_data",
        "is_inline",
        "message",
        "opcode",
        "packets",
        "payload",
        "places",
        "received",
        "remote_addr",
        "rkey",
        "segments",
        "signaled",
        "sink",
        "size_bytes",
        "solicited",
        "special",
        "ssn",
        "swap",
        "target",
        "wr_id",
    )

    def __init__(
        self,
        message: Message,
        wr_id: int,
        payload: Payload,
        remote_addr: int = 0,
        rkey: int = 0,
        signaled: bool = True,
        *,
        opcode: WROpcode = WROpcode.RDMA_WRITE,
        sink: Scatter = NOWHERE,
        imm_data: int = 0,
        compare_add: int = 0,
        swap: int = 0,
        flags: SendFlags = SendFlags.NONE,
    ) -> None:
        """`imm_data` is the immediate, or the key that a SEND_WITH_INV makes invalid."""
        self.message = message
        self.wr_id = wr_id
        self.opcode = opcode
        self.payload = payload
        self.remote_addr = remote_addr
        self.rkey = rkey
        self.signaled = signaled
        self.sink = sink  # where what comes back goes
        self.imm_data = imm_data
        self.compare_add = compare_add
        self.swap = swap
        bits = int(flags)  # an enumeration's own arithmetic takes ten times as long
        self.fence, self.solicited, self.is_inline = bits & FENCE != 0, bits & SOLICITED != 0, bits & INLINE != 0
        self.segments = SEGMENTS.get(opcode)  # None: one packet asks, others bring the answer
        self.size_bytes = len(payload) if self.segments is not None else sink.length
        # Whether it may have to wait for something other than the window.
        self.special = self.fence or self.segments is None or opcode in CONSUMES_RECEIVE
        self.first = self.packets = 0  # once queued: the sequence number of its first packet, and how many
        self.received = self.ssn = 0  # packets of what comes back; which message of its queue pair it is, from 1
        self.target: Target | None = None  # of a datagram
        self.places: tuple[tuple[int, int, int], ...] = ()  # address, length, lkey of each piece of its memory
        self.available = -1  # of its bytes, those that the NIC has so far; -1: all


class RecvWqe:
    """A work request in a receive queue: where one message may go."""

    __slots__ = ("sink", "wr_id")

    def __init__(self, wr_id: int, sink: Scatter) -> None:
        self.wr_id = wr_id
        self.sink = sink
