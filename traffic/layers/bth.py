"""The base transport header (IBTA vol. 1, 9.2), which also pads the payload and ends the packet with its ICRC."""

from __future__ import annotations

from collections.abc import Callable

from scapy.fields import BitField, ByteEnumField, XBitField, XShortField
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.packet import Packet, Raw

from emu.crc import (
    ICRC_BYTES,
    VCRC_BYTES,
    icrc_global,
    icrc_local,
    icrc_roce_ipv4,
    icrc_roce_ipv6,
    icrc_roce_v1,
)
from emu.opcodes import OPERATIONS
from traffic.layers.extensions import following
from traffic.layers.infiniband import GRH, LRH
from traffic.layers.trailer import ICRC, VCRC, Pad, without_payload

PAD_COUNT_BYTE = 1  # SE, M, PadCnt (2 bits), TVer (4 bits)
PAD_COUNT_SHIFT = 4


class BTH(Packet):
    """Base transport header. Left None, `padcount` and the ICRC after the payload are computed when built."""

    name = "BTH"
    fields_desc = [
        ByteEnumField("opcode", 0, {code: known.name for code, known in OPERATIONS.items()}),
        BitField("solicited", 0, 1),
        BitField("migreq", 1, 1),
        BitField("padcount", None, 2),
        BitField("version", 0, 4),
        XShortField("pkey", 0xFFFF),
        BitField("fecn", 0, 1),
        BitField("becn", 0, 1),
        BitField("reserved6", 0, 6),
        XBitField("dqpn", 0, 24),
        BitField("ackreq", 0, 1),
        BitField("reserved7", 0, 7),
        BitField("psn", 0, 24),
    ]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return following(self, payload)

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        """Add what the user left out: padding, its count, the ICRC."""
        trailer: Packet | None = self.getlayer(ICRC)
        written = 0
        if trailer is not None:
            written = ICRC_BYTES + (VCRC_BYTES if self.haslayer(VCRC) else 0)
        body, tail = pay[: len(pay) - written], pay[len(pay) - written :]
        pad: Packet | None = self.getlayer(Pad)
        pad_bytes = self.padcount
        if pad_bytes is None:
            pad_bytes = -len(body) % 4 if pad is None else len(pad.load)
        if pad is None:
            body += b"\0" * pad_bytes
        header = bytearray(pkt)
        header[PAD_COUNT_BYTE] = header[PAD_COUNT_BYTE] & 0xCF | (pad_bytes & 3) << PAD_COUNT_SHIFT
        covered = bytes(header) + body
        if trailer is None or trailer.icrc is None:
            tail = self._icrc(covered).to_bytes(ICRC_BYTES, "little") + tail[ICRC_BYTES:]
        return covered + tail

    def _icrc(self, covered: bytes) -> int:
        """The ICRC of the whole packet, `covered` being BTH to padding; lower headers as they will be built."""
        layers: list[Packet] = []
        under = self.underlayer
        while under is not None:
            layers.append(without_payload(under))
            if type(under) in _ICRC_FROM and type(under.underlayer) is not LRH:
                break
            under = under.underlayer
        if under is None:
            return 0  # BTH alone: there is nothing to compute over
        packet: Packet = Raw(covered + bytes(ICRC_BYTES))
        for layer in layers:
            packet = layer / packet
        below = bytes(packet)
        end = ICRC_BYTES + (VCRC_BYTES if isinstance(under, LRH) else 0)
        compute = _ICRC_FROM[type(under)]
        if isinstance(under, LRH) and len(layers) > 1:
            compute = icrc_global
        return compute(below[: len(below) - end])


_ICRC_FROM: dict[type[Packet], Callable[[bytes], int]] = {
    IP: icrc_roce_ipv4,
    IPv6: icrc_roce_ipv6,
    GRH: icrc_roce_v1,
    LRH: icrc_local,
}
"""The layer from which the ICRC counts, and its rule."""
