"""Link flow control: PFC and PAUSE (IEEE 802.1Qbb, 802.3 annex 31B), and InfiniBand's FCP as it rides a veth.

Scapy's own `contrib.mac_control` has the first two, but takes padding that starts like an opcode for one more frame,
pads to 60 bytes only straight above Ether, and leaves address and EtherType to the user."""

from __future__ import annotations

from typing import Any

from scapy.fields import BitField, ByteEnumField, ByteField, FlagsField, ShortField, XLEShortField, XShortField
from scapy.packet import Packet, Padding

from emu.crc import VCRC_BYTES, vcrc

OPCODE_PAUSE = 0x0001
OPCODE_PFC = 0x0101
KIND_FCP = 1
KIND_TLP = 2
PRIORITIES = 8
ETHERNET_HEADER_BYTES = 14
MIN_FRAME_BYTES = 60  # without FCS


class MACControl(Packet):
    """A MAC control frame, padded to Ethernet's least size; read, it is PFC or Pause if its opcode says so."""

    name = "MAC control"
    fields_desc = [XShortField("opcode", 0)]

    @classmethod
    def dispatch_hook(cls, _pkt: bytes | None = None, *args: Any, **kargs: Any) -> type[Packet]:
        """The class that the first two bytes ask for."""
        if cls is not MACControl or _pkt is None or len(_pkt) < 2:
            return cls
        return {OPCODE_PAUSE: Pause, OPCODE_PFC: PFC}.get(int.from_bytes(_pkt[:2], "big"), cls)

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        """Pad, unless the user did."""
        if not pay and not self.haslayer(Padding):
            pkt = pkt.ljust(MIN_FRAME_BYTES - ETHERNET_HEADER_BYTES, b"\0")
        return pkt + pay

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes | None]:
        return b"", s


class Pause(MACControl):
    """Stop sending for `quanta` of 512 bit times; 0: go on."""

    name = "PAUSE"
    fields_desc = [XShortField("opcode", OPCODE_PAUSE), ShortField("quanta", 0)]


class PFC(MACControl):
    """Priority flow control: `quanta0` to `quanta7`, each for its own priority if that is enabled."""

    name = "PFC"
    fields_desc = [
        XShortField("opcode", OPCODE_PFC),
        ByteField("reserved", 0),
        FlagsField("enabled", 0, PRIORITIES, [f"p{priority}" for priority in range(PRIORITIES)]),
        *(ShortField(f"quanta{priority}", 0) for priority in range(PRIORITIES)),
    ]


class LinkControl(Packet):
    """What EtherType 0x88B6 carries on a veth: one byte says of which kind."""

    name = "link control"
    fields_desc = [ByteEnumField("kind", KIND_FCP, {KIND_FCP: "FCP", KIND_TLP: "TLP"})]


class FCP(Packet):
    """Link flow-control packet (IBTA vol. 1, 7.9.4): credits of one VL. Left None, its LPCRC is computed when built."""

    name = "FCP"
    fields_desc = [
        BitField("op", 0, 4),
        BitField("fctbs", 0, 12),
        BitField("vl", 0, 4),
        BitField("fccl", 0, 12),
        XLEShortField("lpcrc", None),
    ]

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        """Fill in the LPCRC."""
        if self.lpcrc is None:
            words = pkt[:-VCRC_BYTES]
            pkt = words + vcrc(words).to_bytes(VCRC_BYTES, "little")
        return pkt + pay

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes | None]:
        return b"", s
