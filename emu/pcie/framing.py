"""TLPs to bytes and back, by struct (PCI Express Base Specification 5.0, 2.2): memory writes, reads, completions.

On a veth a TLP rides EtherType 0x88B6 behind one byte that says what kind of control this is, as flow control does."""

from __future__ import annotations

from struct import Struct, error
from typing import Any

from emu.errors import InvariantBroken, WireError
from emu.frame import Buffer, Envelope, Frame
from emu.pcie.layout import (
    ADDRESS_LIMIT_32,
    BYTE_COUNT_LIMIT,
    BYTE_COUNT_MASK,
    BYTE_COUNT_MODIFIED,
    COMPLETION,
    DW_BYTES,
    FIRST_DW,
    FMT_CPLD,
    FMT_MRD32,
    FMT_MRD64,
    FMT_MWR32,
    FMT_MWR64,
    LENGTH_MASK,
    LOWER_ADDRESS_MASK,
    MAX_LENGTH_DW,
    PADS,
    PAGE_BYTES,
    REQUEST_32,
    REQUEST_64,
    STATUS_SHIFT,
    TAG_BITS,
    byte_enables,
    extent,
    full_tag,
    high_tag,
    length_dw,
)
from emu.pcie.tlp import TAGS_LIMIT, Tlp, TlpKind

ETHERTYPE_LINK_CONTROL = 0x88B6  # as in emu/framing/control.py, and so is the kind
KIND_TLP = 2

ETHERNET = Struct("!6s6sHB")  # and the kind
TLP_OFFSET = ETHERNET.size
LINK_OVERHEAD_BYTES = 8  # assumed for every generation: framing and sequence number 4, LCRC 4


class TlpFraming:
    """How TLPs look to wires and captures. Traffic class 0, no attributes, no prefixes, no ECRC."""

    name = "pcie"

    def wire_bytes(self, frame: Frame) -> int:
        """Bytes of link time."""
        return frame.wire_bytes

    def encode(self, frame: Frame) -> bytes:
        """The bytes that cross a veth. Raises InvariantBroken for what is no TLP, or none that may exist."""
        if not isinstance(frame, Tlp):
            raise InvariantBroken("only TLPs are encoded here")
        if not 0 <= frame.tag < TAGS_LIMIT:
            raise InvariantBroken(f"tag {frame.tag}: a TLP has room for 10 bits")
        try:
            if frame.kind is TlpKind.CPLD:
                return _encode_completion(frame)
            return _encode_request(frame)
        except error as reason:
            raise InvariantBroken(f"a number has no room in its field of a TLP: {reason}") from None

    def decode(self, data: bytes) -> Tlp:
        """The TLP those bytes are; bytes after it are padding. Raises WireError.

        Of a completion's address only the low 7 bits are known. What is the model's own is left at its default."""
        if len(data) < TLP_OFFSET + FIRST_DW.size:
            raise WireError(f"{len(data)} B are no TLP behind an Ethernet header")
        _, _, ether_type, kind = ETHERNET.unpack_from(data)
        if ether_type != ETHERTYPE_LINK_CONTROL or kind != KIND_TLP:
            raise WireError(f"EtherType 0x{ether_type:04x}, kind {kind}: TLPs ride 0x{ETHERTYPE_LINK_CONTROL:04x}, 2")
        fmt_type, high, length = FIRST_DW.unpack_from(data, TLP_OFFSET)
        if high & ~TAG_BITS or length & ~LENGTH_MASK:
            raise WireError(f"a TLP's traffic class, attributes or flags are set: 0x{high:02x}{length:04x}")
        if fmt_type == FMT_CPLD:
            return _decode_completion(data)
        if fmt_type in _REQUESTS:
            return _decode_request(data, fmt_type)
        raise WireError(f"TLP of Fmt and Type 0x{fmt_type:02x}: only MRd, MWr and CplD are known")


ENVELOPE = Envelope(
    TlpFraming(),
    source=0,
    destination=0,
    source_mac=0x020000005001,  # locally administered: what a link joins is its two ends, no address is looked at
    destination_mac=0x020000005002,
    destination_qp=0,
)
"""Of all TLPs: what differs among them is in the TLP."""

_HEAD = ETHERNET.pack(
    ENVELOPE.destination_mac.to_bytes(6, "big"),
    ENVELOPE.source_mac.to_bytes(6, "big"),
    ETHERTYPE_LINK_CONTROL,
    KIND_TLP,
)
_REQUESTS: dict[int, tuple[TlpKind, Struct]] = {
    FMT_MRD32: (TlpKind.MRD, REQUEST_32),
    FMT_MRD64: (TlpKind.MRD, REQUEST_64),
    FMT_MWR32: (TlpKind.MWR, REQUEST_32),
    FMT_MWR64: (TlpKind.MWR, REQUEST_64),
}


def mwr_wire_bytes(address: int, length: int) -> int:
    """Link bytes of a memory write of `length` bytes: header, payload, framing, sequence number, LCRC."""
    return mrd_wire_bytes(address) + length_dw(address, length) * DW_BYTES


def mrd_wire_bytes(address: int) -> int:
    """Link bytes of a memory read."""
    header = REQUEST_32 if address < ADDRESS_LIMIT_32 else REQUEST_64
    return header.size + LINK_OVERHEAD_BYTES


def cpld_wire_bytes(address: int, length: int) -> int:
    """Link bytes of a completion with `length` bytes of data from `address` on."""
    return COMPLETION.size + LINK_OVERHEAD_BYTES + length_dw(address, length) * DW_BYTES


def memory_write(address: int, data: Buffer, requester: int, note: Any = None) -> Tlp:
    """MWr of `data` to `address`; `requester` is its bus, device and function. It may not cross 4 KiB."""
    length = len(data)
    return Tlp(
        ENVELOPE,
        TlpKind.MWR,
        address=address,
        length=length,
        wire_bytes=mwr_wire_bytes(address, length),
        requester=requester,
        payload=data,
        note=note,
    )


def memory_read(address: int, length: int, requester: int, tag: int, note: Any = None) -> Tlp:
    """MRd of `length` bytes from `address` on; of 0 bytes: what flushes writes before it. It may not cross 4 KiB."""
    return Tlp(
        ENVELOPE,
        TlpKind.MRD,
        address=address,
        length=length,
        wire_bytes=mrd_wire_bytes(address),
        requester=requester,
        tag=tag,
        note=note,
    )


def completion(read: Tlp, offset: int, data: Buffer, completer: int) -> Tlp:
    """CplD that answers `read` with `data`, `offset` bytes into it; it has the read's note.

    All but the last end at a whole DW. A read of 0 bytes is answered by one byte that means nothing (2.3.1.1)."""
    data = data if read.length else b"\0"
    address = read.address + offset
    return Tlp(
        ENVELOPE,
        TlpKind.CPLD,
        address=address,
        length=len(data),
        wire_bytes=cpld_wire_bytes(address, len(data)),
        requester=read.requester,
        completer=completer,
        tag=read.tag,
        remaining=(read.length or 1) - offset,
        payload=data,
        note=read.note,
    )


def _encode_request(tlp: Tlp) -> bytes:
    address, length, tag = tlp.address, tlp.length, tlp.tag
    skipped = address & 3
    if (address & PAGE_BYTES - 1) + length > PAGE_BYTES or length < 0 or (skipped and not length):
        raise InvariantBroken(f"no request may ask for {length} B at 0x{address:x}")
    words = length_dw(address, length)
    after = words * DW_BYTES - skipped - length
    far = address >= ADDRESS_LIMIT_32
    writes = tlp.kind is TlpKind.MWR
    header = (REQUEST_64 if far else REQUEST_32).pack(
        (FMT_MWR32 if writes else FMT_MRD32) | far << 5,
        high_tag(tag),
        words & LENGTH_MASK,
        tlp.requester,
        tag & 0xFF,
        byte_enables(words, skipped, after),
        address & -DW_BYTES,
    )
    return _HEAD + header + _padded(tlp, skipped, after) if writes else _HEAD + header


def _encode_completion(tlp: Tlp) -> bytes:
    length, remaining, tag = tlp.length, tlp.remaining, tlp.tag
    skipped = tlp.address & 3
    words = length_dw(tlp.address, length)
    after = words * DW_BYTES - skipped - length
    if not 0 < length <= remaining <= BYTE_COUNT_LIMIT or words > MAX_LENGTH_DW or (after and length < remaining):
        raise InvariantBroken(f"no completion may carry {length} of {remaining} B at 0x{tlp.address:x}")
    header = COMPLETION.pack(
        FMT_CPLD,
        high_tag(tag),
        words & LENGTH_MASK,
        tlp.completer,
        remaining & BYTE_COUNT_MASK,  # status 0: successful
        tlp.requester,
        tag & 0xFF,
        tlp.address & LOWER_ADDRESS_MASK,
    )
    return _HEAD + header + _padded(tlp, skipped, after)


def _padded(tlp: Tlp, before: int, after: int) -> bytes:
    """The payload in whole DWs."""
    payload = tlp.payload
    if len(payload) != tlp.length:
        raise InvariantBroken(f"a TLP of {tlp.length} B has {len(payload)} B of payload")
    if not tlp.length:
        return bytes(DW_BYTES)
    return b"".join((PADS[before], payload, PADS[after]))


def _decode_request(data: bytes, fmt_type: int) -> Tlp:
    kind, layout = _REQUESTS[fmt_type]
    start = TLP_OFFSET + layout.size
    if len(data) < start:
        raise WireError(f"{kind.value} cut short by {start - len(data)} B")
    _, high, words, requester, tag, enables, address = layout.unpack_from(data, TLP_OFFSET)
    if address & 3 or (layout is REQUEST_64 and address < ADDRESS_LIMIT_32):
        raise WireError(f"{kind.value} of address 0x{address:x} in {layout.size} B: no such header may be")
    words = words or MAX_LENGTH_DW
    skipped, length = extent(words, enables)
    address += skipped
    if (address & PAGE_BYTES - 1) + length > PAGE_BYTES:
        raise WireError(f"{kind.value} of {length} B at 0x{address:x} crosses 4 KiB")
    payload, wire_bytes = b"", mrd_wire_bytes(address)
    if kind is TlpKind.MWR:
        payload = _payload(data, start, words, skipped, length)
        wire_bytes += words * DW_BYTES
    tlp = Tlp(
        ENVELOPE,
        kind,
        address=address,
        length=length,
        wire_bytes=wire_bytes,
        requester=requester,
        tag=full_tag(high, tag),
        payload=payload,
    )
    tlp.data = data
    return tlp


def _decode_completion(data: bytes) -> Tlp:
    start = TLP_OFFSET + COMPLETION.size
    if len(data) < start:
        raise WireError(f"CplD cut short by {start - len(data)} B")
    _, high, words, completer, status, requester, tag, lower = COMPLETION.unpack_from(data, TLP_OFFSET)
    if status >> STATUS_SHIFT or status & BYTE_COUNT_MODIFIED or lower & ~LOWER_ADDRESS_MASK:
        raise WireError(f"CplD of status {status >> STATUS_SHIFT}: only successful completions carry data")
    words = words or MAX_LENGTH_DW
    remaining = status & BYTE_COUNT_MASK or BYTE_COUNT_LIMIT
    skipped = lower & 3
    length = min(remaining, words * DW_BYTES - skipped)
    if length_dw(skipped, length) != words:
        raise WireError(f"CplD of {words} DWs: more than the {remaining} B still owed")
    tlp = Tlp(
        ENVELOPE,
        TlpKind.CPLD,
        address=lower,
        length=length,
        wire_bytes=cpld_wire_bytes(lower, length),
        requester=requester,
        completer=completer,
        tag=full_tag(high, tag),
        remaining=remaining,
        payload=_payload(data, start, words, skipped, length),
    )
    tlp.data = data
    return tlp


def _payload(data: bytes, start: int, words: int, skipped: int, length: int) -> bytes:
    missing = start + words * DW_BYTES - len(data)
    if missing > 0:
        raise WireError(f"a TLP's payload is cut short by {missing} B")
    return data[start + skipped : start + skipped + length]
