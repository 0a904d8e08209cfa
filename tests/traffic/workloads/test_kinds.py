"""Each kind of traffic on a fabric in memory: who writes to whom, when, how much, and that it ends."""

from __future__ import annotations

from collections import Counter

import pytest

from emu.engine import Engine
from emu.frame import Message
from emu.scenario.load import parse
from tests.traffic.workloads.watched import TEXT, watch
from traffic.workloads import pause_storm
from traffic.workloads.cluster import Cluster
from traffic.workloads.poisson import arrivals, mean_gap_ps, message_wire_bytes

HOSTS = [f"h{number}" for number in range(6)]
PROFILES = ("native", "roce")


def first_posts(messages: list[Message]) -> dict[str, int]:
    """When each host posted its first message, in picoseconds."""
    found: dict[str, int] = {}
    for message in messages:
        found.setdefault(message.flow.source, message.posted_ps)
    return found


@pytest.mark.parametrize("profile", PROFILES)
def test_incast(profile: str) -> None:
    seen = watch("{kind: incast, senders: 5, receiver: h2, size: 10KB, count: 3, qps: 2, depth: 2}", profile=profile)
    assert Counter(seen.pairs) == {(host, "h2"): 6 for host in HOSTS if host != "h2"}
    assert {message.size_bytes for message in seen.messages} == {10_000}
    flows = {id(message.flow): message.flow for message in seen.messages}.values()
    assert {(flow.kind, flow.expected) for flow in flows} == {("incast", 3)}
    at_once = [message for message in seen.messages if message.posted_ps == 0]
    assert len(at_once) == 5 * 2 * 2  # `depth` outstanding on each queue pair


def test_stagger_and_start() -> None:
    seen = watch("{kind: incast, senders: [h4, h1, h3], receiver: h0, size: 1B, start: 2us, stagger: 300ns}")
    assert first_posts(seen.messages) == {"h4": 2_000_000, "h1": 2_300_000, "h3": 2_600_000}
    seen = watch("{kind: write, pairs: [[h0, h1], [h5, h1]], size: 1B, stagger: 1us}")
    assert first_posts(seen.messages) == {"h0": 0, "h5": 1_000_000}
    for kind in ("all_to_all", "permutation"):
        seen = watch(f"{{kind: {kind}, size: 1B, stagger: 1us}}")
        assert first_posts(seen.messages) == {host: place * 1_000_000 for place, host in enumerate(HOSTS)}


@pytest.mark.parametrize("profile", PROFILES)
def test_permutation(profile: str) -> None:
    seen = watch("{kind: permutation, size: 64KiB, count: 2}", profile=profile)
    sources, targets = zip(*seen.pairs, strict=True)
    assert Counter(sources) == Counter(targets) == {host: 2 for host in HOSTS}
    assert all(source != target for source, target in seen.pairs)
    assert seen.pairs == watch("{kind: permutation, size: 64KiB, count: 2}", profile=profile).pairs
    others = [watch("{kind: permutation, size: 1B}", seed=seed).pairs for seed in range(2, 6)]
    assert any(other != seen.pairs[::2] for other in others)


def test_two_permutations_differ() -> None:
    seen = watch("{kind: permutation, size: 1B}", "{kind: permutation, size: 2B}")
    by_size = [
        [(each.flow.source, each.flow.destination) for each in seen.messages if each.size_bytes == size_bytes]
        for size_bytes in (1, 2)
    ]
    assert sorted(by_size[0]) != sorted(by_size[1])


@pytest.mark.parametrize("profile", PROFILES)
def test_poisson_posts_at_the_times_drawn(profile: str) -> None:
    text = "{kind: poisson, pairs: [[h0, h3], [h1, h4]], size: 10KB, load: 60%, count: 200, qps: 2, start: 1us}"
    seen = watch(text, profile=profile, seed=5)
    scenario = seen.assembly.scenario
    posted: dict[int, list[int]] = {}
    for message in seen.messages:
        posted.setdefault(message.flow.qp_num + (message.flow.source == "h1") * 10**6, []).append(message.posted_ps)
    wire_bytes = message_wire_bytes(seen.messages[0].flow.envelope, 10_000, scenario.fabric.path_mtu_bytes)
    gap_ps = mean_gap_ps(2 * wire_bytes, scenario.fabric.rate_bps, getattr(scenario.traffic[0], "load"))  # noqa: B009
    expected = [
        [1_000_000 + when_ps for when_ps in arrivals(5, f"poisson/0/{number}", 200, gap_ps)] for number in range(4)
    ]
    assert sorted(posted.values()) == sorted(expected)


def test_poisson_offers_its_load_and_waits_for_nothing() -> None:
    seen = watch("{kind: poisson, pairs: [[h0, h3]], size: 4KiB, load: 70%, count: 3000}", profile="roce")
    frame_ps = message_wire_bytes(seen.messages[0].flow.envelope, 4096, 4096) * 8 * 1000 // 400
    spread_ps = seen.messages[-1].posted_ps
    assert 3000 * frame_ps / spread_ps == pytest.approx(0.7, rel=0.1)  # five deviations of 3,000 gaps
    waits = [message.first_bit_ps - message.posted_ps for message in seen.messages]
    assert max(waits) > min(waits) + frame_ps  # some were posted while others had not left yet


def test_a_load_of_everything_ends() -> None:
    assert len(watch("{kind: poisson, pairs: [[h0, h3]], size: 4KiB, load: 100%, count: 500}").messages) == 500


def test_victim() -> None:
    seen = watch(
        "{kind: incast, senders: 3, receiver: h0, size: 64KiB}", "{kind: victim, size: 4KiB, count: 5, start: 1us}"
    )
    flows = [(each.flow.source, each.flow.destination) for each in seen.messages if each.flow.kind == "victim"]
    assert flows == [("h4", "h1")] * 5


def test_a_storm_is_asked_of_the_nic_and_holds_nothing_up() -> None:
    text = TEXT.format(
        profile="roce",
        topology="{kind: line, switches: 1}",
        fabric="flow_control: pfc",
        traffic="{kind: pause_storm, host: h1, duration: 1ms, start: 3us}, {kind: write, pairs: [[h0, h1]], size: 1B}",
        seed=1,
    )
    scenario = parse(text, "storm.yaml")
    asked: list[tuple[int, str, int, int]] = []

    class FakeNic:
        def storm(self, priority: int, duration_ps: int) -> None:
            asked.append((engine.now_ps, "h1", priority, duration_ps))

    class FakeContext:
        nic = FakeNic()

    engine = Engine()
    cluster = Cluster(engine, {"h1": FakeContext()}, 1)  # type: ignore[dict-item]
    pause_storm.start(cluster, scenario.traffic[0])  # type: ignore[arg-type]
    assert engine.tasks == 0
    engine.run()
    assert asked == [(3_000_000, "h1", 3, 10**9)]
