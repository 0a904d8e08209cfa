"""TLPs by struct: literal packets, wire sizes, Scapy's view of the same, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Padding, Raw

from emu.addresses import mac_text
from emu.errors import InvariantBroken, WireError
from emu.frame import Frame
from emu.framing import control
from emu.pcie import framing
from emu.pcie.framing import (
    ENVELOPE,
    TlpFraming,
    completion,
    cpld_wire_bytes,
    memory_read,
    memory_write,
    mrd_wire_bytes,
    mwr_wire_bytes,
)
from emu.pcie.tlp import Tlp, TlpKind
from tests.pcie.tlps import said, tlps
from traffic.layers import CplD, LinkControl, MRd32, MRd64, MWr32, MWr64

FRAMING = TlpFraming()
HEAD = "020000005002 020000005001 88b6 02"
UAR = 0x20_0000_0800
# The last two are in no rule book: bytes 5 to 7 written where only they are enabled, and a read that flushes.
LITERAL: dict[str, tuple[Tlp, str]] = {
    "doorbell": (
        memory_write(UAR, bytes.fromhex("0000050000001200"), requester=0x0100),
        "60 00 0002 0100 00 ff 0000002000000800 0000050000001200",
    ),
    "record in host memory": (
        memory_write(0x1004, bytes.fromhex("00000005"), requester=0x0200),
        "40 00 0001 0200 00 0f 00001004 00000005",
    ),
    "WQE read": (memory_read(0x7F00_0000_0040, 64, 0x0300, tag=5), "20 00 0010 0300 05 ff 00007f0000000040"),
    "10-bit tag": (memory_read(0x1000, 4096, 0x0300, tag=0x2A5), "00 80 0000 0300 a5 ff 00001000"),
    "tag bit 8": (memory_read(0x1000, 4, 0x0300, tag=0x100), "00 08 0001 0300 00 0f 00001000"),
    "three bytes across DWs": (
        memory_write(0x1003, b"abc", requester=0),
        "40 00 0002 0000 00 38 00001000 000000 616263 0000",
    ),
    "bytes within a DW": (memory_write(0x1001, b"ab", requester=0), "40 00 0001 0000 00 06 00001000 00 6162 00"),
    "flush": (memory_read(0x1000, 0, 0x0300, tag=1), "00 00 0001 0300 01 00 00001000"),
    "first completion": (
        completion(memory_read(0x10_0000_0044, 100, 0x0300, tag=7), 0, b"x" * 60, completer=0x0400),
        "4a 00 000f 0400 0064 0300 07 44" + "78" * 60,
    ),
    "last completion": (
        completion(memory_read(0x10_0000_0044, 99, 0x0300, tag=7), 60, b"y" * 39, completer=0x0400),
        "4a 00 000a 0400 0027 0300 07 00" + "79" * 39 + "00",
    ),
    "whole page": (
        completion(memory_read(0x1000, 4096, 0x0300, tag=7), 0, bytes(4096), completer=0x0400),
        "4a 00 0000 0400 0000 0300 07 00" + "00" * 4096,
    ),
}


def scapy_frame(tlp: Tlp) -> bytes:
    """The TLP as a person would write it in Scapy."""
    skipped, left_out = tlp.address & 3, -(tlp.address + tlp.length) & 3
    words = max(1, (skipped + tlp.length + 3) // 4)
    tag: dict[str, Any] = {"tag": tlp.tag & 0xFF, "t8": tlp.tag >> 8 & 1, "t9": tlp.tag >> 9}
    first, last = 0xF << skipped & 0xF, 0xF >> left_out
    if words == 1:
        first, last = first & last if tlp.length else 0, 0
    packet: Packet
    if tlp.kind is TlpKind.CPLD:
        packet = CplD(completer=tlp.completer, requester=tlp.requester, byte_count=tlp.remaining & 0xFFF, **tag)
        packet.lower_address = tlp.address & 0x7F
    else:
        near, far = (MWr32, MWr64) if tlp.kind is TlpKind.MWR else (MRd32, MRd64)
        packet = (near if tlp.address < 1 << 32 else far)(requester=tlp.requester, first_be=first, last_be=last, **tag)
        packet.address = tlp.address & ~3
    if tlp.kind is TlpKind.MRD:
        packet.length = words & 0x3FF
    else:
        packet = packet / Raw((bytes(skipped) + bytes(tlp.payload)).ljust(words * 4, b"\0"))
    ethernet = Ether(src=mac_text(ENVELOPE.source_mac), dst=mac_text(ENVELOPE.destination_mac))
    return bytes(ethernet / LinkControl() / packet)


@pytest.mark.parametrize("name", LITERAL)
def test_literal(name: str) -> None:
    tlp, text = LITERAL[name]
    data = bytes.fromhex(HEAD + text)
    assert FRAMING.encode(tlp).hex() == data.hex()
    assert said(FRAMING.decode(data)) == said(tlp)


def test_numbers_are_those_of_link_control() -> None:
    assert (framing.ETHERTYPE_LINK_CONTROL, framing.KIND_TLP) == (control.ETHERTYPE_LINK_CONTROL, control.KIND_TLP)
    assert (ENVELOPE.source_mac >> 40, ENVELOPE.destination_mac >> 40) == (2, 2)  # locally administered, unicast


@pytest.mark.parametrize(
    ("wire_bytes", "expected"),
    [
        (mwr_wire_bytes(UAR, 8), 32),  # reference.md 4.7: doorbell 32, WQE MRd 24, CplD 84, CQE 88
        (mrd_wire_bytes(UAR), 24),
        (cpld_wire_bytes(UAR, 64), 84),
        (mwr_wire_bytes(UAR, 64), 88),
        (mrd_wire_bytes(0x1000), 20),
        (mwr_wire_bytes(0xFFFF_F000, 256), 276),
        (mwr_wire_bytes(1 << 32, 256), 280),
        (mwr_wire_bytes(0x1003, 2), 28),
        (cpld_wire_bytes(3, 1), 24),
        (mwr_wire_bytes(0x1000, 0), 24),
    ],
)
def test_wire_bytes(wire_bytes: int, expected: int) -> None:
    assert wire_bytes == expected


def test_helpers_pass_on_whose_it_is() -> None:
    note = object()
    read = memory_read(UAR, 300, 1, tag=9, note=note)
    assert memory_write(UAR, b"", 1, note).note is read.note is completion(read, 0, bytes(300), 2).note is note
    last = completion(read, 256, bytes(44), 2)
    assert (last.address, last.length, last.remaining, last.tag, last.requester) == (UAR + 256, 44, 44, 9, 1)
    assert FRAMING.wire_bytes(last) == last.wire_bytes == 20 + 44
    flushed = completion(memory_read(UAR, 0, 1, tag=9), 0, b"", 2)
    assert (flushed.length, flushed.remaining, bytes(flushed.payload)) == (1, 1, b"\0")


@given(tlps(), st.binary(max_size=5))
def test_it_comes_back(tlp: Tlp, padding: bytes) -> None:
    data = FRAMING.encode(tlp)
    again = FRAMING.decode(data + padding)
    assert said(again) == said(tlp)
    assert again.wire_bytes == tlp.wire_bytes == (len(data) - 15) + 8  # with sequence number, framing and LCRC
    assert FRAMING.encode(again)[-len(data) :] == data
    assert again.data == data + padding


@given(tlps())
def test_scapy_builds_the_same(tlp: Tlp) -> None:
    assert FRAMING.encode(tlp).hex() == scapy_frame(tlp).hex()


@given(tlps(), st.binary(max_size=5))
def test_scapy_reads_the_same(tlp: Tlp, padding: bytes) -> None:
    data = FRAMING.encode(tlp)
    packet = Ether(data + padding)
    layer = packet[LinkControl].payload
    assert type(layer).__name__[:4].rstrip("36") == tlp.kind.value
    assert (layer.t9 << 9 | layer.t8 << 8 | layer.tag, layer.requester) == (tlp.tag, tlp.requester)
    if tlp.kind is TlpKind.CPLD:
        assert (layer.completer, layer.byte_count) == (tlp.completer, tlp.remaining % 4096)
        assert layer.lower_address == tlp.address & 0x7F
    else:
        assert layer.address == tlp.address & ~3
    carried = packet[Raw].load if Raw in packet else b""
    assert carried[tlp.address & 3 :][: len(tlp.payload)] == bytes(tlp.payload)
    assert (packet[Padding].load if Padding in packet else b"") == padding
    for each in (packet, packet.payload, layer):
        each.clear_cache()
    assert bytes(packet) == data + padding


@given(st.binary(max_size=40), st.sampled_from([0x00, 0x20, 0x40, 0x60, 0x4A, 0x0A]), st.booleans())
def test_any_bytes_are_a_tlp_or_refused(rest: bytes, fmt_type: int, plain: bool) -> None:
    first = bytes([fmt_type, 0, 0]) if plain else bytes([fmt_type])
    data = bytes.fromhex(HEAD) + first + rest
    try:
        tlp = FRAMING.decode(data)
    except WireError:
        return
    assert said(FRAMING.decode(FRAMING.encode(tlp))) == said(tlp)


@given(tlps(), st.data())
def test_a_changed_tlp_is_another_or_refused(tlp: Tlp, data: st.DataObject) -> None:
    changed = bytearray(FRAMING.encode(tlp))
    changed[data.draw(st.integers(12, min(len(changed), 32) - 1))] ^= data.draw(st.integers(1, 255))
    del changed[data.draw(st.integers(14, len(changed))) :]
    try:
        again = FRAMING.decode(bytes(changed))
    except WireError:
        return
    assert said(FRAMING.decode(FRAMING.encode(again))) == said(again)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "14 B are no TLP"),
        ("02 600000", "18 B are no TLP"),
        ("01 60000001", "kind 1"),
        ("02 04000001", "Fmt and Type 0x04"),
        ("02 0a000000 00000000 00000000", "Fmt and Type 0x0a"),
        ("02 60100001", "traffic class"),
        ("02 60008001", "flags are set"),
        ("02 60000001 0000000f 00000001", "MWr cut short by 4 B"),
        ("02 60000001 0000000f 0000000000001000 00000000", "address 0x1000 in 16 B"),
        ("02 40000001 0000000f 00001002 00000000", "address 0x1002"),
        ("02 00000001 00000005 00001000", "byte enables 0x5 and 0x0 of 1 DWs"),
        ("02 00000001 000000ff 00001000", "byte enables 0xf and 0xf of 1 DWs"),
        ("02 00000002 0000000f 00001000", "byte enables 0xf and 0x0 of 2 DWs"),
        ("02 00000002 00000070 00001000", "byte enables 0x0 and 0x7 of 2 DWs"),
        ("02 00000002 000000ff 00001ffc", "crosses 4 KiB"),
        ("02 40000002 000000ff 00001000 000000", "payload is cut short by 5 B"),
        ("02 4a000001 00000004 0000", "CplD cut short by 2 B"),
        ("02 4a000001 00002004 00000000 00000000", "status 1"),
        ("02 4a000001 00000004 00000080 00000000", "status 0"),
        ("02 4a000002 00000004 00000000 00000000", "2 DWs: more than the 4 B"),
        ("02 4a000001 00000004 00000000 000000", "payload is cut short by 1 B"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(WireError, match=message):
        FRAMING.decode(bytes.fromhex("020000005002 020000005001 88b6" + text))


READ = memory_read(0x1001, 100, 0, tag=0)


@pytest.mark.parametrize(
    "tlp",
    [
        memory_read(0x1FFF, 2, 0, tag=0),
        memory_read(0x1001, 0, 0, tag=0),
        memory_read(0x1000, -1, 0, tag=0),
        memory_read(0x1000, 4, 0, tag=1024),
        memory_read(0x1000, 4, 0, tag=-1),
        memory_read(0x1000, 4, 65536, tag=0),
        memory_read(1 << 64, 4, 0, tag=0),
        memory_read(-4, 4, 0, tag=0),
        completion(READ, 0, bytes(50), 0),  # ends within a DW, though more follows
        completion(READ, 0, bytes(101), 0),
        completion(READ, 0, b"", 0),
        completion(memory_read(0, 5000, 0, tag=0), 0, bytes(100), 0),
        completion(READ, 0, bytes(100), 65536),
        Tlp(ENVELOPE, TlpKind.MWR, address=0x1000, length=8, wire_bytes=0, requester=0, payload=b"short"),
    ],
)
def test_what_may_not_exist_is_our_bug(tlp: Tlp) -> None:
    with pytest.raises(InvariantBroken):
        FRAMING.encode(tlp)


def test_only_tlps_are_encoded() -> None:
    with pytest.raises(InvariantBroken, match="only TLPs"):
        FRAMING.encode(Frame.__new__(Frame))
