"""Scapy's view of RDMA frames: golden and captured ones, built, dissected and built again."""

from __future__ import annotations

from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Padding, Raw

from emu import opcodes
from emu.crc import icrc_global, icrc_local, vcrc
from emu.opcodes import EXTENSION_BYTES, HAS_PAYLOAD, HEADER_BYTES, OPERATIONS
from tests.golden_frames import GOLDEN, SAMPLE_LOCAL, captured_roce, vectors
from tests.traffic.layers.rebuild import rebuilt
from traffic.layers import (
    AETH,
    BTH,
    GRH,
    ICRC,
    LRH,
    RETH,
    VCRC,
    AtomicETH,
    CNPReserved,
    ImmDt,
    Pad,
    Payload,
)
from traffic.layers.extensions import HEADERS


def ethernet() -> Packet:
    return Ether(dst="02:00:00:00:00:02", src="02:00:00:00:00:01")


def names(packet: Packet) -> str:
    return " ".join(layer.__name__ for layer in packet.layers())


def ipv4(tos: int = 0x6A) -> Packet:
    ip = IP(src="10.0.0.1", dst="10.0.0.2", tos=tos, id=0, flags="DF", ttl=64)
    return ethernet() / ip / UDP(sport=0xC123, chksum=0)


def link_local() -> GRH:
    return GRH(hoplimit=64, sgid="fe80::200:ff:fe00:1", dgid="fe80::200:ff:fe00:2")


WRITE = RETH(va=0x7F0011223344, rkey=0xABCD1234, dmalen=14) / Payload(b"A" * 14)
BUILT: dict[str, Packet] = {
    "write_only": ipv4() / BTH(opcode=0x0A, dqpn=0x12, ackreq=1, psn=5) / WRITE,
    "ack": ipv4() / BTH(opcode=0x11, dqpn=0x34, psn=5) / AETH(syndrome=0x1F, msn=7),
    "nak_sequence": ipv4() / BTH(opcode=0x11, dqpn=0x34, psn=6) / AETH(syndrome=0x60, msn=7),
    "rnr_nak": ipv4() / BTH(opcode=0x11, dqpn=0x34, psn=5) / AETH(syndrome=0x2C, msn=4),
    "read_request": ipv4() / BTH(opcode=0x0C, dqpn=0x12, ackreq=1, psn=9) / RETH(va=0x1000, rkey=0x55, dmalen=4096),
    "send_only_imm": ipv4()
    / BTH(opcode=0x05, solicited=1, dqpn=0x12, ackreq=1, psn=1)
    / ImmDt(imm=0xDEADBEEF)
    / Raw(b"wxyz"),
    "fetch_add": ipv4() / BTH(opcode=0x14, dqpn=0x12, ackreq=1, psn=2) / AtomicETH(va=0x1000, rkey=0x55, swap_or_add=2),
    "cnp": ipv4(0xC0) / BTH(opcode=0x81, becn=1, dqpn=0x34) / CNPReserved(),
    "write_only_ipv6": ethernet()
    / IPv6(src="fd00::1", dst="fd00::2", tc=0x6A, fl=0x12345)
    / UDP(sport=0xC123, chksum=0)
    / BTH(opcode=0x0A, dqpn=0x12, ackreq=1, psn=5)
    / WRITE,
    "write_only_v1": ethernet()
    / link_local()
    / BTH(opcode=0x0A, migreq=0, dqpn=0x12, ackreq=1, psn=5)
    / RETH(va=0x7F0011223344, rkey=0xABCD1234, dmalen=16)
    / Payload(b"A" * 16),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_fields_build_the_golden_frames(name: str) -> None:
    assert bytes(BUILT[name]).hex() == GOLDEN[name].hex()


@pytest.mark.parametrize("name", GOLDEN)
@pytest.mark.parametrize("computed", [False, True])
def test_golden_frames_come_back(name: str, computed: bool) -> None:
    assert rebuilt(Ether(GOLDEN[name]), computed) == GOLDEN[name]


def test_a_write_in_layers() -> None:
    frame = Ether(GOLDEN["write_only"] + bytes(6))  # as short frames come off a real wire
    assert names(frame) == "Ether IP UDP BTH RETH Payload Pad ICRC Padding"
    assert frame[BTH].padcount == 2
    assert frame[Payload].load == b"A" * 14
    assert frame[Pad].load == b"\0\0"
    assert frame[ICRC].icrc == int.from_bytes(GOLDEN["write_only"][-4:], "little")
    assert frame[Padding].load == bytes(6)
    assert "RC RDMA Write Only" in str(frame.show(dump=True))


def test_a_frame_towards_the_source_port_is_known() -> None:
    frame = bytes(ipv4() / BTH(opcode=0x04, psn=77))
    swapped = frame[:34] + frame[36:38] + frame[34:36] + frame[38:]
    assert Ether(swapped)[BTH].psn == 77


def test_a_vlan_tag_changes_no_icrc() -> None:
    tagged = GOLDEN["ack"][:12] + bytes.fromhex("81006001") + GOLDEN["ack"][12:]
    assert rebuilt(Ether(tagged), computed=True) == tagged
    assert Ether(tagged)[Dot1Q].prio == 3


def test_native_sample_packet() -> None:
    packet = LRH(SAMPLE_LOCAL + bytes(2))
    assert names(packet) == "LRH BTH RETH Payload Pad ICRC VCRC Padding"
    assert packet[VCRC].vcrc == int.from_bytes(SAMPLE_LOCAL[-2:], "little")
    assert rebuilt(LRH(SAMPLE_LOCAL), computed=True) == SAMPLE_LOCAL


def test_native_packets_local_and_global() -> None:
    transport = BTH(opcode=0x06, dqpn=9, psn=1) / RETH(va=1, rkey=2, dmalen=4096) / Payload(b"x" * 253)
    local = bytes(ethernet() / LRH(vl=3, sl=3, dlid=2, slid=1) / transport)[14:]
    assert len(local) == 8 + 12 + 16 + 256 + 4 + 2
    assert int.from_bytes(local[4:6], "big") * 4 == len(local) - 2
    assert local[-6:-2] == icrc_local(local[:-6]).to_bytes(4, "little")
    assert local[-2:] == vcrc(local[:-2]).to_bytes(2, "little")
    routed = bytes(LRH(vl=3, sl=3, dlid=2, slid=1) / link_local() / transport)
    assert routed[1] & 3 == 3
    assert int.from_bytes(routed[12:14], "big") == len(routed) - 8 - 40 - 2
    assert routed[-6:-2] == icrc_global(routed[:-6]).to_bytes(4, "little")
    assert LRH(routed)[Payload].load == b"x" * 253
    assert rebuilt(LRH(routed), computed=True) == routed


def test_a_native_frame_rides_ethernet() -> None:
    frame = ethernet() / LRH(dlid=2, slid=1) / BTH(opcode=0x11) / AETH(msn=3)
    again = Ether(bytes(frame) + bytes(20))
    assert again.type == 0x88B5
    assert again[AETH].msn == 3
    assert again[Padding].load == bytes(20)


@pytest.mark.parametrize("code", OPERATIONS)
def test_every_opcode_in_layers(code: int) -> None:
    """Headers sized as the opcode table says, and the same layers after a round trip."""
    packet = ipv4() / BTH(opcode=code)
    for name in OPERATIONS[code].headers:
        packet = packet / HEADERS[name]()
    if HAS_PAYLOAD[code]:
        packet = packet / Payload(b"hello")
    data = bytes(packet)
    assert len(data) == 42 + 12 + EXTENSION_BYTES[code] + (8 if HAS_PAYLOAD[code] else 0) + 4
    again = Ether(data)
    expected = ["Ether", "IP", "UDP", "BTH", *OPERATIONS[code].headers]
    expected += ["Payload", "Pad", "ICRC"] if HAS_PAYLOAD[code] else ["ICRC"]
    assert names(again) == " ".join(expected)
    assert rebuilt(again, computed=True) == data


def test_headers_have_the_sizes_in_the_opcode_table() -> None:
    assert {name: len(bytes(header())) for name, header in HEADERS.items()} == HEADER_BYTES


def test_what_the_user_sets_is_kept() -> None:
    """Malformed frames can be made: a wrong count, a wrong pad, a wrong ICRC."""
    wrong = Ether(bytes(ipv4() / BTH(opcode=opcodes.SEND_ONLY, padcount=3) / Payload(b"12345") / ICRC(icrc=0x01020304)))
    assert wrong[BTH].padcount == 3
    assert wrong[ICRC].icrc == 0x01020304
    assert len(bytes(wrong)) == 42 + 12 + 5 + 3 + 4
    padded = Ether(bytes(ipv4() / BTH(opcode=opcodes.SEND_ONLY) / Payload(b"123456") / Pad(b"\1\2")))
    assert padded[BTH].padcount == 2
    assert padded[Pad].load == b"\1\2"


@pytest.mark.parametrize("length", range(42, 58))
def test_a_frame_cut_short_is_shown_raw(length: int) -> None:
    cut = Ether(GOLDEN["ack"][:length])
    assert ICRC not in cut


def test_shared_vectors(shared_data: Path) -> None:
    for vector in vectors(shared_data):
        frame = (LRH if vector.native else Ether)(vector.data)
        assert frame[ICRC].icrc == int.from_bytes(vector.icrc, "little"), vector.name
        assert rebuilt(frame, computed=True) == vector.data, vector.name


def test_frames_of_a_real_driver(shared_data: Path) -> None:
    for data in list(captured_roce(shared_data))[::5]:
        assert rebuilt(Ether(data), computed=True) == data
