"""ICRC and VCRC verdicts on what a real driver sent, on shared vectors and random frames: right, then damaged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from emu import opcodes
from emu.framing.dissect import LINK_ETHERNET, LINK_INFINIBAND, dissect
from tests.framing.scapy_headers import SCAPY_FIELDS, bits, bits_of
from tests.golden_frames import SAMPLE_GLOBAL, SAMPLE_LOCAL, captured, vectors
from tests.reference_crc import crcs_of_infiniband, icrc_of_ethernet
from traffic.layers import BTH, GRH, LRH, Payload
from traffic.layers.extensions import HEADERS

CAPTURES = 20
FRAMES = 394  # RoCEv2 ones in them

# Bytes of each kind of frame that no ICRC covers, by what they are; MAC addresses are every Ethernet frame's.
MACS = range(12)
UNPROTECTED = {
    "v4": {15: "ToS", 22: "TTL", 24: "checksum", 25: "checksum", 40: "UDP checksum", 41: "UDP checksum", 46: "FECN"},
    "v6": {15: "class, label", 16: "label", 17: "label", 21: "hop limit", 60: "UDP checksum", 61: "same", 66: "FECN"},
    "v1": {15: "class, label", 16: "label", 17: "label", 21: "hop limit", 58: "FECN"},
}
# In the first byte of IPv6 and of a GRH the low half is the traffic class's, in that of an LRH the high one is the VL.
HALF_PROTECTED = {"v6": (14, 0x0F), "v1": (14, 0x0F), "local": (0, 0xF0), "global": (8, 0x0F)}


def ethernet_frames(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every frame with an ICRC in the shared captures and vectors, and where it is from."""
    for path in sorted((folder / "captures").glob("*.pcap")):
        for number, data in enumerate(captured(path), 1):
            if data[12:14] != b"\x88\x08":
                yield f"{path.name} frame {number}", data
    for vector in vectors(folder):
        if not vector.native:
            yield vector.name, vector.data


def kind_of(frame: bytes) -> str:
    return {b"\x08\x00": "v4", b"\x86\xdd": "v6", b"\x89\x15": "v1"}[frame[12:14]]


def flipped(data: bytes, index: int, mask: int) -> bytes:
    changed = bytearray(data)
    changed[index] ^= mask
    return bytes(changed)


def test_every_capture_is_right(shared_data: Path) -> None:
    """By our own count and by a CRC computed bit by bit."""
    paths = sorted((shared_data / "captures").glob("*.pcap"))
    assert len(paths) == CAPTURES
    seen = 0
    for path in paths:
        for data in captured(path):
            found = dissect(LINK_ETHERNET, data)
            if path.name == "constructed__pfc.pcap":
                assert (found.network, found.icrc) in (("pfc", "none"), ("pause", "none"))
                continue
            assert (found.network, found.icrc, found.problem) == ("rocev2", "ok", ""), path.name
            expected, carried = icrc_of_ethernet(data)
            assert expected == carried, path.name
            assert found.frame_bytes == len(data)
            seen += 1
    assert seen == FRAMES


def test_every_vector_is_right(shared_data: Path) -> None:
    seen = 0
    for vector in vectors(shared_data):
        found = dissect(LINK_INFINIBAND if vector.native else LINK_ETHERNET, vector.data)
        assert (found.icrc, found.vcrc) == ("ok", "ok" if vector.native else "none"), vector.name
        if vector.native:
            assert crcs_of_infiniband(vector.data) == (vector.icrc, vector.vcrc), vector.name
        else:
            assert icrc_of_ethernet(vector.data) == (vector.icrc, vector.icrc), vector.name
        seen += 1
    assert seen == 63


def test_one_flipped_payload_bit_is_bad(shared_data: Path) -> None:
    """The first, one in the middle and the last bit of each payload; of a frame without one, of its PSN."""
    for where, data in ethernet_frames(shared_data):
        found = dissect(LINK_ETHERNET, data)
        begin = found.frame_bytes - 4 - found.pad_bytes - len(found.payload)
        size = len(found.payload)
        places = {begin, begin + size // 2, begin + size - 1} if size else {begin - 1}
        for place, mask in zip(sorted(places), (0x80, 0x10, 0x01), strict=False):
            assert dissect(LINK_ETHERNET, flipped(data, place, mask)).icrc == "bad", where


def test_what_switches_may_change_is_right(shared_data: Path) -> None:
    """ToS or traffic class, TTL or hop limit, check sums, FECN and BECN, alone and all at once."""
    for where, data in ethernet_frames(shared_data):
        kind = kind_of(data)
        whole = bytearray(data)
        for index, what in UNPROTECTED[kind].items():
            assert dissect(LINK_ETHERNET, flipped(data, index, 0xFF)).icrc == "ok", f"{where}: {what}"
            whole[index] ^= 0xFF
        if kind in HALF_PROTECTED:
            index, mask = HALF_PROTECTED[kind]
            whole[index] ^= mask
        found = dissect(LINK_ETHERNET, bytes(whole))
        assert found.icrc == "ok", where
        assert (found.fecn, found.becn) != (dissect(LINK_ETHERNET, data).fecn, dissect(LINK_ETHERNET, data).becn)


def test_every_other_bit_is_protected(shared_data: Path) -> None:
    """Of one frame of each kind every bit: bad, or no RDMA frame any more."""
    chosen = {kind_of(data): data for _, data in ethernet_frames(shared_data) if len(data) < 100}
    assert chosen.keys() == UNPROTECTED.keys()
    for kind, data in chosen.items():
        half = HALF_PROTECTED.get(kind, (0, 0))
        for index in range(len(data)):
            for bit in range(8):
                found = dissect(LINK_ETHERNET, flipped(data, index, 1 << bit))
                free = index in MACS or index in UNPROTECTED[kind] or (index == half[0] and half[1] >> bit & 1)
                if free:
                    assert found.icrc == "ok", (kind, index, bit)
                else:
                    assert found.icrc == "bad" or found.network == "other", (kind, index, bit)


@pytest.mark.parametrize("packet", [SAMPLE_LOCAL, SAMPLE_GLOBAL], ids=["local", "global"])
def test_every_bit_of_a_native_packet(packet: bytes) -> None:
    """A VCRC covers them all; the ICRC all but the VL, or of a global packet the LRH and what routers change."""
    local = packet is SAMPLE_LOCAL
    fecn = 12 if local else 52
    free = {fecn} if local else {0, 2, 3, 6, 7, 9, 10, 11, 15, fecn}  # of an LRH, LNH and length decide more than that
    index_of_half, mask = HALF_PROTECTED["local" if local else "global"]
    for index in range(len(packet)):
        for bit in range(8):
            found = dissect(LINK_INFINIBAND, flipped(packet, index, 1 << bit))
            assert found.vcrc == "bad", (index, bit)
            if index >= len(packet) - 2 or index in free or (index == index_of_half and mask >> bit & 1):
                assert found.icrc == "ok", (index, bit)
            elif index not in (0, 1, 4, 5):
                assert found.icrc == "bad", (index, bit)


@pytest.mark.parametrize("padding", [b"\0", bytes(2), b"\xff" * 3, bytes(64)])
def test_ethernet_padding_is_no_part_of_the_frame(shared_data: Path, padding: bytes) -> None:
    for where, data in ethernet_frames(shared_data):
        assert dissect(LINK_ETHERNET, data + padding) == dissect(LINK_ETHERNET, data), where


Said = tuple[Packet, dict[str, tuple[int, ...]], bytes]


@st.composite
def transports(draw: st.DrawFn) -> Said:
    """BTH and what follows in Scapy, and the same as dissect should say it."""
    opcode = draw(st.sampled_from(list(opcodes.OPERATIONS)))
    packet: Packet = BTH(
        opcode=opcode, dqpn=draw(bits(24)), psn=draw(bits(24)), pkey=draw(bits(16)), ackreq=draw(bits(1))
    )
    packet.solicited, packet.migreq = draw(bits(1)), draw(bits(1))
    packet.fecn, packet.becn, packet.reserved6, packet.reserved7 = (draw(bits(size)) for size in (1, 1, 6, 7))
    said: dict[str, tuple[int, ...]] = {}
    known = SCAPY_FIELDS | {"RETH": ("va", "rkey", "dmalen"), "AETH": ("syndrome", "msn")}
    for name in opcodes.EXTENSIONS[opcode]:
        fields: dict[str, Any] = {field: draw(bits(bits_of(field))) for field in known.get(name, ())}
        packet = packet / HEADERS[name](**fields)
        if fields:
            said[name.lower()] = tuple(fields.values())
    payload = draw(st.binary(max_size=40)) if opcodes.HAS_PAYLOAD[opcode] else b""
    return (packet / Payload(payload) if payload else packet), said, payload


addresses = st.integers(0, (1 << 128) - 1)


@st.composite
def networks(draw: st.DrawFn) -> tuple[str, Packet]:
    """What carries a transport packet, on each network we know."""
    kind = draw(st.sampled_from(["rocev2", "rocev2 over IPv6", "rocev1", "native", "native global"]))
    link = LRH(vl=draw(bits(4)), sl=draw(bits(4)), slid=draw(bits(16)), dlid=draw(bits(16)))
    route = GRH(tclass=draw(bits(8)), flowlabel=draw(bits(20)), hoplimit=draw(bits(8)))
    udp = UDP(sport=draw(bits(16)), dport=4791, chksum=0)
    return kind, {
        "rocev2": Ether() / IP(tos=draw(bits(8)), ttl=draw(bits(8)), id=draw(bits(16))) / udp,
        "rocev2 over IPv6": Ether() / IPv6(tc=draw(bits(8)), fl=draw(bits(20)), hlim=draw(bits(8))) / udp,
        "rocev1": Ether() / route,
        "native": link,
        "native global": link / route,
    }[kind]


@given(networks(), transports())
def test_dissect_reads_what_scapy_built(network: tuple[str, Packet], transport: Said) -> None:
    """Every network, opcode and header; with check sums that a CRC computed bit by bit agrees with."""
    kind, carrier = network
    packet, headers, payload = transport
    data = bytes(carrier / packet)
    is_native = kind.startswith("native")
    found = dissect(LINK_INFINIBAND if is_native else LINK_ETHERNET, data)
    assert found.network == kind.split()[0]
    assert (found.icrc, found.vcrc, found.problem) == ("ok", "ok" if is_native else "none", "")
    assert (dict(found.headers), found.payload) == (headers, payload)
    bth = packet[BTH]
    assert (found.opcode, found.destination_qp, found.psn, found.pkey) == (bth.opcode, bth.dqpn, bth.psn, bth.pkey)
    flags = (found.ack_request, found.solicited, found.migreq, found.fecn, found.becn)
    assert flags == (bth.ackreq, bth.solicited, bth.migreq, bth.fecn, bth.becn)
    assert found.frame_bytes == len(data)
    if is_native:
        assert crcs_of_infiniband(data) == (data[-6:-2], data[-2:])
    else:
        assert icrc_of_ethernet(data) == (data[-4:], data[-4:])


@given(networks(), transports(), st.data())
def test_one_flipped_bit_of_a_payload_is_bad(network: tuple[str, Packet], transport: Said, draw: st.DataObject) -> None:
    kind, carrier = network
    data = bytes(carrier / transport[0])
    end = len(data) - (2 if kind.startswith("native") else 0)
    after_headers = end - 4 - (len(transport[2]) + 3 & -4)
    place = draw.draw(st.integers(after_headers, end - 1))
    link_type = LINK_INFINIBAND if kind.startswith("native") else LINK_ETHERNET
    assert dissect(link_type, flipped(data, place, 1 << draw.draw(st.integers(0, 7)))).icrc == "bad"
