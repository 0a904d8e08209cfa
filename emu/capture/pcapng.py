"""Reads pcapng (draft-ietf-opsawg-pcapng): sections of either byte order, named interfaces, times of any resolution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct

from emu.capture.record import (
    BLOCK_LIMIT_BYTES,
    FRAME_LIMIT_BYTES,
    INTERFACE_LIMIT,
    NAME_LIMIT,
    NANOSECONDS,
    Record,
)
from emu.capture.source import Source

SECTION, INTERFACE, OBSOLETE_PACKET, SIMPLE_PACKET, PACKET = 0x0A0D0D0A, 1, 2, 3, 6
SECTION_MARK = SECTION.to_bytes(4, "big")  # reads the same in both byte orders
ORDER_MARK = 0x1A2B3C4D
MAJOR_VERSION = 1
IF_NAME, IF_TSRESOL, IF_TSOFFSET, END_OF_OPTIONS = 2, 9, 14, 0
FRAME_BYTES = 12  # of a block, around its body: type, length, and the length again
MICROSECONDS = 6  # the resolution of an interface that does not say: 10^-6 s


@dataclass(frozen=True, slots=True)
class Interface:
    """What a frame's time and link are by the block that describes its interface."""

    name: str
    link_type: int
    snap_bytes: int  # 0: no limit
    resolution: int = MICROSECONDS  # of a tick: 10^-n s, or 2^-n s where the top bit is set
    offset_s: int = 0

    def time_ns(self, ticks: int) -> int:
        """Rounded down to a nanosecond."""
        exponent = self.resolution & 0x7F
        per_second = 1 << exponent if self.resolution & 0x80 else 10**exponent
        return ticks * NANOSECONDS // per_second + self.offset_s * NANOSECONDS


class _Layout:
    """The structures of one section's byte order."""

    def __init__(self, order: str) -> None:
        self.block = Struct(f"{order}II")
        self.length = Struct(f"{order}I")
        self.section = Struct(f"{order}IHHq")
        self.interface = Struct(f"{order}HHI")
        self.packet = Struct(f"{order}IIIII")
        self.obsolete_packet = Struct(f"{order}HHIIII")
        self.option = Struct(f"{order}HH")
        self.offset = Struct(f"{order}q")


_LAYOUTS = {ORDER_MARK.to_bytes(4, "little"): _Layout("<"), ORDER_MARK.to_bytes(4, "big"): _Layout(">")}


def recognizes(start: bytes) -> bool:
    """Whether a file that begins so is a pcapng file."""
    return start[:4] == SECTION_MARK


def records(source: Source) -> Iterator[Record]:
    """Every frame of every section. Raises WireError for damage, CutShortError where the file ends inside a block."""
    section = _Section(source, _LAYOUTS[ORDER_MARK.to_bytes(4, "little")])
    while True:
        section.begin_block()
        head = source.take_or_end(8)
        if head is None:
            return
        if head[:4] == SECTION_MARK:
            section = _open_section(source, head[4:])
            continue
        kind, length = section.layout.block.unpack(head)
        body = section.body(length, wanted=kind in (INTERFACE, OBSOLETE_PACKET, SIMPLE_PACKET, PACKET))
        if kind == PACKET:
            yield section.packet(body)
        elif kind == INTERFACE:
            section.add_interface(body)
        elif kind == SIMPLE_PACKET:
            yield section.simple_packet(body)
        elif kind == OBSOLETE_PACKET:
            yield section.obsolete_packet(body)


def _open_section(source: Source, length_bytes: bytes) -> _Section:
    start = source.offset - 8
    mark = source.take(4)
    layout = _LAYOUTS.get(mark)
    if layout is None:
        raise source.wrong(f"no pcapng section: its byte order mark is {mark.hex()}", start)
    section = _Section(source, layout)
    section.start = start
    (length,) = layout.length.unpack(length_bytes)
    body = section.body(length, wanted=True, taken=mark)
    if len(body) < layout.section.size:
        raise source.wrong(f"a pcapng section's block of {length} B", start)
    _, major, _, _ = layout.section.unpack_from(body)
    if major != MAJOR_VERSION:
        raise source.wrong(f"pcapng version {major}: only 1 is known", start)
    source.begun = True
    return section


class _Section:
    """One section: its byte order and the interfaces described so far."""

    def __init__(self, source: Source, layout: _Layout) -> None:
        self._source = source
        self.layout = layout
        self.interfaces: list[Interface] = []
        self.start = 0

    def begin_block(self) -> None:
        """Errors name the place where the block begins."""
        self.start = self._source.offset

    def body(self, length: int, *, wanted: bool, taken: bytes = b"") -> bytes:
        """What stands in a block between its lengths; nothing of one that is not wanted, however long it is."""
        source = self._source
        if length < FRAME_BYTES + len(taken) or length & 3:
            raise source.wrong(f"a block of {length} B", self.start)
        if wanted and length > BLOCK_LIMIT_BYTES:
            raise source.wrong(f"a block of {length} B: at most {BLOCK_LIMIT_BYTES} are taken", self.start)
        rest = length - FRAME_BYTES - len(taken)
        body = taken
        if wanted:
            body += source.take(rest)
        else:
            source.skip(rest)
        (again,) = self.layout.length.unpack(source.take(4))
        if again != length:
            raise source.wrong(f"a block of {length} B ends as one of {again} B", self.start)
        return body

    def add_interface(self, body: bytes) -> None:
        """The next interface of this section."""
        if len(body) < self.layout.interface.size:
            raise self._source.wrong("an interface block without its fields", self.start)
        if len(self.interfaces) >= INTERFACE_LIMIT:
            raise self._source.wrong(f"more than {INTERFACE_LIMIT} interfaces", self.start)
        link_type, _, snap_bytes = self.layout.interface.unpack_from(body)
        name, resolution, offset_s = f"if{len(self.interfaces)}", MICROSECONDS, 0
        for code, value in self._options(body[self.layout.interface.size :]):
            if code == IF_NAME and value:
                name = _text(value)
            elif code == IF_TSRESOL and value:
                resolution = value[0]
            elif code == IF_TSOFFSET and len(value) == self.layout.offset.size:
                (offset_s,) = self.layout.offset.unpack(value)
        self.interfaces.append(Interface(name, link_type, snap_bytes, resolution, offset_s))

    def packet(self, body: bytes) -> Record:
        """The frame of an enhanced packet block."""
        return self._record(body, self.layout.packet)

    def obsolete_packet(self, body: bytes) -> Record:
        """The frame of a packet block, as old files have it."""
        fields = self.layout.obsolete_packet
        if len(body) < fields.size:
            raise self._source.wrong("a packet block without its fields", self.start)
        number, _, high, low, length, original = fields.unpack_from(body)
        return self._make(number, high << 32 | low, body[fields.size :], length, original)

    def simple_packet(self, body: bytes) -> Record:
        """The frame of a simple packet block: of the first interface, without a time."""
        if len(body) < 4:
            raise self._source.wrong("a packet block without its fields", self.start)
        (original,) = self.layout.length.unpack_from(body)
        snap_bytes = self.interfaces[0].snap_bytes if self.interfaces else 0
        length = min(original, snap_bytes or original, len(body) - 4)
        return self._make(0, 0, body[4:], length, original)

    def _record(self, body: bytes, fields: Struct) -> Record:
        if len(body) < fields.size:
            raise self._source.wrong("a packet block without its fields", self.start)
        number, high, low, length, original = fields.unpack_from(body)
        return self._make(number, high << 32 | low, body[fields.size :], length, original)

    def _make(self, number: int, ticks: int, rest: bytes, length: int, original: int) -> Record:
        if number >= len(self.interfaces):
            raise self._source.wrong(f"a frame on interface {number}, which no block describes", self.start)
        if length > len(rest) or length > FRAME_LIMIT_BYTES:
            raise self._source.wrong(f"a frame of {length} B in a block with {len(rest)} B for it", self.start)
        interface = self.interfaces[number]
        return Record(
            interface.time_ns(ticks), interface.name, interface.link_type, rest[:length], max(original, length)
        )

    def _options(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        at = 0
        while at + self.layout.option.size <= len(data):
            code, length = self.layout.option.unpack_from(data, at)
            at += self.layout.option.size
            if code == END_OF_OPTIONS:
                return
            if at + length > len(data):
                raise self._source.wrong(f"an option of {length} B in a block with {len(data) - at} B left", self.start)
            yield code, data[at : at + length]
            at += length + (-length & 3)


def _text(value: bytes) -> str:
    """A name as text on one line, cut if it is long."""
    text = value.split(b"\0", 1)[0].decode("utf-8", "replace")[:NAME_LIMIT]
    return "".join(character if character.isprintable() else "?" for character in text)
