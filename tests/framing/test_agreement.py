"""Scapy's classes and the struct framings say the same about every frame, both ways."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from emu import opcodes
from emu.addresses import Address, ipv4_text, mac_text
from emu.frame import Envelope, Frame
from emu.framing.bth import carried
from emu.framing.native import NativeFraming
from emu.framing.roce import RoceFraming
from tests.traffic.layers.rebuild import rebuilt
from traffic.layers import AETH, BTH, ICRC, LRH, RETH, CNPReserved, Payload

ROCE, NATIVE = RoceFraming(), NativeFraming(8)
CARRIED = [code for code in opcodes.OPERATIONS if carried(code)]


def bits(count: int) -> st.SearchStrategy[int]:
    return st.integers(0, (1 << count) - 1)


@dataclass(frozen=True)
class Made:
    """All that a frame says."""

    framing: RoceFraming | NativeFraming
    frame: Frame


@st.composite
def frames(draw: st.DrawFn, framing: RoceFraming | NativeFraming) -> Made:
    addresses = st.builds(Address, st.just("h"), bits(48), bits(32), bits(16))
    envelope = framing.envelope(
        draw(addresses),
        draw(addresses),
        destination_qp=draw(bits(24)),
        source_qp=draw(bits(24)),
        priority=draw(bits(3)),
        tos=draw(bits(8)),
        ttl=draw(bits(8)),
        source_port=draw(bits(16)),
    )
    envelope.pkey = draw(bits(16))
    opcode = draw(st.sampled_from(CARRIED))
    headers = opcodes.EXTENSIONS[opcode]
    payload = draw(st.binary(max_size=70)) if opcodes.HAS_PAYLOAD[opcode] else b""
    reth = draw(st.tuples(bits(64), bits(32), bits(32))) if "RETH" in headers else None
    aeth = draw(st.tuples(bits(8), bits(24))) if "AETH" in headers else None
    frame = Frame(envelope, opcode, draw(bits(24)), payload, ack_request=draw(st.booleans()), reth=reth, aeth=aeth)
    frame.solicited, frame.fecn, frame.becn = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    return Made(framing, frame)


both_framings = st.one_of(frames(ROCE), frames(NATIVE))


def tos_on_the_wire(frame: Frame) -> int:
    return frame.envelope.tos | (3 if frame.fecn else 0)


def fecn_on_the_wire(frame: Frame) -> bool:
    return frame.fecn or (frame.envelope.framing is ROCE and frame.envelope.tos & 3 == 3)


def scapy_frame(frame: Frame) -> Packet:
    """The frame as a person would write it in Scapy."""
    envelope = frame.envelope
    packet: Packet = Ether(src=mac_text(envelope.source_mac), dst=mac_text(envelope.destination_mac))
    if envelope.framing is ROCE:
        ip = IP(src=ipv4_text(envelope.source), dst=ipv4_text(envelope.destination), id=0, flags="DF")
        ip.tos, ip.ttl = tos_on_the_wire(frame), envelope.ttl
        packet = packet / ip
        packet = packet / UDP(sport=envelope.udp_source_port, dport=4791, chksum=0)
    else:
        packet = packet / LRH(
            vl=envelope.priority, sl=envelope.priority, slid=envelope.source, dlid=envelope.destination
        )
    packet = packet / BTH(
        opcode=frame.opcode,
        pkey=envelope.pkey,
        dqpn=envelope.destination_qp,
        ackreq=frame.ack_request,
        psn=frame.psn,
        solicited=frame.solicited,
        fecn=frame.fecn,
        becn=frame.becn,
    )
    if frame.reth is not None:
        packet = packet / RETH(va=frame.reth[0], rkey=frame.reth[1], dmalen=frame.reth[2])
    if frame.aeth is not None:
        packet = packet / AETH(syndrome=frame.aeth[0], msn=frame.aeth[1])
    if frame.opcode == opcodes.CNP:
        packet = packet / CNPReserved()
    return packet / Payload(load=frame.payload) if frame.payload else packet


@given(both_framings)
def test_both_make_the_same_bytes(made: Made) -> None:
    assert made.framing.encode(made.frame).hex() == bytes(scapy_frame(made.frame)).hex()


@given(both_framings)
def test_struct_reads_what_scapy_built(made: Made) -> None:
    frame = made.frame
    data = bytes(scapy_frame(frame))
    again = made.framing.decode(data)
    for field in ("opcode", "psn", "ack_request", "reth", "aeth", "payload", "solicited", "becn", "wire_bytes"):
        assert getattr(again, field) == getattr(frame, field), field
    assert again.fecn == fecn_on_the_wire(frame)
    assert again.data == data
    for field in Envelope.__slots__:
        if field not in ("templates", "tos", "ttl", "priority"):
            assert getattr(again.envelope, field) == getattr(frame.envelope, field), field
    if made.framing is ROCE:
        assert again.envelope.tos == tos_on_the_wire(frame)
        assert again.envelope.ttl == frame.envelope.ttl
    else:
        assert again.envelope.priority == frame.envelope.priority


@given(both_framings)
def test_scapy_reads_what_struct_built(made: Made) -> None:
    frame = made.frame
    data = made.framing.encode(frame)
    packet = Ether(data + bytes(7))
    bth = packet[BTH]
    assert (bth.opcode, bth.psn, bth.ackreq, bth.pkey) == (
        frame.opcode,
        frame.psn,
        frame.ack_request,
        frame.envelope.pkey,
    )
    assert (bth.solicited, bth.fecn, bth.becn) == (frame.solicited, frame.fecn, frame.becn)
    assert (packet[Payload].load if Payload in packet else b"") == frame.payload
    assert ICRC in packet
    for computed in (False, True):
        assert rebuilt(Ether(data), computed) == data


@pytest.mark.parametrize("framing", [ROCE, NATIVE], ids=lambda framing: str(framing.name))
def test_a_path_mtu_of_payload(framing: RoceFraming | NativeFraming) -> None:
    address = Address("h", 1, 2, 3)
    envelope = framing.envelope(address, address, destination_qp=1, source_qp=2)
    frame = Frame(envelope, opcodes.WRITE_MIDDLE, 1, memoryview(bytes(range(256)) * 16))
    assert framing.encode(frame) == bytes(scapy_frame(frame))
