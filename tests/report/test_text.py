"""A result as text: what it must not hide."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from emu.report.progress import Progress, message_count
from emu.report.text import failed_expectations, shortfall, summary
from emu.run import Options, run
from emu.scenario.load import load


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    """Four hosts, twelve flows of two messages."""
    settings = [
        "fabric.topology.hosts_per_leaf=2",
        "traffic=[{kind: all_to_all, size: 4KiB, count: 2}]",
        "expect=[messages.completed == 24, drops.lossless == 1]",
    ]
    return run(load("hello", settings), Options(wire="memory"))


@pytest.fixture
def result(whole: dict[str, Any]) -> dict[str, Any]:
    return copy.deepcopy(whole)


def test_a_whole_result(result: dict[str, Any]) -> None:
    text = summary(result)
    assert "24 messages completed of 24 posted, 96KiB" in text
    assert "INCOMPLETE" not in text
    assert "warning" not in text
    assert "hop_latency 260ns (published)" in text
    assert "and 4 more flows" not in text
    assert "  and 4 flows more" in text
    assert "holds          messages.completed == 24" in text
    assert "DOES NOT HOLD  drops.lossless == 1       (it is 0)" in text
    assert failed_expectations(result) == ["does not hold: drops.lossless == 1 (it is 0)"]
    assert shortfall(result) == ""


def test_shares_of_the_breakdown_are_of_the_whole(result: dict[str, Any]) -> None:
    result["breakdown_ps_total"] |= {"switching": 3, "total": 4}
    (line,) = (line for line in summary(result).splitlines() if line.lstrip().startswith("switching"))
    assert " 75.0 % " in line


def test_the_busiest_link_comes_first(result: dict[str, Any]) -> None:
    result["links"][-1]["utilization"] = 0.99
    lines = summary(result).splitlines()
    first = lines[next(number for number, line in enumerate(lines) if "busiest links" in line) + 1]
    assert result["links"][-1]["to"] in first
    assert "99.0 %" in first


def test_what_went_wrong_is_said(result: dict[str, Any]) -> None:
    result |= {"complete": False, "disturbed": True, "warnings": ["2 messages failed: 2 RETRY_EXC_ERR"]}
    result["messages"] |= {"completed": 20, "failed": 2}
    text = summary(result)
    assert "INCOMPLETE: the run ended at" in text
    assert "2 messages failed, 2 messages still on the way" in text
    assert "warning: 2 messages failed: 2 RETRY_EXC_ERR" in text
    assert "disturbed" in text
    assert shortfall(result | {"interrupted": True}).startswith("interrupted, ")


def test_a_lossless_drop_and_a_deadlock_stand_out(result: dict[str, Any]) -> None:
    loud = "LOSSLESS DROP: 3 frames of a lossless class were dropped at leaf0 (ingress spine0-leaf0, priority 3)"
    result["warnings"] = [loud, "another matter"]
    result["warnings"].append("DEADLOCK at 1.500 us: a-b waits for b-c waits for c-a waits for a-b")
    lines = summary(result).splitlines()
    place = lines.index(f"!!  {loud}")
    assert place < 8
    assert lines[place + 1] == "!!  DEADLOCK at 1.500 us: a-b waits for b-c waits for c-a waits for a-b"
    assert set(lines[place - 1]) == set(lines[place + 2]) == {"!"}
    assert sum(loud in line for line in lines) == 1
    assert "  warning: another matter" in lines


def test_of_many_places_of_lossless_drops_some_are_shown_and_all_are_counted(result: dict[str, Any]) -> None:
    result["warnings"] = [f"LOSSLESS DROP: 2 frames at leaf{number}" for number in range(9)]
    result["drops"]["lossless"] = 18
    lines = [line for line in summary(result).splitlines() if "LOSSLESS DROP" in line]
    assert len(lines) == 7
    assert lines[-1] == "!!  LOSSLESS DROP: and at 3 places more, 18 frames in all"


def test_what_the_p99_message_waited_for_and_how_fair_it_was_are_said(result: dict[str, Any]) -> None:
    text = summary(result)
    assert f"  {result['p99']['sentence']}\n" in text
    assert f"  Fairness (Jain) {result['fairness']['jain']:.3f} over 12 flows, from 0 ns to " in text
    result["fairness"] = {"jain": 0.7, "window_ns": [0.0, 2000.0], "sentence": "Some got more than others"}
    text = summary(result)
    assert "Fairness (Jain) 0.700 over 12 flows, from 0 ns to 2.000 us.\n  Some got more than others.\n" in text


def test_flows_that_were_never_all_active_have_no_fairness(result: dict[str, Any]) -> None:
    result["fairness"] = {"jain": None, "window_ns": [], "sentence": ""}
    for flow in result["flows"]:
        flow["window_bytes"] = None
    assert "Fairness (Jain): none, as there was no moment" in summary(result)


def test_pauses_credits_and_marks_have_columns_where_there_were_any(result: dict[str, Any]) -> None:
    assert "paused" not in summary(result)
    result["links"][-1] |= {"utilization": 0.99, "paused_ns": 1500.0, "ecn_marked": 7}
    lines = summary(result).splitlines()
    (head,) = (number for number, line in enumerate(lines) if "busiest links" in line)
    assert lines[head].split()[-2:] == ["paused", "marked"]
    assert lines[head + 1].endswith(" 1.500 us       7")


def test_a_run_without_messages_has_a_text() -> None:
    result = run(load("hello", ["run.until=1ns", "expect=[]"]), Options(wire="memory"))
    assert "0 messages completed of 1 posted" in summary(result)


def test_message_counts_are_those_posted() -> None:
    mixed = (
        "traffic=[{kind: all_to_all, size: 1B, count: 2, qps: 3}, {kind: write, pairs: [[h0, h1]], size: 1B, qps: 2}]"
    )
    scenario = load("hello", [mixed, "expect=[]"])
    assert message_count(scenario) == 14 == run(scenario, Options(wire="memory"))["messages"]["posted"]


def test_no_bar_where_stderr_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(2, "message", quiet=False) as progress:
        progress.reach(1, "one")
    assert capsys.readouterr().err == ""
