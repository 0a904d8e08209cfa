"""InfiniBand's link and network headers: LRH (IBTA vol. 1, 7.7), which ends the packet with its VCRC, and GRH (8.3)."""

from __future__ import annotations

from scapy.fields import BitEnumField, BitField, ByteEnumField, ByteField, IP6Field, ShortField, XBitField, XShortField
from scapy.packet import Packet

from emu.crc import VCRC_BYTES, vcrc
from traffic.layers.trailer import VCRC

LNH_LOCAL = 2
LNH_GLOBAL = 3
NEXT_HEADER_BTH = 0x1B
LRH_BYTES = 8
WORD_BYTES = 4  # LRH counts its packet in these
GRH_PAYLOAD_LENGTH = 4  # offset of PayLen


class LRH(Packet):
    """Local route header. Left None, `length` (words, without VCRC) and the VCRC at the end are computed when built."""

    name = "LRH"
    fields_desc = [
        BitField("vl", 0, 4),
        BitField("version", 0, 4),
        BitField("sl", 0, 4),
        BitField("reserved2", 0, 2),
        BitEnumField("lnh", LNH_LOCAL, 2, {0: "raw", 1: "IPv6", LNH_LOCAL: "local", LNH_GLOBAL: "global"}),
        XShortField("dlid", 0),
        BitField("reserved5", 0, 5),
        BitField("length", None, 11),
        XShortField("slid", 0),
    ]

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        """Fill in the length in words, and the VCRC."""
        trailer: Packet | None = self.getlayer(VCRC)
        body, tail = (pay, b"") if trailer is None else (pay[:-VCRC_BYTES], pay[-VCRC_BYTES:])
        if self.length is None:
            words = (len(pkt) + len(body)) // WORD_BYTES
            pkt = pkt[:4] + (words & 0x7FF | pkt[4] >> 3 << 11).to_bytes(2, "big") + pkt[6:]
        if trailer is None or trailer.vcrc is None:
            tail = vcrc(pkt + body).to_bytes(VCRC_BYTES, "little")
        return pkt + body + tail

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes | None]:
        """What an Ethernet carrier added after the VCRC is no part of the packet."""
        length = self.length * WORD_BYTES - LRH_BYTES + VCRC_BYTES
        return s[:length], s[length:]


class GRH(Packet):
    """Global route header, laid out as IPv6's. Left None, `paylen` (to the ICRC's end) is computed when built."""

    name = "GRH"
    fields_desc = [
        BitField("version", 6, 4),
        BitField("tclass", 0, 8),
        XBitField("flowlabel", 0, 20),
        ShortField("paylen", None),
        ByteEnumField("nexthdr", NEXT_HEADER_BTH, {NEXT_HEADER_BTH: "BTH"}),
        ByteField("hoplimit", 64),
        IP6Field("sgid", "::"),
        IP6Field("dgid", "::"),
    ]

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        """Fill in the payload's length."""
        if self.paylen is None:
            length = len(pay) - (VCRC_BYTES if self.haslayer(VCRC) else 0)
            pkt = pkt[:GRH_PAYLOAD_LENGTH] + length.to_bytes(2, "big") + pkt[GRH_PAYLOAD_LENGTH + 2 :]
        return pkt + pay

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """Under an LRH it is LNH that says a BTH follows, whatever the next header is called."""
        if self.underlayer is not None and self.underlayer.name == "LRH":
            return next(above for fields, above in self.payload_guess if fields == {"nexthdr": NEXT_HEADER_BTH})
        return super().guess_payload_class(payload)

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes | None]:
        """Over Ethernet (RoCEv1) padding may follow; over an LRH that header has cut it off."""
        if self.underlayer is not None and self.underlayer.name == "LRH":
            return s, b""
        return s[: self.paylen], s[self.paylen :]
