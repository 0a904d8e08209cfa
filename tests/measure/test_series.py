"""Samples in virtual time: only what changed, and a run that does not know of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from emu.engine import Engine
from emu.errors import ScenarioError
from emu.measure.result import comparable
from emu.measure.series import Sample, Sampler
from emu.run import Options, run
from emu.scenario.load import load, parse

US = 10**6
INCAST = """
name: incast
fabric: {profile: PROFILE, topology: {kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 3}MORE}
traffic: [{kind: incast, senders: 5, receiver: h0, size: 64KiB}]
"""


@dataclass
class FakeLane:
    number: int
    held_bytes: int = 0


@dataclass
class FakeControl:
    """Flow control of either kind."""

    paused: set[int] = field(default_factory=set)
    blocks: dict[int, int] = field(default_factory=dict)

    def is_paused(self, lane: int, now_ps: int) -> bool:
        return lane in self.paused

    def available_blocks(self, vl: int) -> int:
        return self.blocks[vl]


@dataclass
class FakePort:
    lanes: tuple[FakeLane, ...]
    flow: Any = None
    tx_bytes: int = 0


def sampled(
    engine: Engine, port: FakePort, flow_control: str = "none", rates: dict[str, int] | None = None
) -> tuple[Sampler, list[Sample]]:
    """Samples of one port every 10 ps."""
    samples: list[Sample] = []

    def of_rates() -> Iterable[tuple[str, int]]:
        return (rates or {}).items()

    sampler = Sampler(engine, {"a-b": port}, of_rates, samples.append, flow_control=flow_control, interval_ps=10)
    return sampler, samples


def test_the_first_look_tells_all_and_later_ones_only_what_changed() -> None:
    engine, lane = Engine(), FakeLane(3)
    port, rates = FakePort((lane, FakeLane(4))), {"h1-h0/17": 400}
    sampler, samples = sampled(engine, port, rates=rates)

    def change(_: object) -> None:
        lane.held_bytes, port.tx_bytes, rates["h1-h0/17"] = 7, 50, 200

    engine.at(15, change)
    engine.at(45, lambda _: None)
    sampler.start()
    engine.run()
    sampler.finish()
    assert samples == [
        Sample(0, "tx_bytes", "a-b", -1, 0),
        Sample(0, "queue_bytes", "a-b", 3, 0),
        Sample(0, "queue_bytes", "a-b", 4, 0),
        Sample(0, "rate_bps", "h1-h0/17", -1, 400),
        Sample(20, "tx_bytes", "a-b", -1, 50),
        Sample(20, "queue_bytes", "a-b", 3, 7),
        Sample(20, "rate_bps", "h1-h0/17", -1, 200),
    ]


def test_pauses_are_looked_at_with_pfc_and_credits_with_credits() -> None:
    control = FakeControl({1}, {0: 9, 1: 8})
    for flow_control, series, values in (("pfc", "paused", [0, 1]), ("credits", "credit_blocks", [9, 8])):
        sampler, samples = sampled(Engine(), FakePort((FakeLane(0), FakeLane(1)), control), flow_control)
        sampler.start()
        assert [each.value for each in samples if each.series == series] == values


def test_it_does_not_keep_a_run_alive_nor_make_it_longer() -> None:
    for events in ([], [3], [3, 15], [25], [10, 20, 30], [0, 0, 7], [95, 100_000]):
        engine = Engine()
        sampler, _ = sampled(engine, FakePort((FakeLane(0),)))
        for when_ps in events:
            engine.at(when_ps, lambda _: None)
        sampler.start()
        engine.run()
        assert engine.now_ps == max(events, default=0)
        assert engine.events_run - sampler.calls == len(events)
        assert engine.queue == []


def test_what_an_event_sets_off_is_waited_for() -> None:
    engine, seen = Engine(), list[int]()
    sampler, samples = sampled(engine, port := FakePort((FakeLane(0),)))

    def again(left: int) -> None:
        seen.append(engine.now_ps)
        port.tx_bytes += 1
        if left:
            engine.at(engine.now_ps + 4, again, left - 1)

    engine.at(0, again, 10)
    sampler.start()
    engine.run()
    assert (seen, engine.now_ps) == (list(range(0, 41, 4)), 40)
    assert engine.events_run - sampler.calls == 11
    assert [each.value for each in samples][-1] == 11


def test_a_limit_ends_it_as_it_would_without() -> None:
    engine = Engine()
    sampler, samples = sampled(engine, FakePort((FakeLane(0),)))
    engine.at(1000, lambda _: None)
    sampler.start()
    engine.run(until_ps=35)
    assert (engine.now_ps, engine.events_run - sampler.calls, sampler.calls) == (35, 0, 3)
    assert {each.time_ps for each in samples} == {0}


def test_looks_some_time_apart_are_asked_for() -> None:
    with pytest.raises(ScenarioError, match="at least 1 ps apart"):
        Sampler(Engine(), {}, lambda: (), print, flow_control="none", interval_ps=0)


@pytest.mark.parametrize(
    ("profile", "more"),
    [
        ("native", ", flow_control: none"),
        ("native", ", flow_control: credits, credit_blocks: 200"),
        ("roce", ", flow_control: pfc, xoff: 40KB, congestion_control: none"),
        ("roce", ", flow_control: pfc, congestion_control: dcqcn, ecn: {kmin: 5KB, kmax: 50KB, pmax: 50%}"),
    ],
)
@pytest.mark.parametrize("interval_ps", [US, 50_001])
def test_a_run_that_is_looked_at_gives_the_same_result(profile: str, more: str, interval_ps: int) -> None:
    scenario = parse(INCAST.replace("PROFILE", profile).replace("MORE", more), "incast.yaml")
    samples: list[Sample] = []
    looked_at = run(scenario, Options(wire="memory", on_sample=samples.append, sample_ps=interval_ps))
    assert comparable(looked_at) == comparable(run(scenario, Options(wire="memory")))
    for link in looked_at["links"]:
        sent = [each.value for each in samples if (each.series, each.name) == ("tx_bytes", link["name"])]
        assert sent == sorted(sent)
        assert sent[-1] == link["tx_bytes"]
        lanes: dict[int, int] = {}
        for each in samples:
            if (each.series, each.name) == ("queue_bytes", link["name"]):
                lanes[each.lane] = each.value
                assert sum(lanes.values()) <= link["max_queue_bytes"]
        assert not any(lanes.values())
    series = {each.series for each in samples}
    assert ("paused" in series) == ("pfc" in more)
    assert ("credit_blocks" in series) == ("credits" in more)
    assert ("rate_bps" in series) == ("dcqcn" in more)


def test_a_run_that_stops_early_is_the_same_too() -> None:
    scenario = load("hello", ["run.until=1us", "expect=[]"])
    looked_at = run(scenario, Options(wire="memory", on_sample=lambda _: None, sample_ps=1000))
    assert comparable(looked_at) == comparable(run(scenario, Options(wire="memory")))
