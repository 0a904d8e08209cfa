"""GPUs in namespaces of their own: the same result as in memory, silence, and what a person does to their links."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from emu.lab.gpus import Gpus
from emu.lab.lab import Lab
from emu.measure.result import comparable
from emu.pcie.framing import TlpFraming, memory_write
from emu.run import Options, run
from emu.scenario.host_path import PATHS
from emu.scenario.load import parse
from emu.wire import patience
from emu.wire.veth import VethWire
from tests.lab.fabrics import SMALL, inside, interfaces_here, process_at, processes_of
from tests.lab.outside import Outside
from tests.run.test_wires_agree import STOCK_BUFFER_BYTES, both_cores_busy

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("nothing_is_left")]

OUT, BACK = "h0.gpu-h0.pcie", "h0.pcie-h0.gpu"
TEXT = """
name: apart
fabric: {{profile: native, topology: {{kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 1}}}}
host: {{path: {path}, gpu_direct: {direct}, pcie: {wire}}}
traffic: [{{kind: write, pairs: [[h0, h1], [h1, h0]], size: {size}, count: {count}, depth: 4}}]
"""


@pytest.fixture
def nothing_is_left() -> Iterator[None]:
    before = interfaces_here(), threading.active_count(), len(os.listdir("/proc/self/fd"))
    yield
    assert (interfaces_here(), threading.active_count(), len(os.listdir("/proc/self/fd"))) == before
    with pytest.raises(LookupError):
        process_at("h0.gpu")


def text(wire: str, path: str = "ibgda", direct: str = "true", size: str = "20000B", count: int = 8) -> str:
    return TEXT.format(wire=wire, path=path, direct=direct, size=size, count=count)


def result(wire: str, over: str = "veth", buffer_bytes: int | None = None, **how: Any) -> dict[str, Any]:
    """What runs should agree in; where TLPs cross is a part of the scenario."""
    options = Options(wire=over, receive_buffer_bytes=buffer_bytes)
    found = comparable(run(parse(text(wire, **how), "apart.yaml"), options))
    assert found["scenario"]["host"]["pcie"].pop("wire") == wire
    assert not found["disturbed"]
    assert found["warnings"] == []
    return found


def test_each_gpu_has_a_namespace_beside_its_hosts() -> None:
    gpus = Gpus(SMALL)
    with Lab(gpus.topology, run_id="emu-gpus") as lab:
        nodes = [node.name for node in gpus.topology.nodes]
        assert nodes[-2:] == ["h0.gpu", "h1.gpu"]
        assert len(processes_of("emu-gpus")) == len(nodes)
        assert len({os.stat(f"/proc/{lab.pid_of(node)}/ns/net").st_ino for node in nodes}) == len(nodes)
        for node, interfaces in (("h0.gpu", ["h0.gpu-eth0"]), ("h0", ["h0-eth0", "h0-eth1"])):
            shown = inside(lab.pid_of(node), "ip", "-o", "address")
            assert "inet" not in shown
            found = inside(lab.pid_of(node), "ls", "/sys/class/net").split()
            assert sorted({*found} - {"lo"}) == interfaces
        quiet = "/proc/sys/net/ipv6/conf/h0.gpu-eth0/disable_ipv6"
        assert inside(lab.pid_of("h0.gpu"), "sh", "-c", f"cat {quiet} 2>/dev/null || echo 1") == "1\n"
        assert lab.mininet["h0.gpu"].cmd("cat /sys/class/net/h0.gpu-eth0/mtu").strip() == "9216"
    assert processes_of("emu-gpus") == []


def test_tlps_cross_both_ways_under_their_links_names() -> None:
    gpus, tlp = Gpus(SMALL), memory_write(1 << 40, b"abcd", 0x0200)
    with Lab(gpus.topology) as lab:
        wires_of = gpus.wires(lab)
        wires = [wire for host in ("h0", "h1") for wire in wires_of(host)]
        assert [wire.name for wire in wires] == [OUT, BACK, "h1.gpu-h1.pcie", "h1.pcie-h1.gpu"]
        for wire in wires:
            assert wire.send(tlp)
            assert wire.receive(tlp) is tlp
        assert [wire.crossed for wire in wires] == [1, 1, 1, 1]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("direct", ["true", "false"])
def test_the_result_is_that_of_memory_and_twice(path: str, direct: str) -> None:
    expected = result("memory", "memory", path=path, direct=direct)
    assert expected["run"]["tlp_hops"] > 1000
    assert result("memory", path=path, direct=direct) == expected
    for _ in range(2):
        assert result("veth", path=path, direct=direct) == expected


def test_thousands_of_tlps_at_once_fit_a_stock_receive_buffer() -> None:
    """Half a megabyte copied from the GPU leaves it at one instant: 2,048 TLPs, of which a socket holds few."""
    how: dict[str, Any] = {"path": "cpu_proxy", "direct": "false", "size": "512KiB", "count": 2}
    expected = result("memory", "memory", **how)
    assert result("veth", buffer_bytes=STOCK_BUFFER_BYTES, **how) == expected


def test_another_process_on_both_cores_changes_nothing() -> None:
    expected = result("memory", "memory", count=100)
    with both_cores_busy():
        assert result("veth", count=100) == expected


class Between(Outside):
    """Somebody between a GPU and its host."""

    def wire(self, name: str) -> VethWire:
        found = {wire.name: wire for wire in self.fabric.wires if isinstance(wire, VethWire)}
        return found[name]

    def at(self, name: str, *command: str) -> str:
        return inside(process_at("h0.gpu" if name == OUT else "h0"), *command)


def between(*deeds: tuple[int, Callable[[Outside], object]]) -> dict[str, Any]:
    """The result of a run in which they do that, at those times in us."""
    return Between(*deeds, text=text("veth")).run()


@pytest.fixture
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PATIENCE_S", 0.1)


def check_lost(found: dict[str, Any], *directions: str) -> None:
    """Nothing repairs it: the traffic does not complete, and the result says why."""
    assert (found["complete"], found["disturbed"]) == (False, True)
    assert found["messages"]["completed"] < found["messages"]["posted"]
    lost = {each["name"]: each["lost"] for each in found["pcie"]["links"] if each["lost"]}
    assert set(lost) <= set(directions)
    assert lost
    for name in lost:
        assert any(warning.startswith(f"wire {name}: ") for warning in found["warnings"])
        assert any(warning.startswith(f"PCIe link {name}: {lost[name]:,} TLP") for warning in found["warnings"])


@pytest.mark.parametrize("name", [OUT, BACK])
def test_a_gpus_link_that_is_set_down(name: str) -> None:
    check_lost(between((4, lambda them: them.set_down(name))), OUT, BACK)


def test_a_gpus_link_that_is_deleted() -> None:
    check_lost(between((4, lambda them: them.at(OUT, "ip", "link", "delete", "h0.gpu-eth0"))), OUT, BACK)


@pytest.mark.usefixtures("little_patience")
@pytest.mark.skipif(shutil.which("tc", path="/usr/sbin:/sbin:/usr/bin:/bin") is None, reason="tc is missing")
def test_a_program_that_eats_tlps() -> None:
    def eat(them: Outside) -> None:
        them.at(OUT, "tc", "qdisc", "add", "dev", "h0.gpu-eth0", "clsact")
        program = "filter add dev h0.gpu-eth0 egress bpf da bytecode"
        them.at(OUT, "tc", *program.split(), "1,6 0 0 4")

    check_lost(between((4, eat)), OUT)


def test_a_tlp_that_comes_out_changed_is_lost() -> None:
    def change(them: Outside) -> None:
        wire = them.wire(BACK)
        send = wire._send

        def send_changed(data: bytes) -> int:
            wire._send = send
            return send(data[:-1] + bytes([data[-1] ^ 1]))

        wire._send = send_changed  # type: ignore[assignment]

    found = between((4, change))
    assert f"wire {BACK}: a frame came out changed; its link CRC counts as bad" in found["warnings"]
    assert sum(each["lost"] for each in found["pcie"]["links"]) == 1
    assert found["disturbed"]


@pytest.mark.parametrize("name", [OUT, BACK])
@pytest.mark.parametrize(
    "data", [bytes(60), TlpFraming().encode(memory_write(0x3000_0000_0000, bytes(8), 0x0200))], ids=["zeros", "TLP"]
)
@pytest.mark.parametrize("accept", [True, False])
def test_a_strangers_tlp_is_counted_and_not_taken_in(name: str, data: bytes, accept: bool) -> None:
    deeds = (4, lambda them: them.wire(name).sender.send(data))
    found = Between(deeds, text=text("veth"), accept_foreign=accept).run()
    assert (found["complete"], found["disturbed"], found["frames"]["foreign"]) == (True, True, 1)
    warning = f"wire {name}: a foreign frame of {len(data)} bytes arrived: nobody in the model sent it"
    assert found["warnings"] == [warning]
    expected = comparable(run(parse(text("memory"), "apart.yaml"), Options(wire="memory")))
    assert found["pcie"] == expected["pcie"]
    assert found["messages"] == expected["messages"]
