"""Captured frames dissected: fields, networks, link types, what is cut; Scapy builds what it should read."""

from __future__ import annotations

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Ether
from scapy.packet import Packet, Raw

from emu.errors import WireError
from emu.framing.dissect import LINK_ERF, LINK_ETHERNET, LINK_INFINIBAND, LINK_USER0, dissect
from emu.framing.dissection import Dissection
from tests.golden_frames import GOLDEN, SAMPLE_GLOBAL, SAMPLE_LOCAL
from traffic.layers import AETH, BTH, FCP, GRH, LRH, PFC, LinkControl, Pause, Payload

WRITE = GOLDEN["write_only"]
XOFF = bytes(Ether(src="02:00:00:00:00:01") / PFC(enabled="p3", quanta3=9))
FLOW = bytes.fromhex("012304561CB3")
NATIVE_ETHERNET = bytes.fromhex("02000000000202000000000188b5")


def on_ethernet(packet: Packet) -> Dissection:
    return dissect(LINK_ETHERNET, bytes(Ether(dst="02:00:00:00:00:02", src="02:00:00:00:00:01") / packet))


def test_a_write() -> None:
    found = dissect(LINK_ETHERNET, WRITE)
    assert found == Dissection(
        "rocev2",
        source="10.0.0.1",
        destination="10.0.0.2",
        source_port=0xC123,
        destination_port=4791,
        dscp=26,
        ecn=2,
        opcode=0x0A,
        opcode_name="RC RDMA Write Only",
        destination_qp=0x12,
        psn=5,
        ack_request=True,
        migreq=True,
        pad_bytes=2,
        pkey=0xFFFF,
        headers={"reth": (0x7F0011223344, 0xABCD1234, 14)},
        payload=b"A" * 14,
        icrc="ok",
        frame_bytes=len(WRITE),
        info="RC RDMA Write Only QP 0x12 PSN 5, 14 B to 0x7f0011223344",
    )


@pytest.mark.parametrize(
    ("name", "info"),
    [
        ("ack", "RC Acknowledge QP 0x34 PSN 5, ACK MSN 7"),
        ("nak_sequence", "RC Acknowledge QP 0x34 PSN 6, NAK PSN sequence error MSN 7"),
        ("rnr_nak", "RC Acknowledge QP 0x34 PSN 5, RNR NAK timer 12 MSN 4"),
        ("read_request", "RC RDMA Read Request QP 0x12 PSN 9, 4096 B from 0x1000"),
        ("send_only_imm", "RC SEND Only with Immediate QP 0x12 PSN 1, 4 B, immediate 0xdeadbeef"),
        ("fetch_add", "RC Fetch Add QP 0x12 PSN 2, 0x2 at 0x1000"),
        ("cnp", "CNP QP 0x34 PSN 0"),
        ("write_only_ipv6", "RC RDMA Write Only QP 0x12 PSN 5, 14 B to 0x7f0011223344"),
        ("write_only_v1", "RC RDMA Write Only QP 0x12 PSN 5, 16 B to 0x7f0011223344"),
    ],
)
def test_golden_frames(name: str, info: str) -> None:
    found = dissect(LINK_ETHERNET, GOLDEN[name])
    assert (found.info, found.icrc, found.vcrc, found.problem) == (info, "ok", "none", "")
    assert found.frame_bytes == len(GOLDEN[name])


def test_addresses_of_each_network() -> None:
    assert dissect(LINK_ETHERNET, GOLDEN["write_only_ipv6"]).source == "fd00::1"
    v1 = dissect(LINK_ETHERNET, GOLDEN["write_only_v1"])
    assert (v1.network, v1.source, v1.destination) == ("rocev1", "fe80::200:ff:fe00:1", "fe80::200:ff:fe00:2")
    local = dissect(LINK_INFINIBAND, SAMPLE_LOCAL)
    assert (local.network, local.source, local.destination) == ("native", "LID 6098", "LID 14172")
    assert (local.virtual_lane, local.service_level) == (7, 1)
    routed = dissect(LINK_INFINIBAND, SAMPLE_GLOBAL)
    assert (routed.source, routed.destination) == ("::125:0:0:0:26", "::117:0:0:0:96")
    assert routed.problem == "GRH with next header 0x00"


@pytest.mark.parametrize("packet", [SAMPLE_LOCAL, SAMPLE_GLOBAL])
@pytest.mark.parametrize("padding", [b"", bytes(5)])
def test_native_packets_by_every_link_type(packet: bytes, padding: bytes) -> None:
    erf = bytes(8) + bytes([21, 4]) + (16 + len(packet)).to_bytes(2, "big") + b"\0\0" + len(packet).to_bytes(2, "big")
    extended = erf[:8] + bytes([21 | 0x80]) + erf[9:] + b"\x80" + bytes(7) + b"\0" + bytes(7)
    bare = dissect(LINK_INFINIBAND, packet + padding)
    assert (bare.icrc, bare.vcrc, bare.frame_bytes) == ("ok", "ok", len(packet))
    for link_type, before in ((LINK_USER0, b""), (LINK_ERF, erf), (LINK_ERF, extended)):
        assert dissect(link_type, before + packet + padding) == bare
    carried = dissect(LINK_ETHERNET, NATIVE_ETHERNET + packet + padding)
    assert (carried.icrc, carried.vcrc, carried.frame_bytes) == ("ok", "ok", 14 + len(packet))
    assert carried.payload == bare.payload


def test_ethernet_and_flow_control_in_erf() -> None:
    assert dissect(LINK_ERF, bytes(8) + bytes([2]) + bytes(7) + bytes(2) + WRITE) == dissect(LINK_ETHERNET, WRITE)
    fcp = dissect(LINK_ERF, bytes(8) + bytes([25]) + bytes(7) + FLOW)
    assert (fcp.network, fcp.vcrc, fcp.icrc, fcp.frame_bytes) == ("fcp", "ok", "none", 6)
    assert fcp.headers == {"fcp": (0, 0, 0x123, 0x456)}
    assert dissect(LINK_ERF, bytes(8) + bytes([27]) + bytes(20)).info == "ERF record type 27"


def test_link_flow_control() -> None:
    fcp = on_ethernet(LinkControl() / FCP(op=1, vl=3, fctbs=1, fccl=2))
    assert (fcp.network, fcp.vcrc, fcp.virtual_lane, fcp.frame_bytes) == ("fcp", "ok", 3, 21)
    assert fcp.info == "FCP initialise VL 3 FCTBS 1 FCCL 2"
    assert on_ethernet(LinkControl() / FCP(lpcrc=1)).vcrc == "bad"
    tlp = on_ethernet(LinkControl(kind=2) / Raw(bytes(20)))  # what it says, tests/pcie/test_dissect.py asks
    assert (tlp.network, tlp.payload, tlp.frame_bytes) == ("tlp", bytes(20), 20)
    assert on_ethernet(LinkControl(kind=3) / Raw(bytes(20))).network == "other"
    for kind in range(256):
        carried = on_ethernet(LinkControl(kind=kind) / Raw(bytes(20))).network
        assert carried == {1: "fcp", 2: "tlp"}.get(kind, "other")
    for link_type in (
        LINK_INFINIBAND,
        LINK_USER0,
        LINK_ERF,
    ):  # the kind byte means something behind its EtherType alone
        assert dissect(link_type, bytes([2]) + bytes(40)).network != "tlp"
    pfc = dissect(LINK_ETHERNET, XOFF)
    assert (pfc.network, pfc.headers, pfc.source) == (
        "pfc",
        {"pfc": (8, (0, 0, 0, 9, 0, 0, 0, 0))},
        "02:00:00:00:00:01",
    )
    assert (pfc.info, pfc.icrc, pfc.frame_bytes) == ("PFC priority 3: 9 quanta", "none", 60)
    pause = on_ethernet(Pause(quanta=0))
    assert (pause.network, pause.headers, pause.info) == ("pause", {"pause": (0,)}, "PAUSE go on")
    tagged = dissect(LINK_ETHERNET, XOFF[:12] + bytes.fromhex("81006000") + XOFF[12:])
    assert (tagged.network, tagged.vlan) == ("other", ((3, 0),))


def test_vlan_tags() -> None:
    inner = IP(src="10.0.0.1", dst="10.0.0.2") / UDP(chksum=0) / BTH(opcode=0x04) / Payload(b"abc")
    tagged = on_ethernet(Dot1AD(prio=5, vlan=7) / Dot1Q(prio=3, vlan=4095) / inner)
    plain = on_ethernet(inner)
    assert (tagged.icrc, tagged.vlan, plain.vlan) == ("ok", ((5, 7), (3, 4095)), ())
    assert (tagged.payload, tagged.frame_bytes) == (b"abc", plain.frame_bytes + 8)


@pytest.mark.parametrize("network", [IP(), IPv6()])
@pytest.mark.parametrize(
    ("source", "destination", "expected"),
    [
        (4791, 53, "rocev2"),  # DNS
        (53, 4791, "rocev2"),
        (4791, 4789, "rocev2"),  # VXLAN
        (4791, 4791, "rocev2"),
        (4790, 4792, "other"),
        (53, 0xC000, "other"),
    ],
)
def test_either_port_decides(network: Packet, source: int, destination: int, expected: str) -> None:
    packet = network / UDP(sport=4791, dport=4791, chksum=0) / BTH(opcode=0x11, psn=77) / AETH(msn=3)
    data = bytearray(bytes(Ether() / packet))
    udp = len(data) - 28
    data[udp : udp + 4] = source.to_bytes(2, "big") + destination.to_bytes(2, "big")
    found = dissect(LINK_ETHERNET, bytes(data))
    assert found.network == expected
    assert (found.source_port, found.destination_port) == (source, destination)
    assert found.psn == (77 if expected == "rocev2" else None)


@pytest.mark.parametrize(
    ("packet", "info"),
    [
        (ARP(), "EtherType 0x0806"),
        (IP() / TCP(), "IPv4 protocol 6"),
        (IP(flags="MF") / UDP() / Raw(bytes(40)), "IPv4 fragment"),
        (IP(frag=9, proto=17) / Raw(bytes(40)), "IPv4 fragment"),
        (IP(ihl=4) / UDP(), "IPv4 with a malformed header"),
        (IP(version=5) / UDP(), "IPv4 with a malformed header"),
        (IPv6() / TCP(), "IPv6 next header 6"),
        (Dot1Q() / ARP(), "EtherType 0x0806"),
    ],
)
def test_other_networks(packet: Packet, info: str) -> None:
    found = on_ethernet(packet)
    assert (found.network, found.info, found.icrc, found.opcode) == ("other", info, "none", None)


def test_other_link_types_and_too_little() -> None:
    assert dissect(113, WRITE).info == "link type 113"
    assert dissect(113, b"").network == "other"
    for link_type, least in ((LINK_ETHERNET, 14), (LINK_INFINIBAND, 8), (LINK_USER0, 8), (LINK_ERF, 16)):
        for length in range(least):
            with pytest.raises(WireError, match=f"{length} B are no"):
                dissect(link_type, bytes(length))
        dissect(link_type, bytes(least))


WHOLE = {
    "v4": (LINK_ETHERNET, WRITE),
    "v6": (LINK_ETHERNET, GOLDEN["write_only_ipv6"]),
    "v1": (LINK_ETHERNET, GOLDEN["write_only_v1"]),
    "native": (LINK_INFINIBAND, SAMPLE_LOCAL),
    "global": (LINK_INFINIBAND, SAMPLE_GLOBAL),
}
UP_TO_BTH = {"v4": 54, "v6": 74, "v1": 66, "native": 20, "global": 60}


@pytest.mark.parametrize("kind", WHOLE)
def test_what_a_snap_length_cut_is_unchecked(kind: str) -> None:
    """A frame that is short and was not cut is bad instead."""
    link_type, data = WHOLE[kind]
    whole = dissect(link_type, data)
    for length in range(14, len(data)):
        cut = dissect(link_type, data[:length], len(data))
        short = dissect(link_type, data[:length])
        if cut.network == "other":
            assert length < UP_TO_BTH[kind]
            continue
        icrc_there = length >= len(data) - (2 if link_type == LINK_INFINIBAND else 0)
        assert cut.icrc == ("ok" if icrc_there else "unchecked")
        assert short.icrc == ("ok" if icrc_there else "bad")
        assert cut.vcrc == ("unchecked" if link_type == LINK_INFINIBAND else "none")
        assert (cut.opcode is None) == (length < UP_TO_BTH[kind])
        assert whole.payload.startswith(cut.payload)
        assert cut.problem in ("", "GRH with next header 0x00")
        if length >= UP_TO_BTH[kind] + 16:
            assert cut.headers == whole.headers
        if length >= UP_TO_BTH[kind]:
            assert (cut.psn, cut.frame_bytes) == (whole.psn, whole.frame_bytes)


def test_a_cut_mac_control_frame() -> None:
    assert dissect(LINK_ETHERNET, XOFF[:15]).network == "other"
    assert dissect(LINK_ETHERNET, XOFF[:20], 60).problem == ""
    assert "cut short" in dissect(LINK_ETHERNET, XOFF[:20]).problem
    fcp = bytes(Ether() / LinkControl() / FCP())
    assert dissect(LINK_ETHERNET, fcp[:-1], 60).vcrc == "unchecked"
    assert dissect(LINK_ETHERNET, fcp[:-1]).vcrc == "bad"


@pytest.mark.parametrize(
    ("transport", "problem"),
    [
        (BTH(opcode=0x04, version=1) / Payload(b"1234"), "transport version 1"),
        (BTH(opcode=0x15) / Payload(b"1234"), "opcode 0x15: nobody sends this"),
        (BTH(opcode=0x11) / AETH() / Payload(b"123"), "RC Acknowledge with 3 B of payload"),
        (BTH(opcode=0x0A) / Raw(b"12345678"), "RC RDMA Write Only has no room for its headers and padding"),
        (
            BTH(opcode=0x0B) / Raw(bytes(16)),
            "RC RDMA Write Only with Immediate has no room for its headers and padding",
        ),
    ],
)
def test_contradictions_in_the_transport(transport: Packet, problem: str) -> None:
    found = on_ethernet(IP() / UDP(chksum=0) / transport)
    assert (found.problem, found.icrc) == (problem, "ok")


def test_contradictions_in_lengths() -> None:
    acknowledge = BTH(opcode=0x11) / AETH()
    assert on_ethernet(IP() / UDP(len=20, chksum=0) / acknowledge).problem == "UDP length 20 inside 28 B"
    longer = on_ethernet(IP(len=400) / UDP(len=380, chksum=0) / acknowledge)
    assert (longer.problem, longer.icrc) == ("414 B announced, 62 B there", "bad")
    shorter = on_ethernet(IP(len=40) / UDP(len=20, chksum=0) / acknowledge)
    assert (shorter.problem, shorter.icrc) == ("12 B have no room for a BTH and an ICRC", "bad")
    routed = bytes(LRH() / GRH(paylen=9) / acknowledge)
    assert dissect(LINK_INFINIBAND, routed).problem == "GRH and LRH give different lengths"
    assert dissect(LINK_INFINIBAND, bytes(LRH(version=2) / acknowledge)).problem == "LRH version 2"
    raw = dissect(LINK_INFINIBAND, bytes(LRH(lnh=1) / acknowledge))
    assert (raw.info, raw.icrc, raw.vcrc) == ("raw IPv6 packet", "none", "ok")
