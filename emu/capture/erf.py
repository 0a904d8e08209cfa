"""ERF, Endace's record format, which also carries InfiniBand inside pcap and pcapng as link type 197."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from emu.capture.record import NANOSECONDS, Record
from emu.capture.source import Source
from emu.framing.dissect import ERF_ETHERNET, ERF_INFINIBAND, ERF_INFINIBAND_LINK, LINK_ERF

TYPE_META = 27
TYPE_PAD = 48
TYPE_MASK = 0x7F
MORE_HEADERS = 0x80  # set in a type, and in an extension header's first byte: another 8 bytes of header follow
VARYING_LENGTH = 0x04  # in the flags: records are as long as their frames

STAMP = Struct("<Q")  # seconds in the upper half, a binary fraction below
HEADER = Struct(">BBHHH")  # type, flags, length of the record, losses, length of the frame on the wire
HEADER_BYTES = STAMP.size + HEADER.size
RECOGNIZED_BYTES = 65_535 + HEADER_BYTES  # the longest record and the next header: enough to tell ERF
_LEFT_OUT = (TYPE_META, TYPE_PAD)
_KNOWN = (ERF_ETHERNET, ERF_INFINIBAND, ERF_INFINIBAND_LINK, *_LEFT_OUT)


def header(time_ns: int, record_type: int, frame_bytes: int, captured_bytes: int) -> bytes:
    """The 16 bytes before a frame. The stamp is rounded up, so that rounding it to ns gives `time_ns` again."""
    seconds, rest_ns = divmod(time_ns, NANOSECONDS)
    stamp = seconds << 32 | -(-(rest_ns << 32) // NANOSECONDS)
    return STAMP.pack(stamp) + HEADER.pack(record_type, VARYING_LENGTH, HEADER_BYTES + captured_bytes, 0, frame_bytes)


def recognizes(start: bytes) -> bool:
    """Whether a file that begins so is ERF: it has no mark of its own, so its first record and the next have to fit."""
    if len(start) < HEADER_BYTES or not _is_header(start, 0):
        return False
    next_at = HEADER.unpack_from(start, STAMP.size)[2]
    ends = next_at <= len(start) < next_at + HEADER_BYTES  # with the first record, or cut inside the next header
    return ends or (len(start) > next_at and _is_header(start, next_at))


def _is_header(data: bytes, at: int) -> bool:
    record_type, _, record_bytes, _, frame_bytes = HEADER.unpack_from(data, at + STAMP.size)
    kind = record_type & TYPE_MASK
    return kind in _KNOWN and record_bytes >= HEADER_BYTES and (frame_bytes > 0 or kind in _LEFT_OUT)


def records(source: Source) -> Iterator[Record]:
    """Every record that holds a frame, with its ERF header. Raises WireError, CutShortError."""
    source.begun = True
    while (head := source.take_or_end(HEADER_BYTES)) is not None:
        (stamp,) = STAMP.unpack_from(head)
        record_type, flags, record_bytes, _, frame_bytes = HEADER.unpack_from(head, STAMP.size)
        if record_bytes < HEADER_BYTES or not 0 < record_type & TYPE_MASK <= TYPE_PAD:
            text = f"no ERF record: type {record_type & TYPE_MASK}, {record_bytes} B"
            raise source.wrong(text, source.offset - HEADER_BYTES)
        data = head + source.take(record_bytes - HEADER_BYTES)
        if record_type & TYPE_MASK not in _LEFT_OUT:
            before = _header_bytes(data)
            yield Record(_time_ns(stamp), f"if{flags & 3}", LINK_ERF, data, max(before + frame_bytes, before))


def _time_ns(stamp: int) -> int:
    """To the nearest nanosecond."""
    return (stamp >> 32) * NANOSECONDS + ((stamp & 0xFFFFFFFF) * NANOSECONDS + (1 << 31) >> 32)


def _header_bytes(data: bytes) -> int:
    """What stands before the frame: the header, its extensions, and Ethernet's two bytes of padding."""
    size, more = HEADER_BYTES, data[STAMP.size] & MORE_HEADERS
    while more and size + 8 <= len(data):
        more, size = data[size] & MORE_HEADERS, size + 8
    return size + 2 * (data[STAMP.size] & TYPE_MASK == ERF_ETHERNET)
