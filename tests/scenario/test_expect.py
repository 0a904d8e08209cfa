"""Expectations: how they are written, the units they are held to, and what they find in a result."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.errors import ScenarioError
from emu.scenario.expect import Expectation

RESULT: dict[str, Any] = {
    "complete": True,
    "virtual_ns": 942.92,
    "drops": {"lossless": 0, "by_reason": {}},
    "messages": {"completed": 3, "bytes": 12288, "latency_ns": {"p50": 942.92, "p99": 1500.0, "max": None}},
    "breakdown_ps_total": {"total": 942920},
    "run": {"wall_s": 0.53, "peak_rss_mb": 60, "frame_hops_per_s": 104000},
    "flows": [
        {"src": "h0", "dst": "h1", "fct_ns": 10.0},
        {"src": "h0", "dst": "h2", "fct_ns": 20.0},
        {"src": "h3", "dst": "h2", "fct_ns": 40.0},
    ],
    "links": [
        {"name": "leaf0-h0", "from": "leaf0", "to": "h0", "tx_bytes": 4096, "utilization": 0.5},
        {"name": "h0-leaf0", "from": "h0", "to": "leaf0", "tx_bytes": 100, "utilization": 0.25},
        {"name": "leaf0-s-1#2", "from": "leaf0", "to": "s-1", "tx_bytes": 7, "utilization": 0.0},
    ],
    "queues": [],
    "fairness": {"jain": 1.0},
    "wire": "memory",
}


@pytest.mark.parametrize(
    ("text", "holds", "value"),
    [
        ("drops.lossless == 0", True, 0),
        ("drops.lossless != 0", False, 0),
        ("messages.completed >= 3", True, 3),
        ("messages.completed<4", True, 3),
        ("messages.completed > 2.5", True, 3),
        ("messages.bytes == 12KiB", True, 12288),
        ("messages.bytes <= 12KB", False, 12288),
        ("virtual_ns == 942.92ns", True, 942.92),
        ("virtual_ns == 942920ps", True, 942.92),
        ("virtual_ns < 0.94292us", False, 942.92),
        ("messages.latency_ns.p99 < 400us", True, 1500.0),
        ("messages.latency_ns.p99 <= 1.5us", True, 1500.0),
        ("messages.latency_ns.p99 > 0", True, 1500.0),
        ("messages.latency_ns.max < 1s", False, None),
        ("breakdown_ps_total.total == 942.92ns", True, 942920),
        ("run.wall_s < 530ms", False, 0.53),
        ("run.peak_rss_mb == 60MB", True, 60),
        ("run.frame_hops_per_s > 1e5", True, 104000),
        ("links[name=leaf0-h0].tx_bytes == 4KiB", True, 4096),
        ("links[name=h0-leaf0].tx_bytes == 100B", True, 100),
        ("links[name=s-1-leaf0#2].tx_bytes == 7B", True, 7),
        ("links[ name = leaf0-h0 ].utilization >= 50%", True, 0.5),
        ("max(links.tx_bytes) == 4KiB", True, 4096),
        ("min(links.tx_bytes) == 7B", True, 7),
        ("sum( links.tx_bytes ) == 4203B", True, 4203),
        ("max(links[name=leaf0-h0].tx_bytes) == 4KiB", True, 4096),
        ("count(links) == 3", True, 3),
        ("count(queues) == 0", True, 0),
        ("sum(queues.depth_bytes) == 0", True, 0),
        ("count(flows[src=h0]) == 2", True, 2),
        ("max(flows[src=h0].fct_ns) == 20ns", True, 20.0),
        ("flows[src=h0][dst=h2].fct_ns == 20ns", True, 20.0),
        ("complete == true", True, True),
        ("complete != true", False, True),
        ("fairness.jain >= 100%", True, 1.0),
    ],
)
def test_what_holds(text: str, holds: bool, value: object) -> None:
    assert Expectation.parse(text).evaluate(RESULT) == (holds, value)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("drops.lossles == 0", "did you mean 'lossless'?"),
        ("drop.lossless == 0", "did you mean 'drops'?"),
        ("links[name=leaf0-h1].tx_bytes == 0", "did you mean 'leaf0-h0'?"),
        ("links[nam=leaf0-h0].tx_bytes == 0", "did you mean 'name'?"),
        ("links[name=leaf0-s-1].tx_bytes == 0", "known: h0-leaf0, leaf0-h0"),
        ("links.tx_bytes == 0", "use max(), min(), sum() or count()"),
        ("flows[src=h0].fct_ns == 0", "use max(), min(), sum() or count()"),
        ("drops.lossless.x == 0", "has no key 'x'"),
        ("drops[name=x].y == 0", "no list to select from"),
        ("drops == 0", "no number"),
        ("wire == 0", "no number"),
        ("complete == 1", "no number"),
        ("drops.lossless == false", "neither true nor false"),
        ("max(queues.depth_bytes) == 0", "list is empty"),
        ("max(links.name) == 0", "no number"),
    ],
)
def test_a_path_that_leads_nowhere_names_the_nearest(text: str, part: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        Expectation.parse(text).evaluate(RESULT)
    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("messages.latency_ns.p99 < 400", "'400' has no unit"),
        ("messages.latency_ns.p99 < 400B", "no unit of a time"),
        ("messages.bytes < 400", "has no unit: a size"),
        ("messages.bytes < 40%", "no unit of a size"),
        ("drops.lossless == 0ns", "carries no unit"),
        ("count(links.tx_bytes) == 4B", "carries no unit"),
        ("drops.lossless = 0", "PATH OP QUANTITY"),
        ("drops.lossless", "PATH OP QUANTITY"),
        ("== 0", "PATH OP QUANTITY"),
        ("a ==", "PATH OP QUANTITY"),
        ("", "PATH OP QUANTITY"),
        ("a == b", "no plain number"),
        ("a == 0 or 1 == 1", "no plain number"),
        ("a == nan", "no plain number"),
        ("a < true", "== or != only"),
        ("a..b == 0", "no path"),
        ("a. == 0", "no path"),
        (".a == 0", "no path"),
        ("a[0] == 0", "no path"),
        ("a[name=x == 0", "no path"),
        ("a b == 0", "no path"),
        ("max(a == 0", "no path"),
        ("max(max(a)) == 0", "no path"),
        ("avg(a) == 0", "unknown function 'avg'"),
        ("__import__('os').system('x') == 0", "unknown function '__import__'"),
        ("a == " + "1" * 500, "too long"),
    ],
)
def test_what_is_no_expectation(text: str, part: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        Expectation.parse(text)
    assert part in str(caught.value)


def test_an_exact_quantity_equals_the_float_a_result_holds() -> None:
    for value_ps in (1, 942_920, 1_963_880, 123_456_789_123):
        expectation = Expectation.parse(f"virtual_ns == {value_ps}ps")
        assert expectation.wanted == Fraction(value_ps, 1000)
        assert expectation.evaluate({"virtual_ns": value_ps / 1000}) == (True, value_ps / 1000)
        assert expectation.evaluate({"virtual_ns": (value_ps + 1) / 1000})[0] is False


@given(st.text(alphabet="ab.[]=()<>!0 19nsB%", max_size=30))
def test_random_text_is_an_expectation_or_a_scenario_error(text: str) -> None:
    try:
        Expectation.parse(text).evaluate(RESULT)
    except ScenarioError as error:
        assert str(error)
