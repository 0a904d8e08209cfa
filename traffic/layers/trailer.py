"""What ends an RDMA packet, as layers: payload, padding, ICRC and, on native InfiniBand, VCRC."""

from __future__ import annotations

from typing import Any

from scapy.fields import StrField, StrLenField, XLEIntField, XLEShortField
from scapy.packet import Packet

from emu.crc import ICRC_BYTES, VCRC_BYTES


def transport_of(layer: Packet) -> Packet | None:
    """The BTH that `layer` stands on, or is."""
    return _find(layer, "BTH")


def pad_count(layer: Packet) -> int:
    """The padding bytes that the BTH below `layer` announces; 0 without one."""
    transport = transport_of(layer)
    return 0 if transport is None else int(transport.padcount or 0)


def is_native(layer: Packet) -> bool:
    """Whether the packet has an LRH, and so ends with a VCRC."""
    return _find(layer, "LRH") is not None


def trailer_bytes(layer: Packet) -> int:
    """Bytes that follow the payload: padding, ICRC, VCRC. None do where bytes stand on no BTH."""
    if transport_of(layer) is None:
        return 0
    return pad_count(layer) + ICRC_BYTES + (VCRC_BYTES if is_native(layer) else 0)


def _find(layer: Packet, name: str) -> Packet | None:
    under: Packet | None = layer
    while under is not None and under.name != name:
        under = under.underlayer
    return under


class _UpToTrailer(StrField):
    """A string that leaves the trailer's bytes to the layers after it."""

    def getfield(self, pkt: Packet, s: bytes) -> tuple[bytes, bytes]:
        cut = max(0, len(s) - trailer_bytes(pkt))
        return s[cut:], s[:cut]


class Payload(Packet):
    """The user's bytes, without padding."""

    name = "Payload"
    fields_desc = [_UpToTrailer("load", b"")]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return Pad if pad_count(self) else ICRC


def _pad_bytes(pad: Packet) -> int:
    return len(pad.original) if transport_of(pad) is None else pad_count(pad)


class Pad(Packet):
    """Up to three bytes that fill the payload to whole words."""

    name = "Pad"
    fields_desc = [StrLenField("load", b"", length_from=_pad_bytes)]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return ICRC


class ICRC(Packet):
    """Invariant CRC, least significant byte first; None: computed when built."""

    name = "ICRC"
    fields_desc = [XLEIntField("icrc", None)]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return VCRC if is_native(self) else super().guess_payload_class(payload)


class VCRC(Packet):
    """Variant CRC of a native packet, least significant byte first; None: computed when built."""

    name = "VCRC"
    fields_desc = [XLEShortField("vcrc", None)]


def without_payload(layer: Packet) -> Packet:
    """A copy of one layer's header alone, with what its payload made it say (a next-header number)."""
    said: dict[str, Any] = {**layer.overloaded_fields, **layer.fields}
    return type(layer)(**said)
