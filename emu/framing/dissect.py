"""Captured bytes to a Dissection, by struct: any link type and network we know, whole or cut, right or damaged.

Unlike the framings' decode it refuses nothing that it can name: what is wrong with a frame is its verdict."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from struct import Struct

from emu.crc import ICRC_BYTES, VCRC_BYTES, icrc_global, icrc_local, icrc_roce_ipv4, icrc_roce_ipv6, icrc_roce_v1, vcrc
from emu.errors import WireError
from emu.framing import bth, control, native, roce
from emu.framing.dissect_control import dissect_fcp, dissect_link_control, dissect_mac_control
from emu.framing.dissect_transport import Icrc, dissect_transport
from emu.framing.dissection import Dissection, Subject, Verdict

LINK_ETHERNET = 1
LINK_USER0 = 147  # set to InfiniBand by whoever writes or reads it
LINK_ERF = 197
LINK_INFINIBAND = 247

ETHERTYPE_IPV6 = 0x86DD
ETHERTYPE_ROCE_V1 = 0x8915
VLAN_TAGS = (0x8100, 0x88A8, 0x9100)
VLAN = Struct("!HH")  # priority (3 bits), DEI, identifier (12 bits); EtherType

IPV6 = Struct("!IHBB16s16s")  # version, traffic class, flow label; payload length; next header; hop limit; addresses
IPV6_PAYLOAD_LENGTH = 4
NEXT_HEADER_BTH = 0x1B  # of a GRH, which is laid out as IPv6's header
LNH_GLOBAL = 3
LNH_NAMES = {0: "raw packet", 1: "raw IPv6 packet"}

ERF = Struct("<QBBHHH")  # time; then, big endian: type, flags, record length, loss counter, wire length
ERF_ETHERNET, ERF_INFINIBAND, ERF_INFINIBAND_LINK = 2, 21, 25
ERF_TYPE_OFFSET = 8
ERF_MORE = 0x80  # an extension header of 8 bytes follows
ERF_EXTENSION_BYTES = 8
ERF_ETHERNET_PAD_BYTES = 2


def dissect(link_type: int, data: bytes, original_bytes: int | None = None) -> Dissection:
    """What the frame says; `original_bytes` is its length before a snap length cut it.

    Raises WireError for what has no whole link header, nothing else."""
    original = len(data) if original_bytes is None else max(original_bytes, len(data))
    read = _LINKS.get(link_type)
    if read is None:
        return Subject(data, original).other(f"link type {link_type}")
    return read(Subject(data, original))


def _ethernet(frame: Subject) -> Dissection:
    data = frame.data
    if len(data) < roce.ETHERNET.size:
        raise WireError(f"{len(data)} B are no Ethernet frame")
    destination, source, ether_type = roce.ETHERNET.unpack_from(data)
    frame.found.update(source=source.hex(":"), destination=destination.hex(":"))
    offset = roce.ETHERNET.size
    tags: list[tuple[int, int]] = []
    while ether_type in VLAN_TAGS and len(data) >= offset + VLAN.size:
        tag, ether_type = VLAN.unpack_from(data, offset)
        tags.append((tag >> 13, tag & 0xFFF))
        offset += VLAN.size
    frame.found["vlan"] = tuple(tags)
    if tags and ether_type in (control.ETHERTYPE_MAC_CONTROL, control.ETHERTYPE_LINK_CONTROL):
        return frame.other("link flow control behind a VLAN tag")
    read = _ETHER_TYPES.get(ether_type)
    return frame.other(f"EtherType 0x{ether_type:04x}") if read is None else read(frame, offset)


def _ipv4(frame: Subject, start: int) -> Dissection:
    data = frame.data
    if len(data) < start + roce.IPV4.size:
        return frame.other("IPv4 cut short")
    version, tos, length, _, fragment, _, protocol, _, source, destination = roce.IPV4.unpack_from(data, start)
    udp = start + (version & 0x0F) * 4
    frame.found.update(source=str(IPv4Address(source)), destination=str(IPv4Address(destination)))
    frame.found.update(dscp=tos >> 2, ecn=tos & 3)
    if version >> 4 != 4 or udp < start + roce.IPV4.size:
        return frame.other("IPv4 with a malformed header")
    if fragment & roce.FRAGMENT_MASK or protocol != roce.PROTOCOL_UDP:
        return frame.other("IPv4 fragment" if fragment & roce.FRAGMENT_MASK else f"IPv4 protocol {protocol}")
    return _udp(frame, start, udp, start + length, icrc_roce_ipv4)


def _ipv6(frame: Subject, start: int) -> Dissection:
    data = frame.data
    if len(data) < start + IPV6.size:
        return frame.other("IPv6 cut short")
    first, length, following, _, source, destination = IPV6.unpack_from(data, start)
    tos = first >> 20 & 0xFF
    frame.found.update(source=str(IPv6Address(source)), destination=str(IPv6Address(destination)))
    frame.found.update(dscp=tos >> 2, ecn=tos & 3)
    if first >> 28 != 6 or following != roce.PROTOCOL_UDP:
        return frame.other(f"IPv6 next header {following}")
    udp = start + IPV6.size
    return _udp(frame, start, udp, udp + length, icrc_roce_ipv6)


def _udp(frame: Subject, packet: int, start: int, end: int, icrc: Icrc) -> Dissection:
    """RoCEv2 if either port is 4791, whatever the other one is known for."""
    if len(frame.data) < start + roce.UDP.size:
        return frame.other("UDP cut short")
    source_port, destination_port, length, _ = roce.UDP.unpack_from(frame.data, start)
    frame.found.update(source_port=source_port, destination_port=destination_port)
    if roce.UDP_PORT not in (source_port, destination_port):
        return frame.other(f"UDP port {destination_port}")
    if length != end - start:
        frame.found["problem"] = f"UDP length {length} inside {end - start} B"
    frame.found["network"] = "rocev2"
    return dissect_transport(frame, packet, start + roce.UDP.size, end, icrc)


def _roce_v1(frame: Subject, start: int) -> Dissection:
    frame.found["network"] = "rocev1"
    end = _grh(frame, start)
    return dissect_transport(frame, start, start + IPV6.size, end, icrc_roce_v1)


def _grh(frame: Subject, start: int) -> int:
    """Where the packet ends, as its GRH says (a cut one: beyond what there is)."""
    if len(frame.data) < start + IPV6.size:
        return max(frame.original_bytes, start + IPV6.size + bth.BTH_BYTES + ICRC_BYTES)
    _, length, following, _, source, destination = IPV6.unpack_from(frame.data, start)
    frame.found.update(source=str(IPv6Address(source)), destination=str(IPv6Address(destination)))
    if following != NEXT_HEADER_BTH:
        frame.found["problem"] = f"GRH with next header 0x{following:02x}"
    return start + IPV6.size + int(length)


def _infiniband(frame: Subject, start: int = 0) -> Dissection:
    """LRH to VCRC: a captured link's, or what rides EtherType 0x88B5."""
    data, found = frame.data, frame.found
    if len(data) < start + native.LRH.size:
        if start:
            return frame.other("native frame cut short")
        raise WireError(f"{len(data)} B are no InfiniBand packet")
    lane, level, destination, words, source = native.LRH.unpack_from(data, start)
    end = start + (words & native.MAX_WORDS) * native.WORD_BYTES
    header = level & native.LNH_MASK
    found.update(network="native", source=f"LID {source}", destination=f"LID {destination}")
    found.update(virtual_lane=lane >> 4, service_level=level >> 4, frame_bytes=end + VCRC_BYTES)
    found["vcrc"] = _vcrc_verdict(frame, start, end)
    if lane & native.LRH_VERSION_MASK:
        found["problem"] = f"LRH version {lane & native.LRH_VERSION_MASK}"
    if header in LNH_NAMES:
        return frame.end(info=LNH_NAMES[header])
    transport = start + native.LRH.size
    if header != LNH_GLOBAL:
        return dissect_transport(frame, start, transport, end, icrc_local)
    if _grh(frame, transport) != end and len(data) >= transport + IPV6.size:
        found.setdefault("problem", "GRH and LRH give different lengths")
    return dissect_transport(frame, start, transport + IPV6.size, end, icrc_global)


def _vcrc_verdict(frame: Subject, start: int, end: int) -> Verdict:
    data = frame.data
    if len(data) < end + VCRC_BYTES:
        if frame.cut:
            return "unchecked"
        return "none" if len(data) == end else "bad"
    right = vcrc(memoryview(data)[start:end]).to_bytes(VCRC_BYTES, "little")
    return "ok" if data[end : end + VCRC_BYTES] == right else "bad"


def _erf(frame: Subject) -> Dissection:
    """An ERF record: its header, then the frame that its type says."""
    data = frame.data
    if len(data) < ERF.size:
        raise WireError(f"{len(data)} B are no ERF record")
    kind = more = data[ERF_TYPE_OFFSET]
    wire_bytes = int.from_bytes(data[14:16], "big")
    offset = ERF.size
    while more & ERF_MORE and offset + ERF_EXTENSION_BYTES <= len(data):
        more = data[offset]
        offset += ERF_EXTENSION_BYTES
    kind &= ~ERF_MORE
    if kind == ERF_ETHERNET:
        offset += ERF_ETHERNET_PAD_BYTES
    read = _ERF_TYPES.get(kind)
    if read is None:
        return frame.other(f"ERF record type {kind}")
    inner = data[offset:]
    return read(Subject(inner, max(len(inner), wire_bytes, frame.original_bytes - offset)))


_LINKS: dict[int, Callable[[Subject], Dissection]] = {
    LINK_ETHERNET: _ethernet,
    LINK_USER0: _infiniband,
    LINK_ERF: _erf,
    LINK_INFINIBAND: _infiniband,
}
_ERF_TYPES: dict[int, Callable[[Subject], Dissection]] = {
    ERF_ETHERNET: _ethernet,
    ERF_INFINIBAND: _infiniband,
    ERF_INFINIBAND_LINK: dissect_fcp,
}
_ETHER_TYPES: dict[int, Callable[[Subject, int], Dissection]] = {
    roce.ETHERTYPE_IPV4: _ipv4,
    ETHERTYPE_IPV6: _ipv6,
    ETHERTYPE_ROCE_V1: _roce_v1,
    native.ETHERTYPE_NATIVE: _infiniband,
    control.ETHERTYPE_MAC_CONTROL: dissect_mac_control,
    control.ETHERTYPE_LINK_CONTROL: dissect_link_control,
}
