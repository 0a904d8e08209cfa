"""A captured TLP to what it says and its data, whole or cut short: whatever the bytes, nothing is raised."""

from __future__ import annotations

from typing import NamedTuple

from emu.errors import WireError
from emu.pcie.framing import ETHERNET, ETHERTYPE_LINK_CONTROL, KIND_TLP, TlpFraming
from emu.pcie.layout import (
    COMPLETION,
    DW_BYTES,
    FIRST_DW,
    FMT_CPLD,
    FMT_MRD32,
    FMT_MRD64,
    FMT_MWR32,
    FMT_MWR64,
    LENGTH_MASK,
    MAX_LENGTH_DW,
    REQUEST_32,
    REQUEST_64,
)
from emu.pcie.tlp import Tlp, TlpKind

_HEAD = ETHERNET.pack(bytes(6), bytes(6), ETHERTYPE_LINK_CONTROL, KIND_TLP)  # what carries it, addresses aside
_FRAMING = TlpFraming()
_HEADER_BYTES = {
    FMT_MRD32: REQUEST_32.size,
    FMT_MWR32: REQUEST_32.size,
    FMT_MRD64: REQUEST_64.size,
    FMT_MWR64: REQUEST_64.size,
    FMT_CPLD: COMPLETION.size,
}
_WITH_DATA = {FMT_MWR32, FMT_MWR64, FMT_CPLD}


class TlpHeader(NamedTuple):
    """Of a completion `address` is the low 7 bits alone; `remaining`: bytes of its read still owed. IDs as `lspci`."""

    kind: str
    address: int
    length: int
    requester: str
    completer: str
    tag: int
    remaining: int


class Seen(NamedTuple):
    """No header: these bytes are no TLP that we know, and `line` says why."""

    header: TlpHeader | None
    data: bytes  # as much as is there
    line: str


def dissect(packet: bytes, *, cut: bool = False) -> Seen:
    """What a TLP says, from its first DW on; `cut`: a capture's snap length took its end."""
    if len(packet) < FIRST_DW.size:
        return Seen(None, b"", "TLP cut short")
    code, _, length = FIRST_DW.unpack_from(packet)
    header_bytes = _HEADER_BYTES.get(code)
    if header_bytes is None:
        return Seen(None, b"", f"TLP of Fmt and Type 0x{code:02x}")
    if len(packet) < header_bytes:
        return Seen(None, b"", "TLP cut short")
    whole = header_bytes
    if code in _WITH_DATA:
        whole += (length & LENGTH_MASK or MAX_LENGTH_DW) * DW_BYTES
    missing = max(0, whole - len(packet))
    try:
        tlp = _FRAMING.decode(_HEAD + packet + bytes(missing if cut else 0))
    except WireError as error:
        return Seen(None, b"", f"TLP: {error}")
    skipped = tlp.address % DW_BYTES
    there = max(0, len(packet) - header_bytes - skipped)
    data = bytes(tlp.payload)[:there]
    return Seen(_header(tlp), data, _line(tlp) + (", cut short" if len(data) < len(tlp.payload) else ""))


def identifier(number: int) -> str:
    """Bus, device and function: `01:00.0`."""
    return f"{number >> 8:02x}:{number >> 3 & 0x1F:02x}.{number & 7}"


def _header(tlp: Tlp) -> TlpHeader:
    completes = tlp.kind is TlpKind.CPLD
    return TlpHeader(
        tlp.kind.value,
        tlp.address,
        tlp.length,
        identifier(tlp.requester),
        identifier(tlp.completer) if completes else "",
        tlp.tag,
        tlp.remaining,
    )


def _line(tlp: Tlp) -> str:
    """As emu/wireshark/emu.lua says it."""
    if tlp.kind is TlpKind.CPLD:
        owed = f"{tlp.length} B of {tlp.remaining} still owed, lower address 0x{tlp.address:02x}"
        return f"CplD {owed}, tag {tlp.tag}"
    line = f"{tlp.kind.value} {tlp.length} B at 0x{tlp.address:x}"
    return line if tlp.kind is TlpKind.MWR else f"{line}, tag {tlp.tag}"
