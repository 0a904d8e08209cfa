"""Capture files of every kind that is read, built byte by byte from what the formats' documents say."""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack

from emu.capture.record import Record

SHB_LENGTH_UNKNOWN = -1


def pcap(records: Sequence[Record], *, order: str = "<", nanoseconds: bool = False, link_type: int = 1) -> bytes:
    """A pcap file; without `nanoseconds`, times are cut to microseconds."""
    magic, unit = (0xA1B23C4D, 1) if nanoseconds else (0xA1B2C3D4, 1000)
    parts = [pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 262144, link_type)]
    for each in records:
        seconds, rest_ns = divmod(each.time_ns, 10**9)
        parts += [pack(f"{order}IIII", seconds, rest_ns // unit, len(each.data), each.original_bytes), each.data]
    return b"".join(parts)


def block(order: str, kind: int, body: bytes) -> bytes:
    """A pcapng block; the body is padded."""
    body += bytes(-len(body) & 3)
    length = pack(f"{order}I", 12 + len(body))
    return pack(f"{order}I", kind) + length + body + length


def option(order: str, code: int, value: bytes) -> bytes:
    return pack(f"{order}HH", code, len(value)) + value + bytes(-len(value) & 3)


def section(order: str = "<", major: int = 1) -> bytes:
    """A section header block without options."""
    return block(order, 0x0A0D0D0A, pack(f"{order}IHHq", 0x1A2B3C4D, major, 0, SHB_LENGTH_UNKNOWN))


def interface(order: str = "<", link_type: int = 1, snap_bytes: int = 0, **options: bytes) -> bytes:
    """An interface description; options by name: name, resolution, offset."""
    codes = {"name": 2, "resolution": 9, "offset": 14}
    packed = b"".join(option(order, codes[name], value) for name, value in options.items())
    end = option(order, 0, b"") if options else b""
    return block(order, 1, pack(f"{order}HHI", link_type, 0, snap_bytes) + packed + end)


def packet(order: str, number: int, ticks: int, data: bytes, original_bytes: int) -> bytes:
    """An enhanced packet block."""
    fields = pack(f"{order}IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(data), original_bytes)
    return block(order, 6, fields + data + bytes(-len(data) & 3) + option(order, 0, b""))


def pcapng(records: Sequence[Record], *, order: str = "<", ticks_per_second: int = 10**9, offset_s: int = 0) -> bytes:
    """A pcapng file with an interface for each name among the records, in a resolution that is a power of 10 or 2."""
    names = list(dict.fromkeys((each.interface, each.link_type) for each in records))
    is_binary = ticks_per_second & (ticks_per_second - 1) == 0 and ticks_per_second > 1
    exponent = ticks_per_second.bit_length() - 1 | 0x80 if is_binary else len(str(ticks_per_second)) - 1
    parts = [section(order)]
    for name, link_type in names:
        offset = pack(f"{order}q", offset_s)
        parts.append(interface(order, link_type, name=name.encode(), resolution=bytes([exponent]), offset=offset))
    for each in records:
        ticks = (each.time_ns - offset_s * 10**9) * ticks_per_second // 10**9
        parts.append(
            packet(order, names.index((each.interface, each.link_type)), ticks, each.data, each.original_bytes)
        )
    return b"".join(parts)


def erf(records: Sequence[Record], *, kind: int, port: int = 0, extension: bytes = b"") -> bytes:
    """An ERF file of frames of one record type; an extension header is 8 bytes."""
    parts = []
    for each in records:
        seconds, rest_ns = divmod(each.time_ns, 10**9)
        stamp = seconds << 32 | ((rest_ns << 32) + 5 * 10**8) // 10**9
        body = extension + (b"\0\0" if kind == 2 else b"") + each.data
        more = 0x80 if extension else 0
        parts += [
            pack("<Q", stamp),
            pack(">BBHHH", kind | more, 4 | port, 16 + len(body), 0, each.original_bytes),
            body,
        ]
    return b"".join(parts)
