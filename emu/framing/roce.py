"""RoCEv2 frames: Ethernet, IPv4, UDP 4791, BTH, ICRC (IBTA annex A17); no FCS in the bytes, but in their wire time."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from zlib import crc32

from emu.addresses import Address
from emu.crc import FCS_BYTES, ICRC_BYTES, icrc_roce_ipv4
from emu.errors import ScenarioError, WireError
from emu.frame import Envelope, Frame
from emu.framing import bth
from emu.framing.prototype import roce_head
from emu.opcodes import EXTENSION_BYTES

UDP_PORT = 4791
ETHERTYPE_IPV4 = 0x0800
PROTOCOL_UDP = 17
PRIORITIES = 8

ETHERNET = Struct("!6s6sH")
IPV4 = Struct("!BBHHHBBHII")  # version and IHL, ToS, length, id, flags and fragment, TTL, protocol, checksum, addresses
UDP = Struct("!HHHH")  # source and destination port, length, checksum
IPV4_OFFSET = ETHERNET.size
UDP_OFFSET = IPV4_OFFSET + IPV4.size
BTH_OFFSET = UDP_OFFSET + UDP.size

TOS_AND_LENGTH = Struct("!BH")
TOS_OFFSET = IPV4_OFFSET + 1
TTL_OFFSET = IPV4_OFFSET + 8
CHECKSUM = Struct("!H")
CHECKSUM_OFFSET = IPV4_OFFSET + 10
IPV4_ADDRESSES = Struct("!II")
IPV4_ADDRESSES_OFFSET = IPV4_OFFSET + 12
UDP_LENGTH_OFFSET = UDP_OFFSET + 4
PORT = Struct("!H")

VERSION_4_NO_OPTIONS = 0x45
FRAGMENT_MASK = 0x3FFF  # more fragments, or an offset
CE = 0b11  # RFC 3168: congestion experienced
DSCP_SHIFT = 2
DSCP_PRIORITIES = tuple(dscp >> 3 for dscp in range(64))  # the class selector: what no map says otherwise

PREAMBLE_AND_GAP_BYTES = 20
MIN_FRAME_BYTES = 64
_FIXED_BYTES = BTH_OFFSET + bth.BTH_BYTES + ICRC_BYTES + FCS_BYTES

_HASHED = Struct("!IIHH")


def udp_source_port(source_qp: int, destination_qp: int) -> int:
    """The port that gives a connection its path: a flow label of both queue pairs, folded as Linux does."""
    label = source_qp * destination_qp
    label ^= label >> 20
    label = (label ^ label >> 40) & 0xFFFFF
    return 0xC000 | (label & 0x3FFF) ^ (label >> 14)


def path_hash(source: int, destination: int, source_port: int, destination_port: int = UDP_PORT) -> int:
    """32 bits of all that a switch may hash: IPv4 addresses and UDP ports."""
    return crc32(_HASHED.pack(source, destination, source_port, destination_port))


class RoceFraming:
    """RoCEv2 over IPv4, untagged."""

    name = "rocev2"

    def __init__(
        self,
        framing_overhead_bytes: int = PREAMBLE_AND_GAP_BYTES,
        priorities: Sequence[int] = DSCP_PRIORITIES,
        lanes: Sequence[int] = range(PRIORITIES),
    ) -> None:
        """`framing_overhead_bytes` of wire time around each frame: preamble and gap (IEEE 802.3).

        `priorities` of each DSCP, `lanes` (queues) of each priority.
        """
        self.priorities = priorities
        self.lanes = lanes
        self._least_bytes = MIN_FRAME_BYTES + framing_overhead_bytes
        self._fixed_bytes = tuple(_FIXED_BYTES + framing_overhead_bytes + extension for extension in EXTENSION_BYTES)

    def wire_bytes(self, frame: Frame) -> int:
        """Frame with FCS, 64 bytes at least, plus preamble and gap."""
        size = self._fixed_bytes[frame.opcode] + (len(frame.payload) + 3 & -4)
        return size if size > self._least_bytes else self._least_bytes

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
        """What frames from `source_qp` to `destination_qp` share; `source_port` None: derived from both."""
        if not 0 <= priority < PRIORITIES:
            raise ScenarioError(f"priority {priority}: Ethernet has 0 to {PRIORITIES - 1}")
        port = udp_source_port(source_qp, destination_qp) if source_port is None else source_port
        return Envelope(
            self,
            source=source.ipv4,
            destination=destination.ipv4,
            source_mac=source.mac,
            destination_mac=destination.mac,
            destination_qp=destination_qp,
            udp_source_port=port,
            tos=tos,
            ttl=ttl,
            priority=priority,
            lane=self.lanes[priority],
            path_hash=path_hash(source.ipv4, destination.ipv4, port),
        )

    def prepare(self) -> None:
        """Let Scapy make what every frame starts from, before the first one is sent."""
        for opcode in bth.PREPARED:
            roce_head(opcode)

    def encode(self, frame: Frame) -> bytes:
        """Destination MAC to ICRC."""
        templates = frame.envelope.templates
        key = bth.template_key(frame)
        template: bth.Template | None = templates.get(key)
        if template is None:
            template = templates[key] = _template(frame)
        head, icrc, pad, pack = template
        payload = frame.payload
        tail = bth.SEQUENCE.pack(frame.ack_request << 31 | frame.psn)
        if pack is not None:
            tail += pack(frame)
        icrc = crc32(payload, crc32(tail, icrc))
        if pad:
            icrc = crc32(pad, icrc)
        return b"".join((head, tail, payload, pad, icrc.to_bytes(ICRC_BYTES, "little")))

    def decode(self, data: bytes) -> Frame:
        """The frame; bytes after its ICRC (Ethernet padding) are nobody's. Raises WireError, CrcError for the ICRC."""
        if len(data) < BTH_OFFSET:
            raise WireError(f"{len(data)} B are no RoCEv2 frame")
        destination_mac, source_mac, ether_type = ETHERNET.unpack_from(data)
        if ether_type != ETHERTYPE_IPV4:
            raise WireError(f"EtherType 0x{ether_type:04x}: RoCEv2 rides IPv4 here")
        _, tos, length, _, _, ttl, _, _, source, destination = IPV4.unpack_from(data, IPV4_OFFSET)
        _check_ipv4(data)
        end = IPV4_OFFSET + length
        bth.check_extent(data, BTH_OFFSET, end)
        source_port = _check_udp(data, end)
        icrc = icrc_roce_ipv4(memoryview(data)[IPV4_OFFSET : end - ICRC_BYTES])
        if data[end - ICRC_BYTES : end] != icrc.to_bytes(ICRC_BYTES, "little"):
            raise bth.CrcError(f"ICRC of a frame of {len(data)} B is wrong")

        def envelope_of(pkey: int, destination_qp: int) -> Envelope:
            return Envelope(
                self,
                source=source,
                destination=destination,
                source_mac=int.from_bytes(source_mac, "big"),
                destination_mac=int.from_bytes(destination_mac, "big"),
                destination_qp=destination_qp,
                udp_source_port=source_port,
                tos=tos,
                ttl=ttl,
                priority=self.priorities[tos >> DSCP_SHIFT],
                lane=self.lanes[self.priorities[tos >> DSCP_SHIFT]],
                pkey=pkey,
                path_hash=path_hash(source, destination, source_port),
            )

        frame = bth.unpack(data, BTH_OFFSET, end, envelope_of)
        if tos & CE == CE:
            frame.fecn = True
        return frame


def _template(frame: Frame) -> bth.Template:
    envelope = frame.envelope
    address = bth.pack_address(frame)
    after_bth = EXTENSION_BYTES[frame.opcode] + len(frame.payload) + bth.pad_bytes(frame) + ICRC_BYTES
    udp_length = UDP.size + bth.BTH_BYTES + after_bth
    head = bytearray(roce_head(frame.opcode))
    ETHERNET.pack_into(
        head, 0, envelope.destination_mac.to_bytes(6, "big"), envelope.source_mac.to_bytes(6, "big"), ETHERTYPE_IPV4
    )
    tos = envelope.tos | CE if frame.fecn else envelope.tos
    TOS_AND_LENGTH.pack_into(head, TOS_OFFSET, tos, IPV4.size + udp_length)
    head[TTL_OFFSET] = envelope.ttl
    IPV4_ADDRESSES.pack_into(head, IPV4_ADDRESSES_OFFSET, envelope.source, envelope.destination)
    CHECKSUM.pack_into(head, CHECKSUM_OFFSET, 0)
    CHECKSUM.pack_into(head, CHECKSUM_OFFSET, _checksum(head[IPV4_OFFSET:UDP_OFFSET]))
    PORT.pack_into(head, UDP_OFFSET, envelope.udp_source_port)
    PORT.pack_into(head, UDP_LENGTH_OFFSET, udp_length)
    head[BTH_OFFSET:] = address
    return bth.template_of(frame, bytes(head), icrc_roce_ipv4(head[IPV4_OFFSET:]))


def _checksum(data: bytes | bytearray) -> int:
    """RFC 1071 over an even number of bytes; 0 over bytes that hold their own right checksum."""
    return -int.from_bytes(data, "big") % 0xFFFF  # 2**16 is 1 modulo 0xFFFF, so this is the sum of the words


def _check_ipv4(data: bytes) -> None:
    version, _, _, _, fragment, _, protocol, *_ = IPV4.unpack_from(data, IPV4_OFFSET)
    if version != VERSION_4_NO_OPTIONS or protocol != PROTOCOL_UDP or fragment & FRAGMENT_MASK:
        raise WireError("an IPv4 packet with options, in fragments or without UDP is no RoCEv2 frame")
    if _checksum(data[IPV4_OFFSET:UDP_OFFSET]):
        raise WireError("IPv4 header checksum is wrong")


def _check_udp(data: bytes, end: int) -> int:
    """The source port. Raises WireError for another destination port, or a length or checksum that is wrong."""
    source_port, destination_port, length, checksum = UDP.unpack_from(data, UDP_OFFSET)
    if destination_port != UDP_PORT:
        raise WireError(f"UDP port {destination_port}: RoCEv2's is {UDP_PORT}")
    if length != end - UDP_OFFSET:
        raise WireError(f"UDP length {length} inside {end - UDP_OFFSET} B")
    if checksum:
        pseudo = data[IPV4_ADDRESSES_OFFSET:UDP_OFFSET] + PORT.pack(PROTOCOL_UDP) + PORT.pack(length)
        if _checksum(pseudo + data[UDP_OFFSET:end]):
            raise WireError("UDP checksum is wrong")
    return int(source_port)
