"""The key `capture`: links by either direction's name, in every kind of topology; their names are those built."""

from __future__ import annotations

import pytest

from emu.errors import ScenarioError
from emu.run.assembly import topology_of
from emu.scenario import builtin
from emu.scenario.load import build, load, parse
from emu.topology import link_names, reverse_name


@pytest.mark.parametrize("name", builtin.names())
@pytest.mark.parametrize("settings", [(), ("fabric.topology={kind: line, switches: 0}", "traffic=[]", "expect=[]")])
def test_names_are_those_of_the_links_that_are_built(name: str, settings: tuple[str, ...]) -> None:
    scenario = load(name, settings)
    links = topology_of(scenario).links
    pairs = list(scenario.fabric.topology.link_ends())
    assert link_names(pairs) == [link.name for link in links]
    assert link_names([(b, a) for a, b in pairs]) == [reverse_name(link) for link in links]
    for link in links:
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
