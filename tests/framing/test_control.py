"""PFC, PAUSE and flow-control packets by struct: literal frames, Scapy's view of the same, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.l2 import Ether

from emu.addresses import mac_text
from emu.errors import InvariantBroken, WireError
from emu.framing.bth import CrcError
from emu.framing.control import FCP_INITIALISE, Control, Fcp, Pause, Pfc, decode, decode_fcp, encode, encode_fcp, pfc
from tests.golden_frames import captured
from traffic.layers import FCP, PFC, LinkControl
from traffic.layers import Pause as ScapyPause

SOURCE = 0x02_00_00_00_00_01
HEAD = "0180c2000001020000000001"
XOFF_3 = bytes.fromhex(HEAD + "8808 0101 0008 000000000000ffff").ljust(60, b"\0")
FLOW: dict[str, Fcp] = {
    "100037FFD63E": Fcp(op=FCP_INITIALISE, vl=3, fctbs=0, fccl=0x7FF, source_mac=SOURCE),
    "012304561CB3": Fcp(op=0, vl=0, fctbs=0x123, fccl=0x456, source_mac=SOURCE),
}


def numbers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(0, (1 << bits) - 1)


controls: st.SearchStrategy[Control] = st.one_of(
    st.builds(Pfc, numbers(48), numbers(8), st.tuples(*[numbers(16)] * 8)),
    st.builds(Pause, numbers(48), numbers(16)),
    st.builds(Fcp, numbers(4), numbers(4), numbers(12), numbers(12), numbers(48)),
)


def scapy_frame(control: Control) -> bytes:
    """The frame as a person would write it in Scapy."""
    ethernet = Ether(src=mac_text(control.source_mac))
    if isinstance(control, Pfc):
        quanta: dict[str, Any] = {f"quanta{priority}": value for priority, value in enumerate(control.quanta)}
        return bytes(ethernet / PFC(enabled=control.enabled, **quanta))
    if isinstance(control, Pause):
        return bytes(ethernet / ScapyPause(quanta=control.quanta))
    fields: dict[str, Any] = {"op": control.op, "vl": control.vl, "fctbs": control.fctbs, "fccl": control.fccl}
    return bytes(ethernet / LinkControl() / FCP(**fields))


def test_pfc_of_the_reference() -> None:
    assert encode(pfc(SOURCE, {3: 0xFFFF})) == XOFF_3
    assert decode(XOFF_3) == Pfc(SOURCE, 0b1000, (0, 0, 0, 0xFFFF, 0, 0, 0, 0))


@pytest.mark.parametrize("packet", FLOW)
def test_flow_control_packets_of_the_reference(packet: str) -> None:
    fcp, data = FLOW[packet], bytes.fromhex(packet)
    assert encode_fcp(fcp) == data
    assert decode_fcp(data, SOURCE) == fcp
    assert encode(fcp) == bytes.fromhex(HEAD + "88b6" + "01") + data
    assert decode(encode(fcp) + bytes(39)) == fcp


def test_constructed_capture(shared_data: Path) -> None:
    frames = list(captured(shared_data / "captures" / "constructed__pfc.pcap"))
    expected: list[Control] = [
        pfc(SOURCE, {3: 0xFFFF}),
        pfc(SOURCE, {3: 0}),
        pfc(SOURCE, {3: 256, 4: 512}),
        Pfc(SOURCE, 0, (0xFFFF,) * 8),
        Pause(SOURCE, 0xFFFF),
    ]
    assert [decode(frame) for frame in frames] == expected
    assert [encode(control) for control in expected] == frames


def test_wire_time() -> None:
    assert pfc(SOURCE, {0: 1}).wire_bytes == Pause(SOURCE, 1).wire_bytes == 64 + 20
    assert FLOW["012304561CB3"].wire_bytes == 14
    assert Fcp(0, 0, 0, 0, wire_bytes=12).wire_bytes == 12
    assert Fcp(0, 0, 0, 0, wire_bytes=12) == Fcp(0, 0, 0, 0)  # it is no part of what is said


@given(controls)
def test_scapy_says_the_same(control: Control) -> None:
    assert encode(control).hex() == scapy_frame(control).hex()


@given(controls, st.binary(max_size=9))
def test_it_comes_back(control: Control, padding: bytes) -> None:
    assert decode(encode(control) + padding) == control


@pytest.mark.parametrize("packet", FLOW)
def test_every_flipped_bit_of_a_flow_control_packet_is_noticed(packet: str) -> None:
    good = int(packet, 16)
    for bit in range(48):
        with pytest.raises(CrcError, match="LPCRC"):
            decode_fcp((good ^ 1 << bit).to_bytes(6, "big"))


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ("", "0 B are no Ethernet frame"),
        (HEAD + "0800" + "00" * 46, "EtherType 0x0800"),
        (HEAD + "810060038808" + "0001ffff" + "00" * 40, "EtherType 0x8100"),
        (HEAD + "8808" + "01", "a MAC control frame of 15 B has no opcode"),
        (HEAD + "8808" + "0002" + "00" * 44, "MAC control opcode 0x0002"),
        (HEAD + "8808" + "0101" + "00" * 17, "opcode 0x0101 cut short by 1 B"),
        (HEAD + "8808" + "0001ff", "opcode 0x0001 cut short by 1 B"),
        (HEAD + "88b6", "link control of kind 0x:"),
        (HEAD + "88b6" + "02" + "00" * 45, "link control of kind 0x02"),
        (HEAD + "88b6" + "01" + "0123045600", "5 B are no flow-control packet"),
    ],
)
def test_what_is_refused(frame: str, message: str) -> None:
    with pytest.raises(WireError, match=message):
        decode(bytes.fromhex(frame))


@pytest.mark.parametrize(
    "control",
    [
        Fcp(0, 0, 4096, 0),
        Fcp(0, 0, 0, -1),
        Fcp(16, 0, 0, 0),
        Fcp(0, 16, 0, 0),
        Pause(SOURCE, 65536),
        Pause(SOURCE, -1),
        Pfc(SOURCE, 256, (0,) * 8),
        Pfc(SOURCE, 1, (0,) * 7),
        Pfc(SOURCE, 1, (0,) * 7 + (65536,)),
        pfc(SOURCE, {8: 1}),
    ],
)
def test_a_number_without_room_is_our_bug(control: Control) -> None:
    with pytest.raises(InvariantBroken, match="can say this"):
        encode(control)
