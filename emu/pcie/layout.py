"""A TLP's header, field by field (PCI Express Base Specification 5.0, 2.2.1 to 2.2.9)."""

from __future__ import annotations

from struct import Struct

from emu.errors import WireError

DW_BYTES = 4
MAX_LENGTH_DW = 1024  # written as 0
PAGE_BYTES = 4096  # no request crosses such a boundary
ADDRESS_LIMIT_32 = 1 << 32  # from here on addresses take two DWs

FMT_MRD32, FMT_MRD64 = 0x00, 0x20  # byte 0: Fmt (3 bits) and Type (5 bits)
FMT_MWR32, FMT_MWR64 = 0x40, 0x60
FMT_CPLD = 0x4A

FIRST_DW = Struct("!BBH")  # Fmt and Type, tag bits 9 and 8 among traffic class and attributes, flags and length
REQUEST_32 = Struct("!BBHHBBI")  # first DW, requester ID, tag, byte enables (last 4, first 4), address
REQUEST_64 = Struct("!BBHHBBQ")
COMPLETION = Struct("!BBHHHHBB")  # first DW, completer ID, status and byte count, requester ID, tag, lower address

TAG_BITS = 0x88  # of byte 1: tag bit 9 is bit 7, tag bit 8 is bit 3
LENGTH_MASK = 0x3FF
BYTE_COUNT_LIMIT = 4096  # written as 0
BYTE_COUNT_MASK = 0xFFF
BYTE_COUNT_MODIFIED = 0x1000  # of PCI-X bridges only
LOWER_ADDRESS_MASK = 0x7F
STATUS_SHIFT = 13

PADS = tuple(bytes(count) for count in range(DW_BYTES))
_ONE_DW = {  # first byte enables of a request within one DW: offset of its first byte, number of bytes
    0: (0, 0),
    **{((1 << count) - 1) << offset: (offset, count) for offset in range(4) for count in range(1, 5 - offset)},
}
_SKIPPED = {0xF << skipped & 0xF: skipped for skipped in range(DW_BYTES)}  # by first byte enables
_LEFT_OUT = {0xF >> left_out: left_out for left_out in range(DW_BYTES)}  # by last byte enables


def length_dw(address: int, length: int) -> int:
    """DWs that `length` bytes from `address` on touch; a request for no bytes names one all the same."""
    return ((address & 3) + length + 3) // DW_BYTES or 1


def byte_enables(length_dw: int, skipped: int, left_out: int) -> int:
    """Last (bits 7 to 4) and first byte enables: `skipped` bytes of the first DW and `left_out` of the last are not
    meant (2.2.5)."""
    first, last = 0xF << skipped & 0xF, 0xF >> left_out
    return first & last if length_dw == 1 else last << 4 | first


def extent(length_dw: int, enables: int) -> tuple[int, int]:
    """Bytes skipped in the first DW, and bytes meant. Raises WireError for holes: a request's bytes lie side by side
    here."""
    first, last = enables & 0xF, enables >> 4
    if length_dw == 1:
        found = None if last else _ONE_DW.get(first)
        if found is not None:
            return found
    elif first in _SKIPPED and last in _LEFT_OUT:
        skipped = _SKIPPED[first]
        return skipped, length_dw * DW_BYTES - skipped - _LEFT_OUT[last]
    raise WireError(f"byte enables 0x{first:x} and 0x{last:x} of {length_dw} DWs leave holes")


def high_tag(tag: int) -> int:
    """Bits 9 and 8 of a tag as byte 1 has them (10-bit tags, 2.2.6.2)."""
    return (tag & 0x200) >> 2 | (tag & 0x100) >> 5


def full_tag(high: int, low: int) -> int:
    """The tag of which byte 1 is `high`."""
    return (high & 0x80) << 2 | (high & 0x08) << 5 | low
