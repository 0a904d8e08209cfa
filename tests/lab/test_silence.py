"""Nothing speaks on a lab's links but the model, and building one changes no setting of the machine."""

from __future__ import annotations

import time

import pytest

from emu.lab.gpus import Gpus
from emu.lab.lab import Lab
from emu.topology import Topology
from tests.lab.fabrics import SMALL, settings_here
from tests.wire.stub import StubFraming

pytestmark = pytest.mark.lab

LISTENING_S = 1.0
SOURCE, HOST, EVERYONE = "020000000001", "020000000002", "ffffffffffff"
IPV4 = "45000028000100004011" + "66c3" + "0a0000010a000002"
IPV6 = "60000000001011fffe800000000000000000000000000001ff020000000000000000000000000001"
FRAMES = {
    "ARP request": EVERYONE + SOURCE + "0806" + "0001080006040001" + SOURCE + "0a000001" + "00" * 6 + "0a000002",
    "RoCEv2": HOST + SOURCE + "0800" + IPV4 + "c00012b700140000" + "64" + "00" * 15,
    "RoCEv2 to all": EVERYONE + SOURCE + "0800" + IPV4.replace("0a000002", "ffffffff") + "c00012b700140000" + "00" * 12,
    "ICMP echo request": HOST + SOURCE + "0800" + IPV4.replace("4011", "4001") + "0800f7ff00000000" + "00" * 12,
    "TCP SYN": HOST + SOURCE + "0800" + IPV4.replace("4011", "4006") + "c000005000000001000000005002200000000000",
    "IPv6 neighbour solicitation": "3333ff000002" + SOURCE + "86dd" + IPV6 + "8700000000000000" + "00" * 24,
    "native InfiniBand": HOST + SOURCE + "88b5" + "00" * 64,
    "flow control packet": HOST + SOURCE + "88b6" + "00" * 46,
    "PCIe TLP": HOST + SOURCE + "88b6" + "02" + "60000002020000ff0000300000000000" + "0000010000001100",
    "PFC pause": "0180c2000001" + SOURCE + "8808" + "0101" + "0008" + "ffff" * 8 + "00" * 26,
    "LLDP": "0180c200000e" + SOURCE + "88cc" + "00" * 46,
    "802.3 length": HOST + SOURCE + "002e" + "00" * 46,
}


LABS = pytest.mark.parametrize("topology", [SMALL, Gpus(SMALL).topology], ids=["fabric", "fabric and GPUs"])


@LABS
def test_no_frame_draws_an_answer(topology: Topology) -> None:
    with Lab(topology) as lab:
        ends = {port: lab.socket_at(port) for link in topology.links for port in (link.a, link.b)}
        for opened in ends.values():
            for text in FRAMES.values():
                opened.send(bytes.fromhex(text))
        wires = [wire for link in topology.links for wire in lab.wires(link, StubFraming())]
        time.sleep(LISTENING_S)
        heard: dict[object, list[bytes]] = {port: [] for port in ends}
        for port, opened in ends.items():
            for _ in range(2 * len(FRAMES)):
                try:
                    heard[port].append(opened.recv(9216))
                except BlockingIOError:
                    break
        for frames in heard.values():
            assert frames == [bytes.fromhex(text) for text in FRAMES.values()]
        for wire in wires:
            wire.finish()
            assert wire.foreign == 0


@LABS
def test_an_idle_lab_says_nothing(topology: Topology) -> None:
    with Lab(topology) as lab:
        wires = [wire for link in topology.links for wire in lab.wires(link, StubFraming())]
        time.sleep(LISTENING_S)
        for wire in wires:
            wire.finish()
        assert [wire.foreign for wire in wires] == [0] * len(wires)


@LABS
def test_the_machine_has_the_settings_it_had(topology: Topology) -> None:
    before = settings_here()
    assert len(before) > 100
    with Lab(topology) as lab:
        lab.mininet["h0"].cmd("true")
        during = settings_here()
    assert during == before
    assert settings_here() == before
