"""Nodes, ports and links: names, and what is refused."""

from __future__ import annotations

import pytest
from mininet.topo import Topo

from emu.errors import ScenarioError
from emu.topology import Kind, Link, LinkDefaults, Node, PortName, Topology, from_mininet, link_names
from tests.graphs import graph

DEFAULTS = LinkDefaults(rate_bps=400 * 10**9, host_cable_mm=3000, fabric_cable_mm=5000, propagation_ps_per_m=5000)
H0, H1, S0 = Node("h0", Kind.HOST), Node("h1", Kind.HOST), Node("s0", Kind.SWITCH)


def link(a: str, a_port: int, b: str, b_port: int) -> Link:
    """A link between two ports."""
    return Link(f"{a}-{b}", PortName(a, a_port), PortName(b, b_port), 10**9, 0)


def test_a_mininet_topo_is_read_with_the_profiles_defaults() -> None:
    topo = Topo()
    for host in ("h0", "h1"):
        topo.addHost(host)
    for switch in ("leaf0", "spine0"):
        topo.addSwitch(switch)
    topo.addLink("h0", "leaf0")
    topo.addLink("leaf0", "spine0", rate_bps=10**11, cable_mm=10_000)
    topo.addLink("spine0", "h1", cable_mm=0)
    topology = from_mininet(topo, DEFAULTS)
    assert topology.hosts == ("h0", "h1")
    assert topology.switches == ("leaf0", "spine0")
    assert [(one.name, one.a.interface, one.rate_bps, one.propagation_ps) for one in topology.links] == [
        ("h0-leaf0", "h0-eth0", 400 * 10**9, 15_000),
        ("leaf0-spine0", "leaf0-eth2", 10**11, 50_000),
        ("spine0-h1", "spine0-eth2", 400 * 10**9, 0),
    ]


def test_propagation_rounds_up_to_a_picosecond() -> None:
    odd = LinkDefaults(rate_bps=1, host_cable_mm=0, fabric_cable_mm=0, propagation_ps_per_m=5051)
    assert odd.propagation_ps(1) == 6


def test_parallel_links_are_numbered() -> None:
    assert link_names([("a", "b"), ("b", "a"), ("a", "c"), ("a", "b")]) == ["a-b", "b-a#2", "a-c", "a-b#3"]


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ((link("h0", 0, "h0", 1),), "both ends are on h0"),
        ((link("h0", 0, "x9", 1),), "node 'x9' is unknown"),
        ((link("h0", 0, "s0", 1), link("h1", 0, "s0", 1)), "s0-eth1 is used by h0-s0 and by h1-s0"),
        ((link("h0", 0, "s0", 10**9),), "at most 15"),
    ],
)
def test_what_is_no_fabric_is_refused(links: tuple[Link, ...], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        Topology((H0, H1, S0), links)


def test_a_node_may_appear_once() -> None:
    with pytest.raises(ScenarioError, match="appears twice"):
        Topology((H0, Node("h0", Kind.SWITCH)), ())


@pytest.mark.parametrize("name", ["", "a b", "a/b", "-a", ".a", "a\n", "ä"])
def test_names_that_are_no_interface_are_refused(name: str) -> None:
    with pytest.raises(ScenarioError, match="node name"):
        Topology((Node(name, Kind.HOST),), ())


def test_kind_of_an_unknown_node_names_the_known() -> None:
    with pytest.raises(ScenarioError, match="known: h0, s0, h1"):
        graph("h0-s0 s0-h1").kind("h9")


def test_links_whose_names_would_collide_are_refused() -> None:
    nodes = tuple(Node(name, Kind.SWITCH) for name in ("a-b", "c", "a", "b-c"))
    with pytest.raises(ScenarioError, match="share the name 'a-b-c'"):
        Topology(nodes, (link("a-b", 1, "c", 1), link("a", 1, "b-c", 1)))
    with pytest.raises(ScenarioError, match="share the name"):
        Topology(nodes, (link("c", 1, "a-b", 1), link("a", 1, "b-c", 1)))
    Topology(nodes, (link("a-b", 1, "c", 1), link("a", 1, "c", 2)))
