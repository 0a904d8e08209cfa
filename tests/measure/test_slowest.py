"""The message at the p99: which it is, what it waited for, and that no more are kept than are said to be."""

from __future__ import annotations

import random

import pytest

from emu.frame import Message
from emu.measure import slowest
from emu.measure.slowest import Slowest, entry
from emu.measure.values import Values
from emu.parts import PARTS, pack
from tests.measure.flows import FakeFlow


def parts_of(**parts_ps: int) -> int:
    return pack(*(parts_ps.get(name, 0) for name in PARTS))


def add(
    made: Slowest, latency_ps: int, parts: int, size_bytes: int, floor_ps: int, source: str, again: int = 0
) -> None:
    """One message from `source` to h0, of which so many frames were sent again."""
    message = Message(FakeFlow(source), 0, size_bytes, 0)
    message.parts, message.retransmitted = parts, again
    made.add(message, latency_ps, floor_ps)


def kept(latencies: list[int]) -> Slowest:
    made = Slowest()
    for latency_ps in latencies:
        add(made, latency_ps, latency_ps, 1 << 20, latency_ps // 2, "h7")
    return made


@pytest.mark.parametrize("count", [1, 2, 99, 100, 101, 199, 1000, 409_599])
def test_it_is_the_message_of_the_summary_s_p99(count: int) -> None:
    numbers = random.Random(count)
    latencies = [numbers.randrange(1, 10**9) for _ in range(count)]
    values = Values()
    for latency_ps in latencies:
        values.append(latency_ps)
    made = kept(latencies)
    assert made.is_exact
    assert entry(made, "none")["latency_ns"] == values.summary_ns()["p99"]


def test_beyond_what_is_kept_it_says_so() -> None:
    made = kept(list(range(1, 409_601)))
    assert not made.is_exact
    found = entry(made, "none")
    assert found["exact"] is False
    assert found["latency_ns"] == (409_600 - slowest.KEPT + 1) / 1000
    assert found["sentence"].startswith("The 4,096th slowest message (h7 to h0, 1MiB) took")
    assert found["sentence"].endswith("(Of 409,600 messages the p99 itself is no longer known.)")


def test_memory_is_bounded() -> None:
    assert len(kept(list(range(10_000)))._heap) == slowest.KEPT


@pytest.mark.parametrize(
    ("flow_control", "wait"),
    [("credits", "waiting for credits"), ("pfc", "waiting while paused"), ("none", "waiting for flow control")],
)
def test_the_sentence_names_what_it_waited_for(flow_control: str, wait: str) -> None:
    made = Slowest()
    parts = parts_of(flow_control_wait=191_906_000, queueing=90_000_000, control_frame_wait=4_380_000)
    parts += parts_of(serialization=22_022_000, propagation=80_000, nic=6_212_000)
    add(made, 314_600_000, parts, 1 << 20, 22_100_000, "h7")
    found = entry(made, flow_control)
    assert found["sentence"] == (
        "The p99 message (h7 to h0, 1MiB) took 314.6 us, 14.2 times its 22.1 us floor:"
        f" 61 % {wait}, 30 % behind other frames, 7 % on the wire itself, 2 % in the NICs."
    )
    assert (found["src"], found["dst"], found["exact"]) == ("h7", "h0", True)
    breakdown = found["breakdown_ns"]
    assert breakdown["queueing"] == 94_380.0
    assert breakdown["total"] == found["latency_ns"] == 314_600.0
    assert sum(value for name, value in breakdown.items() if name != "total") == pytest.approx(breakdown["total"])


def test_an_unhindered_message_took_its_floor() -> None:
    made = Slowest()
    add(made, 1000, parts_of(serialization=600, switching=400), 64, 1000, "h1")
    assert entry(made, "none")["sentence"] == (
        "The p99 message (h1 to h0, 64B) took 1 ns, its physical floor: 60 % on the wire itself, 40 % in switches."
    )


def test_without_a_message_all_is_zero_and_nothing_is_said() -> None:
    found = entry(Slowest(), "credits")
    assert (found["latency_ns"], found["src"], found["sentence"]) == (0.0, "", "")
    assert set(found["breakdown_ns"].values()) == {0.0}


@pytest.mark.parametrize(
    ("control", "again", "said"),
    [
        ("none", 0, "in the NICs"),
        ("dcqcn", 0, "in the NICs (pacing by dcqcn included)"),
        ("none", 1, "in the NICs (sending 1 frame again included)"),
        ("dcqcn", 1200, "in the NICs (pacing by dcqcn and sending 1,200 frames again included)"),
    ],
)
def test_what_else_a_nic_s_share_has_in_it_is_said(control: str, again: int, said: str) -> None:
    made = Slowest()
    add(made, 1000, parts_of(nic=1000), 64, 500, "h1", again)
    assert entry(made, "pfc", control)["sentence"].endswith(f"100 % {said}.")
