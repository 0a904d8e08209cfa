"""The extended transport headers after BTH (IBTA vol. 1, 9.3) as named tuples, and their bytes, by struct."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any, NamedTuple

from emu.opcodes import EXTENSIONS, HEADER_BYTES

LOW_24 = 0xFFFFFF


class Reth(NamedTuple):
    """RDMA: where to write or read, and how many bytes."""

    va: int
    rkey: int
    dma_length: int


class Aeth(NamedTuple):
    """ACK: syndrome and message sequence number."""

    syndrome: int
    msn: int


class ImmDt(NamedTuple):
    """Immediate data."""

    immediate: int


class Ieth(NamedTuple):
    """Invalidate: the key that is to be invalid from now on."""

    rkey: int


class AtomicEth(NamedTuple):
    """Atomic: operand, and for Compare Swap what to compare with."""

    va: int
    rkey: int
    swap_or_add: int
    compare: int


class AtomicAckEth(NamedTuple):
    """Atomic ACK: what the memory held before."""

    original: int


class Deth(NamedTuple):
    """Datagram: key and source queue pair."""

    qkey: int
    source_qp: int


class Rdeth(NamedTuple):
    """Reliable datagram: the end-to-end context."""

    ee_context: int


class XrcEth(NamedTuple):
    """Extended reliable connection: the shared receive queue."""

    srq: int


class Feth(NamedTuple):
    """Flush: how much, and how far (release 1.5)."""

    selectivity: int
    placement: int


@dataclass(frozen=True, slots=True)
class Layout:
    """How one header's fields become the words that `struct` packs, and words the header."""

    struct: Struct
    header: Callable[..., tuple[int, ...]]  # of words
    words: Callable[[Sequence[int]], Sequence[int]]  # of fields
    fields: int


def _plain(kind: Any, layout: str) -> Layout:
    return Layout(Struct(layout), kind, lambda fields: fields, len(kind._fields))


# A number of 24 bits shares its word with 8 reserved ones, which are sent as zero and ignored.
LAYOUTS: dict[str, Layout] = {
    "RETH": _plain(Reth, "!QII"),
    "AETH": Layout(
        Struct("!I"), lambda word: Aeth(word >> 24, word & LOW_24), lambda fields: (fields[0] << 24 | fields[1],), 2
    ),
    "ImmDt": _plain(ImmDt, "!I"),
    "IETH": _plain(Ieth, "!I"),
    "AtomicETH": _plain(AtomicEth, "!QIQQ"),
    "AtomicAckETH": _plain(AtomicAckEth, "!Q"),
    "DETH": Layout(Struct("!II"), lambda qkey, word: Deth(qkey, word & LOW_24), lambda fields: fields, 2),
    "RDETH": Layout(Struct("!I"), lambda word: Rdeth(word & LOW_24), lambda fields: fields, 1),
    "XRCETH": Layout(Struct("!I"), lambda word: XrcEth(word & LOW_24), lambda fields: fields, 1),
    "FETH": Layout(
        Struct("!I"), lambda word: Feth(word >> 4 & 3, word & 15), lambda fields: (fields[0] << 4 | fields[1],), 2
    ),
}
"""Of each header named in emu.opcodes but CNPReserved, which has no fields."""


def read(opcode: int, data: bytes, start: int, end: int) -> dict[str, tuple[int, ...]]:
    """The headers of `opcode`, by name, that lie whole between `start`, after BTH, and `end`."""
    found: dict[str, tuple[int, ...]] = {}
    for name in EXTENSIONS[opcode]:
        if start + HEADER_BYTES[name] > end:
            break
        layout = LAYOUTS.get(name)
        if layout is not None:
            found[name] = layout.header(*layout.struct.unpack_from(data, start))
        start += HEADER_BYTES[name]
    return found
