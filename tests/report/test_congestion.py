"""The report on congestion: figures of the results, under the right names."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from emu.report.congestion import Observed, completion_ns, congestion_text, worst_queue
from emu.run import Options, run
from emu.scenario.load import parse

INCAST = """
name: incast
fabric: {profile: native, flow_control: none, topology: {kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 2}}
traffic: [{kind: incast, senders: 3, receiver: h0, size: 64KiB}]
"""


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    return run(parse(INCAST, "incast.yaml"), Options(wire="memory"))


@pytest.fixture
def result(whole: dict[str, Any]) -> dict[str, Any]:
    return copy.deepcopy(whole)


def observed(result: dict[str, Any], name: str = "incast native none", **more: Any) -> Observed:
    usual: dict[str, Any] = {"ideal_ns": 4000.0, "bottleneck": "leaf0-h0", "curve": [0, 9, 3], "step_ns": 1000.0}
    inputs = {
        "fabric.rate": {"value": "400Gbps", "kind": "assumed", "source": "so it is"},
        "fabric.xoff": {"value": "1MB", "kind": "calibrated", "source": "to a claim"},
    }
    return Observed(name=name, result=result, **(usual | {"inputs": inputs} | more))


def row(text: str, name: str) -> list[str]:
    """The cells of a row of the first table."""
    line = next(line for line in text.splitlines() if line.strip().startswith(name))
    return line.strip().removeprefix(name).split()


def test_completion_is_from_the_first_post_to_the_last_message(result: dict[str, Any]) -> None:
    result["flows"] = [
        {"messages": 1, "start_ns": 100.0, "finish_ns": 500.0},
        {"messages": 1, "start_ns": 50.0, "finish_ns": 400.0},
        {"messages": 0, "start_ns": 0.0, "finish_ns": 0.0},
    ]
    assert completion_ns(result) == 450.0
    assert completion_ns({"flows": []}) == 0


def test_every_run_has_a_column(result: dict[str, Any]) -> None:
    other = copy.deepcopy(result)
    for number, link in enumerate(other["links"][:3]):
        link |= {"paused_ns": 1000.0 * (number + 1), "pause_frames": 2, "ecn_marked": 5, "credit_wait_ns": 50.0}
    other["drops"]["lossless"] = 4
    other["frames"]["cnps"] = 12
    other["fairness"]["jain"] = None
    other["congestion"] = {"first_mark_ns": 1500.0, "first_pause_ns": 2000.0}
    text = congestion_text([observed(result), observed(other, "incast roce none", ideal_ns=0.0)])
    assert row(text, "pause frames") == ["0", "6"]
    assert row(text, "paused, all links together") == ["0", "ns", "6.000", "us"]
    assert row(text, "waited for credits, all links together")[-2:] == ["150.0", "ns"]
    assert row(text, "frames marked") == ["0", "15"]
    assert row(text, "first pause") == ["-", "2.000", "us"]
    assert row(text, "first mark (ECN, FECN)") == ["-", "1.500", "us"]
    assert row(text, "notifications (CNP, BECN)") == ["0", "12"]
    assert row(text, "dropped, lossless") == ["0", "4"]
    assert row(text, "first rate cut") == ["-", "-"]
    assert row(text, "completion in times of it") == [f"{completion_ns(result) / 4000:.3f}", "-"]
    assert row(text, "fairness (Jain)") == [f"{result['fairness']['jain']:.3f}", "-"]


def test_the_longest_queues_come_first_and_the_curve_is_drawn(result: dict[str, Any]) -> None:
    next(link for link in result["links"] if link["name"] == "leaf0-h0")["max_queue_bytes"] = 10**6
    assert worst_queue(result) == "leaf0-h0"
    text = congestion_text([observed(result)])
    lines = text.splitlines()
    (head,) = (number for number, line in enumerate(lines) if line.strip().startswith("longest queues"))
    assert lines[head + 1].startswith("  leaf0 -> h0")
    assert "  leaf0-h0 over time: the queue as looked at, darkest 9B" in lines
    assert "  0 | @-| 3.000 us" in lines


def test_where_links_were_paused_and_who_said_so(result: dict[str, Any]) -> None:
    by_name = {link["name"]: link for link in result["links"]}
    by_name["spine0-leaf0"] |= {"paused_ns": 2500.0}
    by_name["leaf0-spine0"] |= {"pause_frames": 7}
    text = congestion_text([observed(result)])
    assert row(text, "spine0 -> leaf0  2.500 us") == ["7"]


def test_sentences_warnings_and_victims_are_told(result: dict[str, Any]) -> None:
    result["warnings"] = [
        "LOSSLESS DROP: 1 frame of a lossless class was dropped at leaf0 (x)",
        "queues.csv ends early",
    ]
    result["flows"][0] |= {"kind": "victim", "slowdown": 3.21, "fct_ns": 1500.0}
    text = congestion_text([observed(result)])
    assert result["p99"]["sentence"] in text
    assert "!!  LOSSLESS DROP: 1 frame" in text
    assert "  warning: queues.csv ends early" in text
    assert "The victim (h1 to h0) took 1.500 us, 3.2 times what it takes alone." in text


def test_a_congestion_control_that_comes_too_late_is_said_to(result: dict[str, Any]) -> None:
    result["scenario"]["fabric"]["congestion_control"] = "dcqcn"
    text = congestion_text([observed(result, first_cut_ns=9000.0, all_sent_ns=8000.0)])
    assert row(text, "first rate cut") == ["9.000", "us"]
    assert "dcqcn came too late: the first rate was cut at 9.000 us, and all was sent at 8.000 us." in text
    assert "too late" not in congestion_text([observed(result, first_cut_ns=7000.0, all_sent_ns=8000.0)])
    assert "too late" not in congestion_text([observed(result)])


def test_an_incomplete_run_is_said_to_be(result: dict[str, Any]) -> None:
    result["messages"] |= {"failed": 1, "completed": 2}
    assert "incast native none - INCOMPLETE: 1 message failed" in congestion_text([observed(result)])


def test_inputs_are_shown_with_their_kinds_where_they_are_in_use(result: dict[str, Any]) -> None:
    result["scenario"]["fabric"]["flow_control"] = "none"
    text = congestion_text([observed(result)])
    assert "400Gbps  assumed  so it is" in text
    assert "CALIBRATED" not in text
    result["scenario"]["fabric"]["flow_control"] = "pfc"
    text = congestion_text([observed(result)])
    assert "1MB      CALIBRATED  to a claim" in text
    assert "note: incast native none: xoff 1MB (to a claim); calibrated" in text
