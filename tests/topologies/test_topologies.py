"""Topologies: names, ports, counts and link values of each kind, through Mininet's `Topo`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mininet.topo import Topo
from mininet.util import buildTopo  # type: ignore[attr-defined]  # not in our stubs
from pydantic import TypeAdapter

import topologies
from emu.scenario.topology import TOPOLOGIES, AnyTopology
from emu.topology import LinkDefaults, Topology

DEFAULTS = LinkDefaults(rate_bps=400 * 10**9, host_cable_mm=3000, fabric_cable_mm=5000, propagation_ps_per_m=5000)
MODEL: TypeAdapter[Any] = TypeAdapter(AnyTopology)


def build(**given: Any) -> Topology:
    return topologies.build(MODEL.validate_python(given), DEFAULTS)


def ports(topology: Topology) -> list[tuple[str, str]]:
    return [(link.a.interface, link.b.interface) for link in topology.links]


def test_every_kind_a_scenario_takes_can_be_built_and_no_other() -> None:
    assert set(topologies.BY_KIND) == set(TOPOLOGIES)


def test_leaf_spine() -> None:
    topology = build(kind="leaf_spine", leaves=2, spines=2, hosts_per_leaf=2)
    assert topology.hosts == ("h0", "h1", "h2", "h3")
    assert topology.switches == ("leaf0", "leaf1", "spine0", "spine1")
    assert ports(topology) == [
        ("leaf0-eth1", "h0-eth0"),
        ("leaf0-eth2", "h1-eth0"),
        ("leaf1-eth1", "h2-eth0"),
        ("leaf1-eth2", "h3-eth0"),
        ("leaf0-eth3", "spine0-eth1"),
        ("leaf0-eth4", "spine1-eth1"),
        ("leaf1-eth3", "spine0-eth2"),
        ("leaf1-eth4", "spine1-eth2"),
    ]
    assert [link.name for link in topology.links][3:5] == ["leaf1-h3", "leaf0-spine0"]
    assert {(link.rate_bps, link.propagation_ps) for link in topology.links[:4]} == {(400 * 10**9, 15_000)}
    assert {(link.rate_bps, link.propagation_ps) for link in topology.links[4:]} == {(400 * 10**9, 25_000)}


@pytest.mark.parametrize(("leaves", "spines", "each"), [(1, 1, 1), (4, 4, 4), (8, 2, 3), (16, 12, 11)])
def test_leaf_spine_counts(leaves: int, spines: int, each: int) -> None:
    topology = build(kind="leaf_spine", leaves=leaves, spines=spines, hosts_per_leaf=each)
    assert len(topology.hosts) == leaves * each
    assert len(topology.switches) == leaves + spines
    assert len(topology.links) == leaves * (each + spines)
    for host in range(leaves * each):
        assert f"leaf{host // each}-h{host}" in {link.name for link in topology.links}


def test_hosts_and_fabric_may_have_rates_of_their_own() -> None:
    topology = build(
        kind="leaf_spine", leaves=2, spines=1, hosts_per_leaf=1, host_rate="100Gbps", fabric_rate="800Gbps"
    )
    assert [link.rate_bps // 10**9 for link in topology.links] == [100, 100, 800, 800]
    line = build(kind="line", switches=2, host_rate="100Gbps", fabric_rate="800Gbps")
    assert [link.rate_bps // 10**9 for link in line.links] == [100, 800, 100]


def test_line() -> None:
    assert ports(build(kind="line", switches=3)) == [
        ("h0-eth0", "s0-eth1"),
        ("s0-eth2", "s1-eth1"),
        ("s1-eth2", "s2-eth1"),
        ("s2-eth2", "h1-eth0"),
    ]
    assert [link.propagation_ps for link in build(kind="line", switches=3).links] == [15_000, 25_000, 25_000, 15_000]


def test_back_to_back() -> None:
    topology = build(kind="line", switches=0)
    assert (topology.hosts, topology.switches, ports(topology)) == (("h0", "h1"), (), [("h0-eth0", "h1-eth0")])
    assert topology.links[0].propagation_ps == 15_000


def test_graph_keeps_order_and_ports_and_fills_the_gaps() -> None:
    topology = build(
        kind="graph",
        hosts=["zeta", "alpha"],
        switches=["b0", "a0"],
        links=[
            {"a": "zeta", "b": "b0"},
            {"a": "b0:1", "b": "a0:7", "rate": "100Gbps", "cable": "1m"},
            {"a": "a0", "b": "b0", "cable": "0mm"},
            {"a": "a0", "b": "alpha:2"},
        ],
    )
    assert topology.hosts == ("zeta", "alpha")
    assert ports(topology) == [
        ("zeta-eth0", "b0-eth2"),
        ("b0-eth1", "a0-eth7"),
        ("a0-eth1", "b0-eth3"),
        ("a0-eth2", "alpha-eth2"),
    ]
    assert [link.name for link in topology.links] == ["zeta-b0", "b0-a0", "a0-b0#2", "a0-alpha"]
    assert [link.rate_bps // 10**9 for link in topology.links] == [400, 100, 400, 400]
    assert [link.propagation_ps for link in topology.links] == [15_000, 5_000, 0, 15_000]


def test_big_fabrics_are_quick_to_describe() -> None:
    topology = build(kind="leaf_spine", leaves=64, spines=64, hosts_per_leaf=64)
    assert (len(topology.hosts), len(topology.links)) == (4096, 8192)


def test_stock_mininet_takes_them() -> None:
    custom: dict[str, Any] = {}
    path = Path(topologies.__file__).parent / "custom.py"
    exec(compile(path.read_text(), str(path), "exec"), custom)  # as `mn --custom` does
    for text in ("leaf_spine,leaves=3,spines=2", "line,switches=2", "leaf_spine"):
        topo = buildTopo(custom["topos"], text)
        assert isinstance(topo, Topo)
        dpids = [topo.nodeInfo(switch)["dpid"] for switch in topo.switches()]
        assert len(set(dpids)) == len(dpids)
        # No option that a link class of Mininet's own would not take.
        options = {key for *_, info in topo.links(withInfo=True) for key in info}
        assert options == {"node1", "node2", "port1", "port2"}
