"""Devices from a scenario: what the profile's values reach, and what cannot be built."""

from __future__ import annotations

import pytest

from emu.errors import ScenarioError
from emu.run import Options, run
from emu.run.assembly import Assembly
from emu.scenario.load import parse
from emu.verbs import QP


def text(fabric: str, traffic: str = "{kind: write, pairs: [[h0, h1]], size: 4KiB}") -> str:
    """A scenario of one WRITE."""
    return f"name: build\nfabric: {{{fabric}}}\ntraffic: [{traffic}]\n"


LINE = "topology: {kind: line, switches: 1}"


def fabric_ns(fabric: str) -> float:
    """Its fabric latency in memory."""
    result = run(parse(text(fabric), "build.yaml", ()), Options(wire="memory"))
    return float(result["fabric_latency_ns"]["max"])


@pytest.mark.parametrize("profile", ["native", "roce"])
def test_every_value_that_the_profile_has_reaches_the_devices(profile: str) -> None:
    base = fabric_ns(f"profile: {profile}, {LINE}")
    assert fabric_ns(f"profile: {profile}, {LINE}, hop_latency: 1us") > base
    assert fabric_ns(f"profile: {profile}, {LINE}, host_cable: 13m") == pytest.approx(base + 100)
    assert fabric_ns(f"profile: {profile}, {LINE}, framing_overhead: 120B") > base
    assert fabric_ns(f"profile: {profile}, {LINE}, rate: 100Gbps") > base + 200
    assert fabric_ns(f"profile: {profile}, {LINE}, path_mtu: 256B") > base
    assert fabric_ns(f"profile: {profile}, {LINE}, switching: store_and_forward") > base + 80
    assert fabric_ns(f"profile: {profile}, {LINE}, propagation: 10ns/m") == pytest.approx(base + 30)


def test_rocev2_needs_its_preamble_and_gap() -> None:
    with pytest.raises(ScenarioError, match="at least 20B"):
        parse(text(f"profile: native, {LINE}, framing: rocev2"), "build.yaml", ())


@pytest.mark.parametrize("multipath", ["ecmp", "single"])
def test_flows_spread_over_the_spines_or_keep_to_their_destinations_way(multipath: str) -> None:
    topology = "topology: {kind: leaf_spine, leaves: 2, spines: 4, hosts_per_leaf: 4}"
    assembly = Assembly(
        parse(
            text(
                f"profile: roce, {topology}, multipath: {multipath}",
                "{kind: write, pairs: [[h0, h4], [h1, h4], [h2, h5]], size: 1B, qps: 32}",
            ),
            "build.yaml",
            (),
        )
    )
    assembly.join(None)
    assembly.engine.run()
    ways: dict[str, set[str]] = {}
    for key in assembly.measurement.flows:
        assert isinstance(key, QP)
        ways.setdefault(key.destination, set()).add(assembly.routes.path(key)[1][0])
    counts = {destination: len(used) for destination, used in ways.items()}
    assert counts == ({"h4": 4, "h5": 4} if multipath == "ecmp" else {"h4": 1, "h5": 1})
    if multipath == "single":
        assert ways["h4"] != ways["h5"]


def test_hosts_that_cannot_meet_are_refused_before_anything_is_laid() -> None:
    topology = "topology: {kind: graph, hosts: [h0, h1], switches: [s0, s1], links: [{a: h0, b: s0}, {a: h1, b: s1}]}"
    with pytest.raises(ScenarioError, match="cannot reach"):
        run(parse(text(f"profile: native, {topology}"), "build.yaml", ()), Options(wire="veth"))
