"""Addresses and forwarding tables."""

from __future__ import annotations

import pytest

from emu.addresses import address_of, ipv4_text, mac_text
from emu.errors import ScenarioError
from emu.subnet import Subnet
from emu.topology import Kind, Link, Node, PortName, Topology
from tests.graphs import graph, leaf_spine


def test_addresses_follow_the_hosts_number() -> None:
    address = address_of("h5", 5)
    assert (ipv4_text(address.ipv4), mac_text(address.mac), address.lid) == ("10.0.0.6", "02:00:00:00:00:06", 6)


def test_more_hosts_than_lids_are_refused() -> None:
    with pytest.raises(ScenarioError, match="49151"):
        address_of("h", 0xBFFF)


def test_leaf_spine_uses_every_spine_upwards_and_one_way_down() -> None:
    tables = Subnet(leaf_spine(2, 4, 2)).tables()
    assert tables["leaf0"]["h0"] == (1,)
    assert tables["leaf0"]["h3"] == (3, 4, 5, 6)
    assert tables["spine2"]["h3"] == (2,)


def test_only_shortest_ways_are_used() -> None:
    topology = graph("h0-s0 s0-s1 s1-s2 s0-s2 s2-h1")
    assert Subnet(topology).tables()["s0"]["h1"] == (3,)


def test_parallel_links_are_ways_of_their_own() -> None:
    assert Subnet(graph("h0-s0 s0-s1 s0-s1 s1-h1")).tables()["s0"]["h1"] == (2, 3)


def test_a_host_between_two_switches_carries_nothing_through() -> None:
    with pytest.raises(ScenarioError, match="cannot reach"):
        Subnet(graph("h0-s0 s0-h1 h1-s1 s1-h2")).tables()


def test_hosts_that_cannot_meet_are_named() -> None:
    with pytest.raises(ScenarioError, match=r"host h[12] cannot reach host h0"):
        Subnet(graph("h0-s0 h1-s1 s1-h2")).tables()


def test_hosts_back_to_back_need_no_switch() -> None:
    link = Link("h0-h1", PortName("h0", 0), PortName("h1", 0), 10**9, 0)
    assert Subnet(Topology((Node("h0", Kind.HOST), Node("h1", Kind.HOST)), (link,))).tables() == {}


def test_two_pairs_back_to_back_are_no_fabric() -> None:
    with pytest.raises(ScenarioError, match="cannot reach"):
        Subnet(graph("h0-h1 h2-h3")).tables()


@pytest.mark.parametrize("links", ["h0-s0 h1-s0 s0-s1 s1-h2", "h0-s0 s0-s1 s1-s2 s2-s0 s2-h1 s1-h2 s1-s2"])
def test_every_way_leads_nearer_and_every_host_is_known_everywhere(links: str) -> None:
    topology = graph(links)
    ends = {(one.a.node, one.a.number): one.b.node for one in topology.links}
    ends |= {(one.b.node, one.b.number): one.a.node for one in topology.links}
    tables = Subnet(topology).tables()
    for switch, table in tables.items():
        assert set(table) == set(topology.hosts)
        for host, ports in table.items():
            for port in ports:
                node, hops = ends[switch, port], 1
                while node != host:
                    node = ends[node, tables[node][host][0]]
                    hops += 1
                    assert hops < len(topology.nodes)
