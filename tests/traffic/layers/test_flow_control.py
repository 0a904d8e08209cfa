"""Scapy's view of link flow control, against literal frames and what Scapy's own module makes of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.l2 import Ether
from scapy.packet import Padding, Raw

from tests.golden_frames import captured
from tests.tree import ROOT
from traffic.layers import FCP, PFC, LinkControl, MACControl, Pause

XOFF_3 = bytes.fromhex("0180c2000001020000000001880801010008000000000000ffff").ljust(60, b"\0")


def test_pfc_of_the_reference() -> None:
    assert bytes(Ether(src="02:00:00:00:00:01") / PFC(enabled="p3", quanta3=0xFFFF)) == XOFF_3
    frame = Ether(XOFF_3)
    assert [layer.__name__ for layer in frame.layers()] == ["Ether", "PFC", "Padding"]
    assert (frame[PFC].enabled, frame[PFC].quanta3, frame[PFC].quanta4) == (8, 0xFFFF, 0)
    assert str(frame[PFC].enabled) == "p3"
    assert frame[Padding].load == bytes(26)


def test_captured_frames_come_back(shared_data: Path) -> None:
    """Built anew from the fields: with the padding that was there, and with padding of our own."""
    frames = list(captured(shared_data / "captures" / "constructed__pfc.pcap"))
    for data in frames:
        frame = Ether(data)
        for layer in (frame, frame.payload):
            layer.clear_cache()
        assert bytes(frame) == data
        del frame[Padding]
        assert bytes(frame) == data
    assert [type(Ether(data).payload) for data in frames] == [PFC] * 4 + [Pause]


def test_padding_is_never_another_frame() -> None:
    data = bytes(Ether() / Pause(quanta=5) / Raw(bytes.fromhex("0101ff")))
    frame = Ether(data)
    assert [layer.__name__ for layer in frame.layers()] == ["Ether", "Pause", "Padding"]
    assert (frame.type, frame.dst, frame.quanta) == (0x8808, "01:80:c2:00:00:01", 5)


@pytest.mark.parametrize(("text", "kind"), [("0003", MACControl), ("01", Raw), ("0101", PFC), ("0001ff", Pause)])
def test_other_and_cut_mac_control(text: str, kind: type) -> None:
    assert type(Ether(XOFF_3[:14] + bytes.fromhex(text)).payload) in (kind, Raw)


@pytest.mark.parametrize(
    ("packet", "fields"),
    [
        ("100037FFD63E", {"op": 1, "vl": 3, "fctbs": 0, "fccl": 0x7FF}),
        ("012304561CB3", {"op": 0, "vl": 0, "fctbs": 0x123, "fccl": 0x456}),
    ],
)
def test_flow_control_packets_of_the_reference(packet: str, fields: dict[str, Any]) -> None:
    data = bytes.fromhex(packet)
    assert bytes(FCP(**fields)) == data
    assert bytes(FCP(**fields, lpcrc=0xBEEF)) == data[:4] + b"\xef\xbe"
    carried = bytes(Ether(src="02:00:00:00:00:01") / LinkControl() / FCP(**fields))
    assert carried == bytes.fromhex("0180c200000102000000000188b601") + data
    read = Ether(carried + bytes(39))
    assert {name: getattr(read[FCP], name) for name in fields} == fields
    assert read[Padding].load == bytes(39)
    assert FCP not in Ether(carried[:14] + b"\2" + carried[15:])


def test_scapys_own_module_agrees_where_it_is_right() -> None:
    """In a process of its own, for it would bind the same EtherType. What keeps us from using it is shown too."""
    script = (
        "from scapy.layers.l2 import Ether\n"
        "from scapy.contrib.mac_control import MACControl, MACControlPause as P, MACControlClassBasedFlowControl as C\n"
        "head = dict(dst='01:80:c2:00:00:01', src='02:00:00:00:00:01', type=0x8808)\n"
        "times = {f'c{n}_pause_time': 256 + n for n in range(8)}\n"
        "pfc = bytes(Ether(**head) / C(c3_enabled=1, c6_enabled=1, **times))\n"
        "pause = bytes(Ether(**head) / P(pause_time=7))\n"
        "long = bytes(Ether(**head) / MACControl() / P(pause_time=7))\n"
        "twice = Ether(pause[:18] + b'\\1\\1' + bytes(40))\n"
        "print(pfc.hex(), pause.hex(), len(long), C in twice)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT, timeout=60
    )
    pfc, pause, length, twice = done.stdout.split()
    ethernet = Ether(src="02:00:00:00:00:01")
    quanta: dict[str, Any] = {f"quanta{priority}": 256 + priority for priority in range(8)}
    assert bytes(ethernet / PFC(enabled="p3+p6", **quanta)).hex() == pfc
    assert bytes(ethernet / Pause(quanta=7)).hex() == pause
    assert int(length) > 60  # one layer in between, and it pads too much
    assert twice == "True"  # padding taken for a frame
