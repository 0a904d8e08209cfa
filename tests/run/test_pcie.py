"""The PCIe links inside hosts in a run's result, and their books: at any instant, and where an entry is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from emu.errors import InvariantBroken, ScenarioError
from emu.fabric import Fabric
from emu.frame import Frame
from emu.host.host import Host
from emu.host.link import PcieLink
from emu.run import Options, conservation, pcie, run
from emu.run.assembly import Assembly
from emu.scenario.host_path import PATHS
from emu.scenario.load import parse
from emu.scenario.model import Scenario
from emu.wire.memory import MemoryWire
from tests.tree import ROOT

TEXT = """
name: inside
fabric: {profile: native, topology: {kind: leaf_spine, leaves: 1, spines: 1, hosts_per_leaf: 3}}
host: {path: PATH}
traffic:
  - {kind: all_to_all, size: 10000B}
  - {kind: write, pairs: [[h0, h1], [h1, h2]], size: 3000B, count: 20, depth: 4, op: read}
"""


def scenario(path: str = "ibgda", *settings: str) -> Scenario:
    return parse(TEXT.replace("PATH", path), "inside.yaml", settings)


def ran(until_ps: int | None = None, path: str = "ibgda", *settings: str) -> Assembly:
    """Joined and run until then, or to the end."""
    assembly = Assembly(scenario(path, *settings))
    assembly.join(None)
    assembly.engine.run(until_ps)
    return assembly


def result(path: str = "ibgda", *settings: str) -> dict[str, Any]:
    return run(scenario(path, *settings), Options(wire="memory"))


def links(fabric: Fabric) -> Iterator[PcieLink]:
    for host in fabric.hosts.values():
        yield from host.tree.links.values()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("direct", ["true", "false"])
def test_all_that_was_sent_arrives(path: str, direct: str) -> None:
    assembly = ran(None, path, f"host.gpu_direct={direct}", "traffic.1.op=write")
    conservation.check(assembly)
    assert assembly.engine.tasks == 0
    late = [link for link in links(assembly.fabric) if link.delivered_tlps < link.tlps]
    assert all("nic" in link.name or "gpu" in link.name or "cpu" in link.name for link in late)
    assembly.engine.run()  # what nobody waited for
    conservation.check(assembly)
    assert all(link.delivered_tlps == link.tlps > 0 for link in links(assembly.fabric) if "nic" in link.name)
    assert all(link.delivered_bytes == link.tx_bytes for link in links(assembly.fabric))
    assert all(host.tree.nic.owed() == {} for host in assembly.fabric.hosts.values())


@pytest.mark.parametrize("path", PATHS)
def test_the_books_agree_at_any_instant(path: str) -> None:
    assembly = Assembly(scenario(path))
    assembly.join(None)
    seen = [0, 0]
    for until_ps in range(0, 40_000_000, 97_000):
        assembly.engine.run(until_ps)
        count = conservation.check(assembly)
        assert count.sent == count.delivered + count.on_the_way
        seen[0] += any(link.delivered_tlps < link.tlps for link in links(assembly.fabric))
        seen[1] += any(host.tree.nic.outstanding for host in assembly.fabric.hosts.values())
    assert min(seen) > 20  # packets under way, and reads


def first(fabric: Fabric) -> Host:
    return fabric.hosts["h0"]


def lose_a_packet(fabric: Fabric) -> None:
    first(fabric).tree.to("nic").delivered_tlps -= 1


def lose_a_byte(fabric: Fabric) -> None:
    first(fabric).tree.out("gpu").delivered_bytes -= 1


def lose_in_the_middle(fabric: Fabric) -> None:
    first(fabric).tree.middle.received -= 1


def lose_in_a_memory(fabric: Fabric) -> None:
    first(fabric).tree.gpu_memory.received -= 1


def make_up_a_loss(fabric: Fabric) -> None:
    link = first(fabric).tree.to("cpu")
    link.delivered_tlps -= 1
    link.lost_tlps += 1


def make_up_a_completion(fabric: Fabric) -> None:
    first(fabric).tree.nic.unexpected += 1


def make_up_a_read(fabric: Fabric) -> None:
    first(fabric).tree.nic.reads += 1


def forget_a_read(fabric: Fabric) -> None:
    dma = first(fabric).tree.nic
    dma._outstanding[next(iter(dma.owed()))] = None


def owe_a_byte_more(fabric: Fabric) -> None:
    dma = first(fabric).tree.nic
    request = dma._outstanding[next(iter(dma.owed()))]
    assert request is not None
    request.left += 1


@pytest.mark.parametrize(
    "spoil",
    [
        lose_a_packet,
        lose_a_byte,
        lose_in_the_middle,
        lose_in_a_memory,
        make_up_a_loss,
        make_up_a_completion,
        make_up_a_read,
        forget_a_read,
        owe_a_byte_more,
    ],
)
def test_a_wrong_entry_is_an_invariant_broken(spoil: Callable[[Fabric], None]) -> None:
    assembly = ran(2_400_000)
    assert first(assembly.fabric).tree.nic.owed()
    conservation.check(assembly)
    spoil(assembly.fabric)
    with pytest.raises(InvariantBroken, match=r"^h0[.:]"):
        conservation.check(assembly)


def test_a_packet_that_vanishes_from_the_queue_is_missed() -> None:
    assembly = ran(2_400_000)
    queue = assembly.engine.queue
    place = next(place for place, (*_, action, _) in enumerate(queue) if getattr(action, "__name__", "") == "_arrive")
    del queue[place]
    with pytest.raises(InvariantBroken, match=r"^h\d\.\w+-h\d\.\w+: of \d+ TLPs sent, \d+ are accounted for"):
        conservation.check(assembly)


class Losing(MemoryWire):
    """Refuses the third frame."""

    def __init__(self, name: str, *, told: bool) -> None:
        super().__init__(name)
        self.sent = 0
        self.told = told

    def send(self, frame: Frame) -> bool:
        self.sent += 1
        self.disturbed = self.told and self.sent >= 3
        return self.sent != 3


@pytest.mark.parametrize("told", [True, False])
def test_a_loss_is_a_disturbance_or_a_bug(told: bool) -> None:
    assembly = Assembly(scenario())
    assembly.join(None, lambda host: (Losing(f"{host} out", told=told and host == "h0"), MemoryWire(host)))
    assembly.engine.run()
    if not told:
        with pytest.raises(InvariantBroken, match=r"1 TLPs were lost, and nobody touched its wire"):
            conservation.check(assembly)
        return
    for name in ("h1", "h2"):
        assembly.fabric.hosts[name].tree.out("gpu").wire.disturbed = True  # type: ignore[union-attr]
    conservation.check(assembly)
    assert "PCIe link h0.gpu-h0.pcie: 1 TLP was lost, and nothing sends it again" in list(
        pcie.warnings(assembly.fabric)
    )


@pytest.mark.parametrize("path", PATHS)
def test_the_result_has_every_link_and_host(path: str) -> None:
    of = result(path)
    entries, hosts = of["pcie"]["links"], of["pcie"]["hosts"]
    assert len(entries) == 3 * 3 * 2
    assert [each["host"] for each in hosts] == ["h0", "h1", "h2"]
    assert of["run"]["tlp_hops"] == sum(each["tlps"] for each in entries) > 1000
    for each in entries:
        assert each["name"] == f"{each['from']}-{each['to']}"
        assert 0 <= each["utilization"] < 1
        assert each["payload_bytes"] <= each["tx_bytes"] - 20 * each["tlps"]
        assert each["lost"] == 0
    for each in hosts:
        assert (each["bad_doorbells"], each["unsupported_requests"]) == (0, 0)
        assert 0 < each["context_misses"] <= each["doorbells"]
        assert 0 < each["max_outstanding_reads"] <= min(each["reads"], 256)
    assert of["warnings"] == []


def test_doorbells_of_one_write_and_its_bytes() -> None:
    alone = "traffic=[{kind: write, pairs: [[h0, h1]], size: 256B}]"
    of = result("ibgda", alone)
    (h0, h1, h2) = of["pcie"]["hosts"]
    assert (h0["doorbells"], h0["reads"], h0["context_misses"]) == (1, 3, 1)
    assert (h1["doorbells"], h1["reads"], h2["reads"]) == (0, 0, 0)
    found = {each["name"]: (each["tlps"], each["payload_bytes"], each["tx_bytes"]) for each in of["pcie"]["links"]}
    assert found["h0.pcie-h0.nic"] == (4, 8 + 256 + 64 + 256, 32 + 276 + 84 + 276)
    assert found["h0.nic-h0.pcie"] == (4, 64, 3 * 24 + 88)
    assert found["h1.nic-h1.pcie"] == (1, 256, 280)
    assert found["h2.nic-h2.pcie"] == (0, 0, 0)


def test_utilization_is_of_the_whole_run() -> None:
    of = result("ibgda", "traffic=[{kind: write, pairs: [[h0, h1]], size: 1MiB}]")
    rate_bps = next(iter(Assembly(scenario()).fabric.hosts.values())).tree.to("gpu").rate_bps
    for each in of["pcie"]["links"]:
        busy = each["tx_bytes"] * 8e9 / rate_bps / of["virtual_ns"]
        assert each["utilization"] == pytest.approx(busy, rel=5e-3)  # each packet's time is rounded up to a picosecond


def test_what_has_not_left_yet_is_no_utilization() -> None:
    """A megabyte copied to host memory at once waits for its link."""
    big = "traffic=[{kind: write, pairs: [[h0, h1]], size: 1MiB}]"
    of = result("ibgda", big, "host.gpu_direct=false", "run.until=10us")
    (link,) = [each for each in of["pcie"]["links"] if each["name"] == "h0.gpu-h0.pcie"]
    assert link["on_the_way"] > 1000
    assert link["utilization"] < 1


def test_without_a_path_there_is_no_such_key() -> None:
    of = result("none")
    assert "pcie" not in of
    assert of["run"]["tlp_hops"] == 0


def test_what_should_not_be_is_warned_of() -> None:
    assembly = Assembly(scenario())
    assembly.join(None)
    tree = first(assembly.fabric).tree
    tree.gpu.write(0x3000_0000_0000, b"\xff" * 7)  # too short to be a doorbell
    tree.gpu.write(0x10, b"nobody's")
    tree.cpu.write(0x7FFF_0000_0000, b"not mapped")
    assembly.engine.run()
    conservation.check(assembly)
    assert list(pcie.warnings(assembly.fabric)) == [
        "host h0: 2 PCIe requests for what is not there",
        "host h0: 1 bad doorbell",
    ]


def test_a_read_that_nobody_answers_stays_in_the_books() -> None:
    assembly = Assembly(scenario())
    assembly.join(None)
    tree = first(assembly.fabric).tree
    tree.nic.read(0x10, 8, bytearray(8), lambda _: None)
    assembly.engine.run()
    conservation.check(assembly)
    assert tree.nic.owed() == {0: 8}


def test_a_gpu_apart_cannot_be_had_over_memory() -> None:
    with pytest.raises(ScenarioError) as caught:
        result("ibgda", "host.pcie=veth")
    assert str(caught.value) == (
        "--set host.pcie=veth: host.pcie.wire: veth: a run over --wire memory has no namespaces; set it to memory"
    )


def test_every_key_is_documented() -> None:
    page = (ROOT / "docs/results.md").read_text(encoding="utf-8")
    of = result()["pcie"]
    keys = {*of["links"][0], *of["hosts"][0]}
    assert sorted(keys - set(re.findall(r"`(\w+)`", page))) == []
