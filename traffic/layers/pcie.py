"""PCIe transaction layer packets (PCI Express Base Specification 5.0, 2.2) as they ride a veth: memory writes, memory
reads, completions with data.

    Ether() / LinkControl() / MWr64(requester=0x100, address=1 << 32, first_be=15, last_be=15) / Raw(bytes(8))

Read, the class is the one that the first byte asks for. Data is whole DWs: the byte enables say which bytes count."""

from __future__ import annotations

from typing import Any

from scapy.config import conf
from scapy.fields import AnyField, BitField, XBitField, XByteEnumField, XByteField, XIntField, XLongField, XShortField
from scapy.packet import Packet

DW_BYTES = 4
MAX_LENGTH_DW = 1024
LENGTH_OFFSET = 2  # of the 10 bits of length, whose word holds flags in its upper bits
FMT_TYPES = {0x00: "MRd32", 0x20: "MRd64", 0x40: "MWr32", 0x60: "MWr64", 0x4A: "CplD"}


def _first_dw(fmt_type: int) -> list[AnyField]:
    return [
        XByteEnumField("fmt_type", fmt_type, FMT_TYPES),
        BitField("t9", 0, 1),  # tag bits 9 and 8
        BitField("tc", 0, 3),
        BitField("t8", 0, 1),
        BitField("ido", 0, 1),
        BitField("ln", 0, 1),
        BitField("th", 0, 1),
        BitField("td", 0, 1),
        BitField("ep", 0, 1),
        BitField("attr", 0, 2),
        BitField("at", 0, 2),
        BitField("length", None, 10),
    ]


def _request(fmt_type: int, address: AnyField) -> list[AnyField]:
    return [
        *_first_dw(fmt_type),
        XShortField("requester", 0),
        XByteField("tag", 0),
        XBitField("last_be", 0, 4),
        XBitField("first_be", 0xF, 4),
        address,
    ]


class TLP(Packet):
    """A TLP of a type not known here. Left None, `length` is the DWs of data, or one if a read carries none."""

    name = "TLP"
    fields_desc = _first_dw(0)
    carries_data = False

    @classmethod
    def dispatch_hook(cls, _pkt: bytes | None = None, *args: Any, **kargs: Any) -> type[Packet]:
        """The class that the first byte asks for."""
        return _BY_FMT_TYPE.get(_pkt[0], cls) if cls is TLP and _pkt else cls

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        """Fill in the length."""
        if self.length is None:
            words = len(pay) // DW_BYTES or 1
            low = int.from_bytes(pkt[LENGTH_OFFSET : LENGTH_OFFSET + 2], "big") | words % MAX_LENGTH_DW
            pkt = pkt[:LENGTH_OFFSET] + low.to_bytes(2, "big") + pkt[LENGTH_OFFSET + 2 :]
        return pkt + pay

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes | None]:
        end = (self.length or MAX_LENGTH_DW) * DW_BYTES if self.carries_data else 0
        return s[:end], s[end:]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return conf.raw_layer or Packet


class MRd32(TLP):
    """Memory read of an address below 4 GiB."""

    name = "MRd32"
    fields_desc = _request(0x00, XIntField("address", 0))


class MRd64(TLP):
    """Memory read."""

    name = "MRd64"
    fields_desc = _request(0x20, XLongField("address", 0))


class MWr32(TLP):
    """Memory write to an address below 4 GiB."""

    name = "MWr32"
    fields_desc = _request(0x40, XIntField("address", 0))
    carries_data = True


class MWr64(TLP):
    """Memory write."""

    name = "MWr64"
    fields_desc = _request(0x60, XLongField("address", 0))
    carries_data = True


class CplD(TLP):
    """Completion with data; `byte_count` is what the read is still owed, this data included (0: 4096)."""

    name = "CplD"
    fields_desc = [
        *_first_dw(0x4A),
        XShortField("completer", 0),
        BitField("status", 0, 3),
        BitField("bcm", 0, 1),
        BitField("byte_count", 0, 12),
        XShortField("requester", 0),
        XByteField("tag", 0),
        BitField("reserved", 0, 1),
        XBitField("lower_address", 0, 7),
    ]
    carries_data = True


_BY_FMT_TYPE: dict[int, type[Packet]] = {0x00: MRd32, 0x20: MRd64, 0x40: MWr32, 0x60: MWr64, 0x4A: CplD}
TLPS: tuple[type[Packet], ...] = (TLP, *_BY_FMT_TYPE.values())
"""All classes that may stand on LinkControl."""
