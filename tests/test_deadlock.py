"""Cyclic buffer dependencies: found, named, and found nowhere else; against a check that follows every single way."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from emu.deadlock import dependencies, find_cycle, shortest_cycle
from emu.errors import ScenarioError
from emu.subnet import Subnet, Table
from emu.topology import Kind, Topology, reverse_name
from tests.graphs import graph, leaf_spine

Tables = dict[str, dict[str, tuple[int, ...]]]


def ring(switches: int) -> Topology:
    """One host a switch (port 1), the next switch clockwise, the one before."""
    access = [f"h{number}-s{number}" for number in range(switches)]
    around = [f"s{number}-s{(number + 1) % switches}" for number in range(switches)]
    return graph(" ".join(access + around))


def clockwise(topology: Topology) -> Tables:
    """Every frame goes round by the links `s0-s1`, `s1-s2` ... as they are named."""
    onward = {link.a.node: link.a.number for link in topology.links if not link.a.node.startswith("h")}
    own = {link.b.node: link.a.node for link in topology.links if link.a.node.startswith("h")}
    return {
        switch: {host: (1,) if own[switch] == host else (onward[switch],) for host in topology.hosts}
        for switch in topology.switches
    }


@pytest.mark.parametrize("shape", [(1, 1, 2), (2, 1, 1), (2, 2, 2), (4, 4, 4), (8, 3, 2)])
def test_leaf_spine_with_shortest_ways_cannot_deadlock(shape: tuple[int, int, int]) -> None:
    topology = leaf_spine(*shape)
    assert find_cycle(topology, Subnet(topology).tables()) is None


def test_a_ring_of_three_has_no_way_of_two_links() -> None:
    topology = ring(3)
    assert find_cycle(topology, Subnet(topology).tables()) is None


@pytest.mark.parametrize("switches", [4, 5, 6, 9])
def test_a_longer_ring_is_named_link_by_link(switches: int) -> None:
    topology = ring(switches)
    cycle = find_cycle(topology, Subnet(topology).tables())
    assert cycle is not None
    assert len(cycle) == switches
    ends = [name.split("-") for name in cycle]
    assert all(one[1] == other[0] for one, other in pairwise([*ends, ends[0]]))


@pytest.mark.parametrize("switches", [3, 4, 7])
def test_a_ring_one_way_round_deadlocks_from_three_on(switches: int) -> None:
    topology = ring(switches)
    expected = {f"s{number}-s{(number + 1) % switches}" for number in range(switches)}
    cycle = find_cycle(topology, clockwise(topology))
    assert cycle is not None
    assert set(cycle) == expected
    assert len(cycle) == switches


def test_the_names_are_in_waiting_order_and_begin_with_the_first_link() -> None:
    topology = ring(3)
    assert find_cycle(topology, clockwise(topology)) == ["s0-s1", "s1-s2", "s2-s0"]


def test_a_second_lane_from_a_dateline_on_breaks_the_ring() -> None:
    topology = ring(5)
    last = next(link.a for link in topology.links if link.name == "s4-s0")

    def dateline(switch: str, _: int, number: int, lane: int) -> int:
        return 1 if (switch, number) == (last.node, last.number) else lane

    assert find_cycle(topology, clockwise(topology), next_lane=dateline) is None
    # The other way round it would help nobody: a frame that comes back to lane 0 closes the ring.
    assert find_cycle(topology, clockwise(topology), next_lane=lambda *_: 0) is not None


def test_with_several_lanes_the_lane_is_named() -> None:
    topology = ring(3)
    cycle = find_cycle(topology, clockwise(topology), lanes=(0, 3), next_lane=lambda *way: way[3])
    assert cycle == ["s0-s1 lane 0", "s1-s2 lane 0", "s2-s0 lane 0"]


def test_nics_that_do_not_sink_close_a_cycle_in_any_fabric() -> None:
    topology = graph("h0-s0 h1-s0")
    tables = Subnet(topology).tables()
    assert find_cycle(topology, tables) is None
    assert find_cycle(topology, tables, nics_sink=False) == ["h0-s0", "s0-h1", "h1-s0", "s0-h0"]


def test_a_loop_in_the_tables_is_a_cycle() -> None:
    topology = graph("h0-s0 s0-s1 h1-s1")
    tables = Subnet(topology).tables()
    tables["s1"]["h1"] = (1,)  # back to s0
    assert find_cycle(topology, tables) == ["s0-s1", "s1-s0"]


def test_a_port_without_a_link_is_refused() -> None:
    topology = graph("h0-s0 s0-s1 h1-s1")
    tables = Subnet(topology).tables()
    tables["s0"]["h1"] = (7,)
    with pytest.raises(ScenarioError, match="s0 names port 7"):
        find_cycle(topology, tables)


def test_hosts_back_to_back_wait_for_nobody() -> None:
    assert find_cycle(graph("h0-h1"), {}) is None


def every_way(topology: Topology, tables: dict[str, Table]) -> set[tuple[str, str]]:
    """Pairs of directions that some frame takes one after the other: each way from host to host, walked on its own."""
    ends = {(link.a.node, link.a.number): (link.name, link.b.node) for link in topology.links}
    ends |= {(link.b.node, link.b.number): (reverse_name(link), link.a.node) for link in topology.links}
    found = set()

    def walk(node: str, host: str, before: str, depth: int) -> None:
        if topology.kind(node) is Kind.HOST or depth > 2 * len(ends):
            return
        for number in tables[node].get(host, ()):
            name, after = ends[node, number]
            found.add((before, name))
            walk(after, host, name, depth + 1)

    for (node, _), (name, after) in ends.items():
        if topology.kind(node) is Kind.HOST:
            for host in topology.hosts:
                if host != node:
                    walk(after, host, name, 0)
    return found


def closes(pairs: set[tuple[str, str]]) -> bool:
    """Whether anything reaches itself: by the transitive closure."""
    names = sorted({name for pair in pairs for name in pair})
    reach = set(pairs)
    for middle in names:
        reach |= {(a, b) for a in names if (a, middle) in reach for b in names if (middle, b) in reach}
    return any((name, name) in reach for name in names)


def random_tree(topology: Topology, host: str, numbers: random.Random) -> dict[str, int]:
    """For every switch its port towards the host, on a tree that grows at random: no loop, and not the shortest."""
    ways: dict[str, int] = {}
    edges = [(link.a, link.b) for link in topology.links] + [(link.b, link.a) for link in topology.links]
    while len(ways) < len(topology.switches):
        reached = {host, *ways}
        near = [a for a, b in edges if a.node not in reached and b.node in reached and a.node in topology.switches]
        port = numbers.choice(near)
        ways[port.node] = port.number
    return ways


def random_fabric(seed: int) -> tuple[Topology, dict[str, Table]]:
    """Three to six switches, joined, with extra links and hosts; all shortest ways, or a random tree to each host."""
    numbers = random.Random(seed)
    count = numbers.randint(3, 6)
    links = [f"s{number - 1}-s{number}" for number in range(1, count)] + numbers.choice([[], [f"s{count - 1}-s0"]])
    links += ["-".join(numbers.sample([f"s{n}" for n in range(count)], 2)) for _ in range(numbers.randint(0, 3))]
    topology = graph(" ".join([f"h{host}-s{host % count}" for host in range(numbers.randint(2, 2 * count))] + links))
    if seed % 3 == 0:
        return topology, dict(Subnet(topology).tables())
    trees = {host: random_tree(topology, host, numbers) for host in topology.hosts}
    return topology, {switch: {host: (trees[host][switch],) for host in topology.hosts} for switch in topology.switches}


@pytest.mark.parametrize("seed", range(150))
def test_random_fabrics_agree_with_walking_every_way(seed: int) -> None:
    topology, tables = random_fabric(seed)
    pairs = every_way(topology, tables)
    for sink in (True, False):
        into = {name for _, name in pairs if name.rpartition("-")[2].startswith("h")}
        joined = {(a, b) for a in into for b, _ in pairs if b.startswith("h") and b.split("-")[0] == a.split("-")[1]}
        waits = pairs if sink else pairs | joined
        cycle = find_cycle(topology, tables, nics_sink=sink)
        assert (cycle is not None) == closes(waits)
        if cycle is not None:
            assert set(pairwise([*cycle, cycle[0]])) <= waits
            assert len(set(cycle)) == len(cycle)
    whole = dependencies(topology, tables, next_lane=lambda *way: way[3])
    assert {(a, b) for (a, _), after in whole.items() for b, _ in after} == pairs


def test_random_fabrics_are_of_both_kinds() -> None:
    found = [find_cycle(*random_fabric(seed)) is not None for seed in range(150)]
    assert 15 <= sum(found) <= 135


def test_who_waits_for_whom_in_a_running_fabric() -> None:
    assert shortest_cycle({"a": ["b"], "b": ["c"], "c": []}) is None
    assert shortest_cycle({"x": ["a"], "a": ["b"], "b": ["c", "a"], "c": ["x"]}) == ["a", "b"]
    assert shortest_cycle({"a": ["a"]}) == ["a"]
    assert shortest_cycle({"a": ["elsewhere"]}) is None
