"""The key `capture`: links by either direction's name, in every kind of topology; their names are those built."""

from __future__ import annotations

import pytest

from emu.errors import ScenarioError
from emu.run.assembly import Assembly, topology_of
from emu.scenario import builtin
from emu.scenario.host_path import PATHS
from emu.scenario.load import build, load, parse
from emu.scenario.model import Scenario
from emu.topology import link_names, pcie_link_names, reverse_name


@pytest.mark.parametrize("name", builtin.names())
@pytest.mark.parametrize("settings", [(), ("fabric.topology={kind: line, switches: 0}", "traffic=[]", "expect=[]")])
def test_names_are_those_of_the_links_that_are_built(name: str, settings: tuple[str, ...]) -> None:
    scenario = load(name, settings)
    links = topology_of(scenario).links
    pairs = list(scenario.fabric.topology.link_ends())
    assert link_names(pairs) == [link.name for link in links]
    assert link_names([(b, a) for a, b in pairs]) == [reverse_name(link) for link in links]
    for link in (links[0], links[len(links) // 2], links[-1]):
        for each in (link.name, reverse_name(link)):
            assert load(name, [*settings, f"capture=['{each}']"]).capture == (each,)


@pytest.mark.parametrize(
    ("text", "expected"), [("all", "all"), ("[]", ()), ("[h0-leaf0, leaf0-h0]", ("h0-leaf0", "leaf0-h0"))]
)
def test_what_is_written_comes_back(text: str, expected: object) -> None:
    scenario = load("hello", [f"capture={text}"])
    assert scenario.capture == expected
    assert build(scenario.resolved()) == scenario


PARALLEL = """
name: parallel
fabric:
  profile: native
  topology:
    kind: graph
    hosts: [h0, h1]
    switches: [a, b]
    links: [{a: h0, b: a}, {a: a, b: b}, {a: b, b: a}, {a: h1, b: b}]
traffic: []
capture: [CHOSEN]
"""


@pytest.mark.parametrize("name", ["a-b", "b-a", "'a-b#2'", "'b-a#2'"])
def test_parallel_links(name: str) -> None:
    assert parse(PARALLEL.replace("CHOSEN", name)).capture == (name.strip("'"),)


def test_a_parallel_link_too_many() -> None:
    with pytest.raises(ScenarioError, match=r"unknown link 'a-b#3'; did you mean 'a-b"):
        parse(PARALLEL.replace("CHOSEN", "'a-b#3'"))


def inside(path: str, capture: str, hosts: str = "h0, h1") -> Scenario:
    """Of one switch and two hosts; what it captures."""
    one, other = hosts.split(", ")
    return parse(
        f"""
name: inside
fabric:
  profile: native
  topology:
    kind: graph
    hosts: [{hosts}]
    switches: [s0]
    links: [{{a: {one}, b: s0}}, {{a: {other}, b: s0}}]
host: {{path: {path}}}
traffic: []
capture: {capture}
""",
        "inside.yaml",
    )


@pytest.mark.parametrize("path", PATHS)
def test_links_inside_hosts_are_those_that_are_built(path: str) -> None:
    fabric = Assembly(inside(path, "all")).fabric
    names = [name for host in fabric.hosts.values() for name in host.tree.links]
    assert names == [name for host in ("h0", "h1") for both in pcie_link_names(host) for name in both]
    assert len(names) == 12
    for name in names:
        assert inside(path, f"[{name}]").capture == (name,)


@pytest.mark.parametrize("name", ["h0.gpu-h0.pcie", "h1.pcie-h1.nic"])
def test_without_a_path_hosts_have_no_links_inside(name: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        inside("none", f"[h0-s0, {name}]")
    assert str(caught.value) == (
        f"inside.yaml:12: capture.1: '{name}' is a link inside a host, and host.path is none: frames start at the NIC;"
        " set path to ibgda, cpu_proxy, cpu_sync"
    )


@pytest.mark.parametrize(
    ("path", "name", "hint"),
    [
        ("ibgda", "h0.gpu-h0.cpu", "did you mean 'h0.pcie-h0.cpu'"),
        ("ibgda", "h2.gpu-h2.pcie", "did you mean 'h1.gpu-h1.pcie'|did you mean 'h0.gpu-h0.pcie'"),
        ("none", "h2.gpu-h2.pcie", "known: h0-s0, h1-s0, s0-h0, s0-h1$"),
    ],
)
def test_a_link_inside_that_is_not_there(path: str, name: str, hint: str) -> None:
    with pytest.raises(ScenarioError, match=f"capture.0: unknown link '{name}'.*({hint})"):
        inside(path, f"[{name}]")
