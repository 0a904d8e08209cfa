"""Graphs that are no fabric: each mistake named where it is written."""

from __future__ import annotations

import pytest

from emu.errors import ScenarioError
from emu.scenario.load import parse

GRAPH = """\
name: graph
fabric:
  profile: native
  topology:
    kind: graph
    hosts: [h0, h1]
    switches: [s0]
    links:
      - {a: h0, b: 's0:1'}
      - {a: h1, b: 's0:2'}
traffic: []
"""


def message(text: str) -> str:
    """What is wrong with it, in one line."""
    with pytest.raises(ScenarioError) as caught:
        parse(text, "bad.yaml")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_good_one_is_good() -> None:
    assert parse(GRAPH).fabric.topology.host_names() == ("h0", "h1")


@pytest.mark.parametrize(
    ("old", "new", "start"),
    [
        ("b: 's0:2'", "b: 's0:1'", "bad.yaml:10: fabric.topology.links.1.b: 's0:1' is used twice"),
        ("b: 's0:2'", "b: 's9:2'", "bad.yaml:10: fabric.topology.links.1.b: unknown node 's9'; did you mean 's0'?"),
        ("b: 's0:2'", "b: 's0:0'", "bad.yaml:10: fabric.topology.links.1.b: 's0:0': a switch's ports count from 1"),
        ("b: 's0:2'", "b: 's0:x'", "bad.yaml:10: fabric.topology.links.1.b: "),
        ("b: 's0:2'", "b: 'h1:2'", "bad.yaml:10: fabric.topology.links.1: both ends are on 'h1'"),
        ("a: h1, b", "a: h0, b", "bad.yaml:10: fabric.topology.links.1.a: not yet: host 'h0' has a second link"),
        ("b: 's0:2'", "b: 's0:2', rate: 0bps", "bad.yaml:10: fabric.topology.links.1.rate: "),
        ("b: 's0:2'", "b: 's0:2', length: 3m", "bad.yaml:10: fabric.topology.links.1.length: unknown key"),
        ("b: 's0:2'", "b: 's0:99999'", "bad.yaml:10: fabric.topology.links.1.b: "),
        ("switches: [s0]", "switches: [s0, s0]", "bad.yaml:7: fabric.topology.switches.1: node 's0' appears twice"),
        ("switches: [s0]", "switches: [s0, h0]", "bad.yaml:7: fabric.topology.switches.1: node 'h0' appears twice"),
        ("switches: [s0]", "switches: [s0, a_switch_too_long]", "bad.yaml:7: fabric.topology.switches.1: node name"),
        ("switches: [s0]", "switches: [s0, a/b]", "bad.yaml:7: fabric.topology.switches.1: node name 'a/b'"),
        ("switches: [s0]", "switches: [s0, 'a b']", "bad.yaml:7: fabric.topology.switches.1: node name 'a b'"),
        ("switches: [s0]", "switches: [s0, -a]", "bad.yaml:7: fabric.topology.switches.1: node name '-a'"),
        ("switches: [s0]", "switches: [s0, 7]", "bad.yaml:7: fabric.topology.switches.1: 7 is no node name"),
        ("hosts: [h0, h1]", "hosts: [h0, h1, h2]", "bad.yaml:6: fabric.topology.hosts.2: host 'h2' has no link"),
        (
            "switches: [s0]\n    links:\n      - {a: h0, b: 's0:1'}",
            "switches: [s0, s1]\n    links:\n      - {a: h0, b: s1}",
            "bad.yaml:6: fabric.topology.hosts.1: host 'h1' cannot reach host 'h0'",
        ),
        ("hosts: [h0, h1]", "hosts: []", "bad.yaml:6: fabric.topology.hosts: no hosts"),
    ],
)
def test_a_graph_that_is_no_fabric(old: str, new: str, start: str) -> None:
    assert old in GRAPH
    assert message(GRAPH.replace(old, new)).startswith(start)


def test_an_interface_name_counts_its_port() -> None:
    text = GRAPH.replace("s0", "switch0001")  # switch0001-eth1 has 15 characters
    assert parse(text).name == "graph"
    assert "switch0001-eth12" in message(text.replace("switch0001:2", "switch0001:12"))
