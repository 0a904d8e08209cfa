"""The built-in scenarios: all load, say what they are, expect something, and can be built."""

from __future__ import annotations

import pytest

import topologies
from emu.scenario import builtin
from emu.scenario.load import build, load
from emu.scenario.traffic import Write


@pytest.mark.parametrize("name", builtin.names())
def test_a_built_in_scenario(name: str) -> None:
    scenario = load(name)
    assert scenario.name == name
    assert len(builtin.descriptions()[name]) > 20
    assert scenario.expect
    assert build(scenario.resolved()) == scenario
    topology = topologies.build(scenario.fabric.topology, scenario.fabric.link_defaults)
    assert topology.hosts == tuple(scenario.fabric.topology.host_names())


def test_what_there_is() -> None:
    assert {"hello", "latency-native", "all-to-all-native", "all-to-all-roce", "mixed-rates"} <= set(builtin.names())


def test_a_built_in_takes_settings() -> None:
    hello = load("hello", ["traffic.0.size=64KiB", "fabric.profile=roce"])
    (write,) = hello.traffic
    assert isinstance(write, Write)
    assert (write.size_bytes, hello.fabric.framing) == (65_536, "rocev2")
