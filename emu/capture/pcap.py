"""The classic pcap format: both byte orders, microseconds or nanoseconds (draft-ietf-opsawg-pcap)."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from emu.capture.record import FRAME_LIMIT_BYTES, NANOSECONDS, Record
from emu.capture.source import Source

MAGIC_US, MAGIC_NS = 0xA1B2C3D4, 0xA1B23C4D
MAJOR_VERSION = 2
INTERFACE = "if0"  # a pcap file has one, without a name
LINK_TYPE_MASK = 0xFFFF  # above it: how long an FCS is

_MAGICS = {
    magic.to_bytes(4, "little" if order == "<" else "big"): (order, unit_ns)
    for order in "<>"
    for magic, unit_ns in ((MAGIC_US, 1000), (MAGIC_NS, 1))
}


def recognizes(start: bytes) -> bool:
    """Whether a file that begins so is a pcap file."""
    return start[:4] in _MAGICS


def records(source: Source) -> Iterator[Record]:
    """Every record. Raises WireError for damage, CutShortError where the file ends inside a record."""
    order, unit_ns = _MAGICS[source.take(4)]
    major, _, _, _, _, network = Struct(f"{order}HHiIII").unpack(source.take(20))
    if major != MAJOR_VERSION:
        raise source.wrong(f"pcap version {major}: only 2 is known", 4)
    source.begun = True
    link_type = network & LINK_TYPE_MASK
    header = Struct(f"{order}IIII")
    while (head := source.take_or_end(header.size)) is not None:
        seconds, fraction, length, original = header.unpack(head)
        if length > FRAME_LIMIT_BYTES:
            raise source.wrong(
                f"a frame of {length} B: at most {FRAME_LIMIT_BYTES} are taken", source.offset - header.size
            )
        data = source.take(length)
        yield Record(seconds * NANOSECONDS + fraction * unit_ns, INTERFACE, link_type, data, max(original, length))
