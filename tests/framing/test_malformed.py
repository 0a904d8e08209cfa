"""Frames whose check sums are right and which are malformed all the same: made by Scapy, refused by decode."""

from __future__ import annotations

import pytest
from scapy.layers.inet import IP, UDP, IPOption_NOP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from emu.errors import WireError
from emu.framing.bth import CrcError
from emu.framing.native import NativeFraming
from emu.framing.roce import RoceFraming
from traffic.layers import AETH, BTH, GRH, LRH, RETH, Payload

ROCE, NATIVE = RoceFraming(), NativeFraming(8)


def ethernet() -> Packet:
    return Ether(dst="02:00:00:00:00:02", src="02:00:00:00:00:01")


def ipv4() -> IP:
    return IP(src="10.0.0.1", dst="10.0.0.2", id=0, flags="DF")


def acknowledge() -> Packet:
    return BTH(opcode=0x11, dqpn=1) / AETH()


MALFORMED_ROCE: dict[str, tuple[Packet, str]] = {
    "fragment": (IP(src="10.0.0.1", dst="10.0.0.2", flags="MF") / UDP(chksum=0) / acknowledge(), "fragments"),
    "later fragment": (IP(src="10.0.0.1", dst="10.0.0.2", frag=1, proto=17) / UDP(chksum=0) / acknowledge(), "frag"),
    "options": (IP(src="10.0.0.1", dst="10.0.0.2", options=[IPOption_NOP()] * 4) / UDP() / acknowledge(), "options"),
    "another protocol": (IP(src="10.0.0.1", dst="10.0.0.2", proto=6) / UDP(chksum=0) / acknowledge(), "without UDP"),
    "another port": (ipv4() / UDP(dport=4790, sport=4791, chksum=0) / acknowledge(), "UDP port 4790"),
    "UDP length": (ipv4() / UDP(len=20, chksum=0) / acknowledge(), "UDP length 20"),
    "UDP checksum": (ipv4() / UDP(chksum=0x1234) / acknowledge(), "UDP checksum"),
    "IP checksum": (
        IP(src="10.0.0.1", dst="10.0.0.2", chksum=1) / UDP(chksum=0) / acknowledge(),
        "IPv4 header checksum",
    ),
    "IP length": (IP(src="10.0.0.1", dst="10.0.0.2", len=400) / UDP(chksum=0) / acknowledge(), "of 372 B"),
}
MALFORMED_TRANSPORT: dict[str, tuple[Packet, str]] = {
    "version": (BTH(opcode=0x04, version=1) / Payload(b"1234"), "transport version 1"),
    "odd length": (BTH(opcode=0x04, padcount=0) / Payload(b"12345"), "transport packet of 21 B"),
    "pad without payload": (BTH(opcode=0x04, padcount=2), "transport packet of 18 B"),
    "pad beyond payload": (BTH(opcode=0x0A, padcount=3) / RETH(), "transport packet of 35 B"),
    "header cut off": (BTH(opcode=0x0A) / Raw(b"12345678"), "RDMA Write Only cut short by 8 B"),
    "payload after an ACK": (BTH(opcode=0x11) / AETH() / Payload(b"1234"), "Acknowledge with 4 B"),
    "unknown opcode": (BTH(opcode=0x15) / Payload(b"1234"), "opcode 0x15"),
    "immediate data cut off": (BTH(opcode=0x05), "SEND Only with Immediate cut short by 4 B"),
}


@pytest.mark.parametrize("name", MALFORMED_ROCE)
def test_below_the_transport(name: str) -> None:
    packet, message = MALFORMED_ROCE[name]
    with pytest.raises(WireError, match=message) as caught:
        ROCE.decode(bytes(ethernet() / packet))
    assert not isinstance(caught.value, CrcError)


@pytest.mark.parametrize("name", MALFORMED_TRANSPORT)
def test_in_the_transport(name: str) -> None:
    packet, message = MALFORMED_TRANSPORT[name]
    with pytest.raises(WireError, match=message):
        ROCE.decode(bytes(ethernet() / ipv4() / UDP(chksum=0) / packet))
    with pytest.raises(WireError):  # a length that is no whole number of words cannot even be written in an LRH
        NATIVE.decode(bytes(ethernet() / LRH(dlid=2, slid=1) / packet))


def test_a_right_udp_checksum_is_accepted() -> None:
    frame = ROCE.decode(bytes(ethernet() / ipv4() / UDP(sport=0xC000) / acknowledge()))
    assert frame.aeth == (0, 0)


@pytest.mark.parametrize(
    ("packet", "message"),
    [
        (LRH(version=1) / acknowledge(), "version 1"),
        (LRH() / GRH() / acknowledge(), "LNH 3"),
        (LRH(length=5) / acknowledge(), "transport packet of 12 B"),
        (LRH(length=8) / acknowledge(), "transport packet of 24 B in a frame of 44 B"),
    ],
)
def test_link_headers(packet: Packet, message: str) -> None:
    with pytest.raises(WireError, match=message):
        NATIVE.decode(bytes(ethernet() / packet))


def test_another_ether_type() -> None:
    data = bytes(ethernet() / LRH() / acknowledge())
    with pytest.raises(WireError, match="EtherType 0x88b5"):
        ROCE.decode(data + bytes(20))
    with pytest.raises(WireError, match="EtherType 0x0800"):
        NATIVE.decode(bytes(ethernet() / ipv4() / UDP() / acknowledge()))
