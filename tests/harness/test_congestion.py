"""The runs of `emu congestion`: what is run, how long the ideal is, and what is refused before anything runs."""

from __future__ import annotations

import re
from typing import Any

import pytest

from emu.errors import ScenarioError
from emu.harness.congestion import PATTERNS, Plan, cases_of, ideal_ps, message_ps, observe
from emu.measure.fairness import jain
from emu.measure.series import Sample
from emu.run import Options
from emu.run.assembly import topology_of
from emu.scenario.profile import load_profile

MEMORY = Options(wire="memory")
# On the wire around the payload, as in test_latency.py; at 400 Gb/s a byte takes 20 ps.
AROUND, RETH, MTU, PS_PER_BYTE = {"native": 34, "roce": 82}, 16, 4096, 20
SMALL = ("fabric.topology.leaves=2", "fabric.topology.spines=2", "fabric.topology.hosts_per_leaf=3")

LOSSLESS_DROP = re.compile(
    r"LOSSLESS DROP: (\d+) frames? of a lossless class w(?:as|ere) dropped at (\w+) \(ingress [\w-]+, priority 3\)"
)


def of(plan: Plan, name: str) -> Any:
    (case,) = [case for case in cases_of(plan) if case.name == name]
    return case


def test_each_profile_runs_without_control_and_with_its_own() -> None:
    names = [case.name for case in cases_of(Plan())]
    expected = []
    for profile in ("native", "roce"):
        own = load_profile(profile).values(("fabric",))["congestion_control"]
        expected += [f"incast {profile} {control}" for control in dict.fromkeys(("none", own))]
    assert names == expected
    assert [case.folder for case in cases_of(Plan())] == [name.replace(" ", "-") for name in names]


def test_controls_asked_for_are_those_run_and_the_preset_follows() -> None:
    plan = Plan(profiles=("roce",), controls=("none", "dcqcn", "ib_cca"))
    cases = cases_of(plan)
    assert [case.scenario.fabric.congestion_control for case in cases] == ["none", "dcqcn", "ib_cca"]


def test_the_default_is_fifteen_to_one_on_sixteen_hosts() -> None:
    for case in cases_of(Plan()):
        fabric, (incast,) = case.scenario.resolved()["fabric"], case.scenario.resolved()["traffic"]
        assert (fabric["topology"]["leaves"], fabric["topology"]["spines"]) == (4, 4)
        assert len(topology_of(case.scenario).hosts) == 16
        assert (incast["kind"], incast["senders"], incast["receiver"], incast["size"]) == ("incast", 15, "h0", "1MiB")


@pytest.mark.parametrize("profile", ["native", "roce"])
@pytest.mark.parametrize("size_bytes", [0, 1, 4096, 4097, 100_000])
def test_a_message_takes_the_sum_of_its_frames(profile: str, size_bytes: int) -> None:
    scenario = of(Plan(profiles=(profile,), controls=("none",)), f"incast {profile} none").scenario
    packets = max(1, -(-size_bytes // MTU))
    padding = -size_bytes % 4
    wire_bytes = size_bytes + padding + packets * AROUND[profile] + RETH
    assert message_ps(scenario, size_bytes, 400 * 10**9) == wire_bytes * PS_PER_BYTE


def test_the_ideal_is_the_busiest_host_link_in_either_direction() -> None:
    scenario = of(Plan(profiles=("native",), controls=("none",)), "incast native none").scenario
    one_ps = message_ps(scenario, 1000, 400 * 10**9)

    def flow(src: str, dst: str, messages: int = 1) -> dict[str, Any]:
        return {"src": src, "dst": dst, "messages": messages, "bytes": 1000 * messages}

    into = [flow("h1", "h0"), flow("h2", "h0", 3)]
    topology = topology_of(scenario)
    assert ideal_ps(scenario, topology, into) == 4 * one_ps
    assert ideal_ps(scenario, topology, [*into, *(flow("h3", f"h{number}") for number in range(5, 10))]) == 5 * one_ps
    assert ideal_ps(scenario, topology, [flow("h1", "h0", 0)]) == 0


@pytest.mark.parametrize("profile", ["native", "roce"])
def test_an_incast_takes_hardly_more_than_its_ideal_and_says_why(profile: str) -> None:
    plan = Plan(profiles=(profile,), controls=("none",), size_bytes=256 * 1024)
    samples: list[Sample] = []
    seen = observe(of(plan, f"incast {profile} none"), Options(wire="memory", on_sample=samples.append))
    result = seen.result
    assert result["complete"]
    assert result["drops"]["lossless"] == 0
    finish_ns = max(flow["finish_ns"] for flow in result["flows"])
    assert seen.ideal_ns < finish_ns < 1.03 * seen.ideal_ns
    assert seen.bottleneck == "leaf0-h0"
    held = [each.value for each in samples if (each.series, each.name) == ("queue_bytes", "leaf0-h0")]
    assert max(seen.curve) == max(held) > 0
    assert result["fairness"]["jain"] == jain([flow["window_bytes"] for flow in result["flows"]])
    assert result["fairness"]["sentence"].startswith("Same-leaf senders got ")
    assert result["p99"]["latency_ns"] == result["messages"]["latency_ns"]["p99"]
    assert seen.inputs["fabric.hop_latency"]["kind"] == ("published" if profile == "native" else "secondary")


def test_when_rates_fell_and_when_all_was_sent_is_seen() -> None:
    settings = (*SMALL, "fabric.ecn={kmin: 5KB, kmax: 50KB, pmax: 100%}")
    late, early = (
        observe(
            of(
                Plan(profiles=("roce",), controls=("dcqcn",), senders=5, size_bytes=size_bytes, settings=settings),
                "incast roce dcqcn",
            ),
            Options(wire="memory", sample_ps=100_000),
        )
        for size_bytes in (16 * 1024, 1 << 20)
    )
    assert late.first_cut_ns is None or late.first_cut_ns > late.all_sent_ns
    assert early.first_cut_ns is not None
    assert 0 < early.first_cut_ns < early.all_sent_ns < early.result["virtual_ns"]
    assert early.result["frames"]["cnps"] > 0


def test_a_victim_is_chosen_that_sends_nowhere_near_the_incast_s_receiver() -> None:
    scenario = of(Plan(pattern="victim", profiles=("native",), controls=("none",)), "victim native none").scenario
    incast, victim = scenario.resolved()["traffic"]
    assert incast["senders"] == 14
    assert "h0" not in victim["pair"]
    assert victim["pair"][0] == "h15"  # the one that sends nothing else


def test_a_lossless_drop_is_told_with_its_place_and_every_one_is_counted() -> None:
    settings = (*SMALL, "fabric.xoff=64KiB", "fabric.headroom=0B")
    plan = Plan(profiles=("roce",), controls=("none",), senders=5, size_bytes=65_536, settings=settings)
    result = observe(of(plan, "incast roce none"), MEMORY).result
    told = [LOSSLESS_DROP.fullmatch(warning) for warning in result["warnings"]]
    assert result["drops"]["lossless"] == sum(int(each[1]) for each in told if each) > 0
    assert {each and each[2] for each in told} <= {"leaf0", "leaf1", "spine0", "spine1"}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pattern_runs_to_its_end_on_a_fabric_that_can_have_it(pattern: str) -> None:
    senders = 4 if pattern in ("incast", "victim") else None
    settings = (*SMALL, "fabric.flow_control=pfc", "fabric.xoff=64KiB")
    plan = Plan(
        pattern=pattern, profiles=("roce",), controls=("none",), senders=senders, size_bytes=65_536, settings=settings
    )
    (case,) = cases_of(plan)
    result = observe(case, MEMORY).result
    assert (result["complete"], result["messages"]["failed"]) == (True, 0)
    paused = {link["name"] for link in result["links"] if link["pause_frames"]}
    assert (paused != set()) == (pattern != "permutation") and ("h0-leaf0" in paused) == (pattern == "storm")
    assert any(link["paused_ns"] for link in result["links"]) == (paused != set())
    assert {flow["kind"] for flow in result["flows"]} >= {{"storm": "permutation"}.get(pattern, pattern)}


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (Plan(pattern="incats"), "^--pattern: 'incats' is unknown; known: incast, victim"),
        (Plan(profiles=("nativ",)), "^--profile nativ: unknown profile 'nativ'; did you mean 'native'"),
        (Plan(profiles=("native", "native")), "^--profile: 2 of them would be called incast-native-none"),
        (Plan(controls=("dcqnc",)), "^--cc dcqnc: fabric.congestion_control: 'dcqnc' is not allowed"),
        (Plan(controls=("swift",)), "^--cc swift: .*not yet"),
        (Plan(senders=16), "^--senders 16: .*allowed: 1 to 15"),
        (Plan(size_bytes=3 * 2**30), "^--size 3GiB: .*at most 2GiB"),
        (Plan(settings=["traffic.0.size=1B"]), "use --pattern, --senders and --size"),
        (Plan(settings=["fabric.congestion_control=dcqcn"]), "use --cc"),
        (Plan(settings=["fabric={profile: roce}"]), "use --profile"),
        (Plan(settings=["expect=[]"]), "use `emu run`"),
        (Plan(settings=["name=x"]), "use `emu run`"),
        (Plan(settings=["fabric.xoff=1"]), "^--set fabric.xoff=1: fabric.xoff: 1 has no unit"),
        (Plan(pattern="storm", profiles=("native",)), "^--pattern storm: .*a pause_storm takes pause frames"),
    ],
)
def test_a_mistake_is_found_before_anything_runs(plan: Plan, said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        cases_of(plan)
