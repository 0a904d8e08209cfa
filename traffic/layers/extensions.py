"""The extended transport headers that follow BTH (IBTA vol. 1, 9.3), and which layer follows which."""

from __future__ import annotations

from scapy.config import conf
from scapy.fields import BitField, XBitField, XByteField, XIntField, XLongField
from scapy.packet import Packet

from emu.crc import ICRC_BYTES
from emu.opcodes import EXTENSIONS
from traffic.layers.trailer import ICRC, Pad, Payload, pad_count, trailer_bytes, transport_of


class ExtendedHeader(Packet):
    """Base of the headers after BTH: the opcode says what comes next."""

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return following(self, payload)


class RETH(ExtendedHeader):
    """RDMA extended header: where to write or read, and how many bytes."""

    name = "RETH"
    fields_desc = [XLongField("va", 0), XIntField("rkey", 0), XIntField("dmalen", 0)]


class AETH(ExtendedHeader):
    """ACK extended header: syndrome (ACK, RNR NAK or NAK) and message sequence number."""

    name = "AETH"
    fields_desc = [XByteField("syndrome", 0), BitField("msn", 0, 24)]


class ImmDt(ExtendedHeader):
    """Immediate data."""

    name = "ImmDt"
    fields_desc = [XIntField("imm", 0)]


class IETH(ExtendedHeader):
    """Invalidate extended header: the key to invalidate."""

    name = "IETH"
    fields_desc = [XIntField("rkey", 0)]


class AtomicETH(ExtendedHeader):
    """Atomic extended header: operand and, for Compare Swap, what to compare with."""

    name = "AtomicETH"
    fields_desc = [XLongField("va", 0), XIntField("rkey", 0), XLongField("swap_or_add", 0), XLongField("compare", 0)]


class AtomicAckETH(ExtendedHeader):
    """Atomic ACK extended header: what the memory held before."""

    name = "AtomicAckETH"
    fields_desc = [XLongField("original", 0)]


class DETH(ExtendedHeader):
    """Datagram extended header: key and source queue pair."""

    name = "DETH"
    fields_desc = [XIntField("qkey", 0), BitField("reserved", 0, 8), XBitField("sqpn", 0, 24)]


class RDETH(ExtendedHeader):
    """Reliable datagram extended header: the end-to-end context meant."""

    name = "RDETH"
    fields_desc = [BitField("reserved", 0, 8), XBitField("eecn", 0, 24)]


class XRCETH(ExtendedHeader):
    """Extended reliable connection header: the shared receive queue meant."""

    name = "XRCETH"
    fields_desc = [BitField("reserved", 0, 8), XBitField("srqn", 0, 24)]


class FETH(ExtendedHeader):
    """Flush extended header: how far, and how much (IBTA vol. 1, release 1.5)."""

    name = "FETH"
    fields_desc = [BitField("reserved", 0, 26), BitField("selectivity", 0, 2), BitField("placement", 0, 4)]


class CNPReserved(ExtendedHeader):
    """The 16 reserved bytes of a congestion notification packet (annex A17)."""

    name = "CNPReserved"
    fields_desc = [XLongField("reserved1", 0), XLongField("reserved2", 0)]


HEADERS: dict[str, type[Packet]] = {
    "RETH": RETH,
    "AETH": AETH,
    "ImmDt": ImmDt,
    "IETH": IETH,
    "AtomicETH": AtomicETH,
    "AtomicAckETH": AtomicAckETH,
    "DETH": DETH,
    "RDETH": RDETH,
    "XRCETH": XRCETH,
    "FETH": FETH,
    "CNPReserved": CNPReserved,
}
"""The class of each header named in emu.opcodes."""


def following(layer: Packet, rest: bytes) -> type[Packet]:
    """The layer that `rest` begins with, after BTH or an extended header."""
    transport = transport_of(layer)
    if transport is None:
        return conf.raw_layer or Packet
    names = EXTENSIONS[transport.opcode]
    index = 0 if layer is transport else names.index(layer.name) + 1
    if index < len(names):
        return HEADERS[names[index]]
    if len(rest) < ICRC_BYTES:
        return conf.raw_layer or Packet  # cut short
    if len(rest) > trailer_bytes(layer):
        return Payload
    return Pad if pad_count(layer) else ICRC
