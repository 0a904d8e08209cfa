"""Native InfiniBand frames: LRH, BTH, ICRC, VCRC (IBTA vol. 1, chapter 5), behind an Ethernet header on a veth."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from zlib import crc32

from emu.addresses import Address
from emu.crc import ICRC_BYTES, VCRC_BYTES, icrc_local, more_vcrc, vcrc
from emu.errors import ScenarioError, WireError
from emu.frame import Envelope, Frame
from emu.framing import bth
from emu.framing.prototype import native_head
from emu.opcodes import EXTENSION_BYTES

ETHERTYPE_NATIVE = 0x88B5
MANAGEMENT_VL = 15

ETHERNET = Struct("!6s6sH")
LRH = Struct("!BBHHH")  # VL and LVer, SL and LNH, DLID, length in words up to the ICRC, SLID
LRH_OFFSET = ETHERNET.size
BTH_OFFSET = LRH_OFFSET + LRH.size
WORD_BYTES = 4
MAX_WORDS = 0x7FF
LNH_LOCAL = 2
LNH_MASK = 0b11
LRH_VERSION_MASK = 0x0F

_FIXED_BYTES = LRH.size + bth.BTH_BYTES + ICRC_BYTES + VCRC_BYTES

_HASHED = Struct("!HHI")


def path_hash(source: int, destination: int, destination_qp: int) -> int:
    """32 bits of all that a switch may hash: LIDs and the destination queue pair."""
    return crc32(_HASHED.pack(source, destination, destination_qp))


NativeTemplate = tuple[bytes, int, bytes, bth.Pack | None, int]
"""A Template and the VCRC of its bytes."""


class NativeFraming:
    """Local InfiniBand packets (LNH 2). `framing_overhead_bytes`: wire time of the delimiters and gap of each."""

    name = "native"

    def __init__(self, framing_overhead_bytes: int, lanes: Sequence[int] = range(16)) -> None:
        """`lanes`: the VL of each SL."""
        self.lanes = lanes
        fixed = _FIXED_BYTES + framing_overhead_bytes
        self._wire_bytes = tuple(fixed + extension for extension in EXTENSION_BYTES)

    def wire_bytes(self, frame: Frame) -> int:
        """LRH to VCRC, plus the framing overhead."""
        return self._wire_bytes[frame.opcode] + (len(frame.payload) + 3 & -4)

    def envelope(
        self,
        source: Address,
        destination: Address,
        *,
        destination_qp: int,
        source_qp: int,
        priority: int = 0,
        tos: int = 0,
        ttl: int = 64,
        source_port: int | None = None,
    ) -> Envelope:
        """What frames from `source_qp` to `destination_qp` share; `priority` is SL and VL; no IP here."""
        del source_qp, tos, ttl, source_port
        if not 0 <= priority < MANAGEMENT_VL:
            raise ScenarioError(f"service level {priority}: data may use 0 to {MANAGEMENT_VL - 1}")
        return Envelope(
            self,
            source=source.lid,
            destination=destination.lid,
            source_mac=source.mac,
            destination_mac=destination.mac,
            destination_qp=destination_qp,
            priority=priority,
            lane=self.lanes[priority],
            path_hash=path_hash(source.lid, destination.lid, destination_qp),
        )

    def prepare(self) -> None:
        """Let Scapy make what every frame starts from, before the first one is sent."""
        for opcode in bth.PREPARED:
            native_head(opcode)

    def encode(self, frame: Frame) -> bytes:
        """Destination MAC to VCRC."""
        templates = frame.envelope.templates
        key = bth.template_key(frame)
        template: NativeTemplate | None = templates.get(key)
        if template is None:
            template = templates[key] = _template(frame)
        head, icrc, pad, pack, head_vcrc = template
        payload = frame.payload
        tail = bth.SEQUENCE.pack(frame.ack_request << 31 | frame.psn)
        if pack is not None:
            tail += pack(frame)
        icrc = crc32(payload, crc32(tail, icrc))
        if pad:
            icrc = crc32(pad, icrc)
        end = pad + icrc.to_bytes(ICRC_BYTES, "little")
        checksum = more_vcrc(end, more_vcrc(payload, more_vcrc(tail, head_vcrc)))
        return b"".join((head, tail, payload, end, checksum.to_bytes(VCRC_BYTES, "little")))

    def decode(self, data: bytes) -> Frame:
        """The frame; bytes after its VCRC are nobody's. Raises WireError, CrcError for VCRC or ICRC."""
        if len(data) < BTH_OFFSET:
            raise WireError(f"{len(data)} B are no native frame")
        destination_mac, source_mac, ether_type = ETHERNET.unpack_from(data)
        if ether_type != ETHERTYPE_NATIVE:
            raise WireError(f"EtherType 0x{ether_type:04x}: native frames ride 0x{ETHERTYPE_NATIVE:04x}")
        lane, level, destination, words, source = LRH.unpack_from(data, LRH_OFFSET)
        if lane & LRH_VERSION_MASK or level & LNH_MASK != LNH_LOCAL:
            raise WireError(f"an LRH of version {lane & LRH_VERSION_MASK} and LNH {level & LNH_MASK} is not ours")
        end = LRH_OFFSET + (words & MAX_WORDS) * WORD_BYTES
        bth.check_extent(data, BTH_OFFSET, end)
        _check_crcs(data, end)

        def envelope_of(pkey: int, destination_qp: int) -> Envelope:
            return Envelope(
                self,
                source=source,
                destination=destination,
                source_mac=int.from_bytes(source_mac, "big"),
                destination_mac=int.from_bytes(destination_mac, "big"),
                destination_qp=destination_qp,
                priority=level >> 4,
                lane=self.lanes[level >> 4],
                pkey=pkey,
                path_hash=path_hash(source, destination, destination_qp),
            )

        return bth.unpack(data, BTH_OFFSET, end, envelope_of)


def _template(frame: Frame) -> NativeTemplate:
    envelope = frame.envelope
    address = bth.pack_address(frame)
    size = LRH.size + bth.BTH_BYTES + EXTENSION_BYTES[frame.opcode]
    size += len(frame.payload) + bth.pad_bytes(frame) + ICRC_BYTES
    head = bytearray(native_head(frame.opcode))
    ETHERNET.pack_into(
        head, 0, envelope.destination_mac.to_bytes(6, "big"), envelope.source_mac.to_bytes(6, "big"), ETHERTYPE_NATIVE
    )
    level = envelope.priority
    LRH.pack_into(
        head,
        LRH_OFFSET,
        envelope.lane << 4,
        level << 4 | LNH_LOCAL,
        envelope.destination,
        size // WORD_BYTES,
        envelope.source,
    )
    head[BTH_OFFSET:] = address
    template = bth.template_of(frame, bytes(head), icrc_local(head[LRH_OFFSET:]))
    return (*template, vcrc(memoryview(head)[LRH_OFFSET:]))


def _check_crcs(data: bytes, end: int) -> None:
    """Raise CrcError unless VCRC and ICRC are right, or WireError if the VCRC is cut off."""
    view = memoryview(data)
    if len(data) < end + VCRC_BYTES:
        raise WireError(f"a frame of {len(data)} B has no VCRC")
    if data[end : end + VCRC_BYTES] != vcrc(view[LRH_OFFSET:end]).to_bytes(VCRC_BYTES, "little"):
        raise bth.CrcError(f"VCRC of a frame of {len(data)} B is wrong")
    icrc = icrc_local(view[LRH_OFFSET : end - ICRC_BYTES])
    if data[end - ICRC_BYTES : end] != icrc.to_bytes(ICRC_BYTES, "little"):
        raise bth.CrcError(f"ICRC of a frame of {len(data)} B is wrong")
