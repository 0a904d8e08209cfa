"""What mlx5 NIC and driver write for each other: send WQEs segment by segment, doorbells, CQEs (mlx5dv.h).

    Control(opcode="RDMA_WRITE", index=5, qpn=0x12, ce="always") / RemoteAddress(va=1, rkey=2) / Data(byte_count=64)

builds a whole WQE: DS and the padding to 64 bytes are filled in. Read, the opcode and DS say what follows."""

from __future__ import annotations

from typing import Any

from scapy.config import conf
from scapy.fields import (
    AnyField,
    BitEnumField,
    BitField,
    BitFieldLenField,
    ByteEnumField,
    ByteField,
    IntField,
    LongField,
    ShortField,
    StrFixedLenField,
    StrLenField,
    XBitField,
    XByteField,
    XIntField,
    XLongField,
    XShortField,
    XStrFixedLenField,
)
from scapy.packet import Packet, Padding

SEGMENT_BYTES = 16
WQEBB_BYTES = 64
DS_OFFSET = 7
INLINE_BIT = 0x80
SEND_INVAL, SEND, SEND_IMM, WRITE, WRITE_IMM, READ = 0x01, 0x0A, 0x0B, 0x08, 0x09, 0x10
ATOMIC_CS, ATOMIC_FA, MASKED_CS, MASKED_FA = 0x11, 0x12, 0x14, 0x15
OPMOD_MASKED_8 = 0x09
OPCODES = {
    0x00: "NOP",
    SEND_INVAL: "SEND_INVAL",
    WRITE: "RDMA_WRITE",
    WRITE_IMM: "RDMA_WRITE_IMM",
    SEND: "SEND",
    SEND_IMM: "SEND_IMM",
    0x0E: "TSO",
    READ: "RDMA_READ",
    ATOMIC_CS: "ATOMIC_CS",
    ATOMIC_FA: "ATOMIC_FA",
    MASKED_CS: "ATOMIC_MASKED_CS",
    MASKED_FA: "ATOMIC_MASKED_FA",
    0x19: "FMR",
    0x1B: "LOCAL_INV",
    0x23: "DUMP",
    0x25: "UMR",
    0x2F: "MMO",
}
CQE_OPCODES = {
    0: "requester",
    1: "responder WRITE_IMM",
    2: "responder SEND",
    3: "responder SEND_IMM",
    4: "responder SEND_INVAL",
    5: "resize",
    6: "no packet",
    12: "signature error",
    13: "requester error",
    14: "responder error",
    15: "invalid",
}
SYNDROMES = {
    0x01: "local length",
    0x02: "local QP operation",
    0x04: "local protection",
    0x05: "WR flushed",
    0x06: "MW bind",
    0x10: "bad response",
    0x11: "local access",
    0x12: "remote invalid request",
    0x13: "remote access",
    0x14: "remote operation",
    0x15: "transport retry exceeded",
    0x16: "RNR retry exceeded",
    0x22: "remote aborted",
}


class Segment(Packet):
    """Base of what a WQE is made of: the control segment says what comes next, and when it ends."""

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        return _following(self, payload)


class Control(Segment):
    """Control segment. Left None, `ds` is computed when built; so is padding to whole WQEBBs, unless given."""

    name = "WQE control"
    fields_desc = [
        XByteField("opmod", 0),
        ShortField("index", 0),
        ByteEnumField("opcode", 0, OPCODES),
        XBitField("qpn", 0, 24),
        ByteField("ds", None),
        XByteField("signature", 0),
        ShortField("stream", 0),
        BitEnumField("fence", 0, 3, {1: "initiator small", 3: "strong ordering", 4: "fence"}),
        BitField("reserved4", 0, 1),
        BitEnumField("ce", 0, 2, {0: "never", 2: "always"}),
        BitField("solicited", 0, 1),
        BitField("reserved0", 0, 1),
        XIntField("imm", 0),
    ]

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        """Fill in DS, and pad."""
        size = len(pkt) + len(pay)
        if self.ds is None:
            pkt = pkt[:DS_OFFSET] + bytes([-(-size // SEGMENT_BYTES)]) + pkt[DS_OFFSET + 1 :]
        return pkt + pay if self.haslayer(Padding) else pkt + pay + bytes(-size % WQEBB_BYTES)


class RemoteAddress(Segment):
    """Where in the other side's memory."""

    name = "WQE remote address"
    fields_desc = [XLongField("va", 0), XIntField("rkey", 0), XIntField("reserved", 0)]


class Data(Segment):
    """A piece of local memory; a byte count of 0 means 2 GiB."""

    name = "WQE data"
    fields_desc = [IntField("byte_count", 0), XIntField("lkey", 0), XLongField("address", 0)]


class Inline(Segment):
    """Data in the WQE itself, padded to whole segments; nothing follows it."""

    name = "WQE inline data"
    fields_desc = [
        BitField("inline", 1, 1),
        BitFieldLenField("length", None, 31, length_of="load"),
        StrLenField("load", b"", length_from=lambda packet: packet.length),
        StrLenField("pad", b"", length_from=lambda packet: -(4 + packet.length) % SEGMENT_BYTES),
    ]

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        """Pad."""
        return pkt + bytes(-len(pkt) % SEGMENT_BYTES) + pay


class Atomic(Segment):
    """Operands of 8 bytes; a masked fetch-and-add has its field boundary in `compare`."""

    name = "WQE atomic"
    fields_desc = [XLongField("swap_add", 0), XLongField("compare", 0)]


class AtomicMasks(Segment):
    """Masks of a compare-and-swap of 8 bytes."""

    name = "WQE atomic masks"
    fields_desc = [XLongField("swap_mask", 0), XLongField("compare_mask", 0)]


class MaskedAtomic4(Segment):
    """Operands of 4 bytes and their masks; a fetch-and-add has its field boundary in `compare`."""

    name = "WQE masked atomic"
    fields_desc = [XIntField(name, 0) for name in ("swap_add", "compare", "swap_mask", "compare_mask")]


class Doorbell(Packet):
    """The 8 bytes that IBGDA writes to the doorbell register; a WQE's first 8 have an opcode or DS there."""

    name = "doorbell"
    fields_desc = [
        XByteField("opmod", 0),
        ShortField("producer", 0),
        XByteField("opcode", 0),
        XBitField("qpn", 0, 24),
        ByteField("ds", 0),
    ]

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes | None]:
        return b"", s


_LAST_8_BYTES: list[AnyField] = [
    ByteEnumField("send_opcode", 0, OPCODES),
    XBitField("qpn", 0, 24),
    ShortField("wqe_counter", 0),
    XByteField("signature", 0),
    BitEnumField("opcode", 0, 4, CQE_OPCODES),
    BitField("format", 0, 2),
    BitField("solicited", 0, 1),
    BitField("owner", 0, 1),
]


class CQE(Packet):
    """A completion queue entry of 64 bytes; read, it is an ErrorCQE if its opcode says so."""

    name = "CQE"
    fields_desc = [
        XStrFixedLenField("reserved0", bytes(17), 17),
        XByteField("ml_path", 0),
        XStrFixedLenField("reserved18", bytes(4), 4),
        XShortField("slid", 0),
        XByteField("flags", 0),
        XBitField("remote_qpn", 0, 24),
        XIntField("reserved28", 0),
        XIntField("srqn", 0),
        XIntField("imm", 0),
        XIntField("reserved40", 0),
        IntField("byte_count", 0),
        LongField("timestamp", 0),
        *_LAST_8_BYTES,
    ]

    @classmethod
    def dispatch_hook(cls, _pkt: bytes | None = None, *args: Any, **kargs: Any) -> type[Packet]:
        """The class that the opcode in the last byte asks for."""
        return ErrorCQE if cls is CQE and _pkt and _pkt[63:64] and _pkt[63] >> 4 in (13, 14) else cls

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes | None]:
        return b"", s


class ErrorCQE(CQE):
    """A completion that failed."""

    name = "error CQE"
    fields_desc = [
        StrFixedLenField("reserved0", bytes(32), 32),
        XIntField("srqn", 0),
        StrFixedLenField("reserved36", bytes(18), 18),
        XByteField("vendor_syndrome", 0),
        ByteEnumField("syndrome", 0, SYNDROMES),
        *_LAST_8_BYTES,
    ]


_HEADS: dict[int, tuple[type[Packet], ...]] = {
    SEND_INVAL: (),
    SEND: (),
    SEND_IMM: (),
    WRITE: (RemoteAddress,),
    WRITE_IMM: (RemoteAddress,),
    READ: (RemoteAddress,),
    ATOMIC_CS: (RemoteAddress, Atomic),
    ATOMIC_FA: (RemoteAddress, Atomic),
    MASKED_CS: (RemoteAddress, MaskedAtomic4),
    MASKED_FA: (RemoteAddress, MaskedAtomic4),
}
_HEADS_8: dict[int, tuple[type[Packet], ...]] = {
    MASKED_CS: (RemoteAddress, Atomic, AtomicMasks),
    MASKED_FA: (RemoteAddress, Atomic),
}
"""What follows the control segment before data: of each opcode, and of masked atomics of 8 bytes."""


def _following(layer: Packet, rest: bytes) -> type[Packet]:
    """The segment that `rest` begins with."""
    passed = 0
    under: Packet | None = layer
    while under is not None and not isinstance(under, Control):
        passed += 1
        under = under.underlayer
    if under is None or isinstance(layer, Inline) or 1 + passed >= under.ds:
        return Padding
    heads = (_HEADS_8 if under.opmod == OPMOD_MASKED_8 else _HEADS).get(under.opcode)
    if heads is None:
        return conf.raw_layer or Packet
    if passed < len(heads):
        return heads[passed]
    return Inline if rest[0] & INLINE_BIT else Data
