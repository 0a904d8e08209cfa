"""Scapy's classes and the struct framings say the same about every frame, both ways."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from emu import opcodes
from emu.addresses import Address, ipv4_text, mac_text
from emu.frame import Envelope, Frame
from emu.framing.extension import LAYOUTS
from emu.framing.native import NativeFraming
from emu.framing.roce import RoceFraming
from tests.framing.scapy_headers import SCAPY_FIELDS, bits, bits_of
from tests.traffic.layers.rebuild import rebuilt
from traffic.layers import AETH, BTH, ICRC, LRH, RETH, Payload
from traffic.layers.extensions import HEADERS

ROCE, NATIVE = RoceFraming(), NativeFraming(8)
OPCODES = list(opcodes.OPERATIONS)


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
    opcode = draw(st.sampled_from(OPCODES))
    headers = opcodes.EXTENSIONS[opcode]
    payload = draw(st.binary(max_size=70)) if opcodes.HAS_PAYLOAD[opcode] else b""
    reth = draw(st.tuples(bits(64), bits(32), bits(32))) if "RETH" in headers else None
    aeth = draw(st.tuples(bits(8), bits(24))) if "AETH" in headers else None
    frame = Frame(envelope, opcode, draw(bits(24)), payload, ack_request=draw(st.booleans()), reth=reth, aeth=aeth)
    fields = [field for header in headers for field in SCAPY_FIELDS.get(header, ())]
    frame.extension = tuple(draw(bits(bits_of(field))) for field in fields) or None
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
    left = iter(frame.extension or ())
    for name in opcodes.EXTENSIONS[frame.opcode]:
        if name == "RETH" and frame.reth is not None:
            packet = packet / RETH(va=frame.reth[0], rkey=frame.reth[1], dmalen=frame.reth[2])
        elif name == "AETH" and frame.aeth is not None:
            packet = packet / AETH(syndrome=frame.aeth[0], msn=frame.aeth[1])
        else:
            fields: dict[str, Any] = {field: next(left) for field in SCAPY_FIELDS.get(name, ())}
            packet = packet / HEADERS[name](**fields)
    return packet / Payload(load=frame.payload) if frame.payload else packet


@given(both_framings)
def test_both_make_the_same_bytes(made: Made) -> None:
    assert made.framing.encode(made.frame).hex() == bytes(scapy_frame(made.frame)).hex()


@given(both_framings)
def test_struct_reads_what_scapy_built(made: Made) -> None:
    frame = made.frame
    data = bytes(scapy_frame(frame))
    again = made.framing.decode(data)
    for field in ("opcode", "psn", "ack_request", "reth", "aeth", "extension", "payload", "solicited", "becn"):
        assert getattr(again, field) == getattr(frame, field), field
    assert again.wire_bytes == frame.wire_bytes
    assert again.fecn == fecn_on_the_wire(frame)
    assert again.data == data
    for field in Envelope.__slots__:
        if field not in ("templates", "tos", "ttl", "priority", "lane"):
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
    for name in opcodes.EXTENSIONS[frame.opcode]:
        assert name in LAYOUTS or name == "CNPReserved"
        assert packet.haslayer(HEADERS[name])
    for computed in (False, True):
        assert rebuilt(Ether(data), computed) == data


@pytest.mark.parametrize("framing", [ROCE, NATIVE], ids=lambda framing: str(framing.name))
def test_a_path_mtu_of_payload(framing: RoceFraming | NativeFraming) -> None:
    address = Address("h", 1, 2, 3)
    envelope = framing.envelope(address, address, destination_qp=1, source_qp=2)
    frame = Frame(envelope, opcodes.WRITE_MIDDLE, 1, memoryview(bytes(range(256)) * 16))
    assert framing.encode(frame) == bytes(scapy_frame(frame))
