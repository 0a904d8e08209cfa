"""Flows: told apart by queue pair and interface, joined with what answers them, counted within limits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import emu.capture.flows
from emu.capture import Record, read
from emu.capture.summary import RDMA, Summary
from emu.frame import ControlFrame
from emu.framing.dissect import dissect
from emu.scenario.load import load, parse
from tests.capture.recording import record
from tests.golden_frames import GOLDEN


def decoded(records: Iterator[Record] | list[Record]) -> dict[str, Any]:
    summary = Summary(with_rows=False)
    summary.add(records)
    return summary.result()


def by_interface(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {flow["interface"]: flow for flow in result["flows"]}


def is_traffic(record: Record) -> bool:
    """Whether it is no flow control."""
    return dissect(record.link_type, record.data).network in RDMA


@pytest.mark.parametrize("profile", ["native", "roce"])
def test_each_link_sees_its_own_times(profile: str, tmp_path: Path) -> None:
    record(load("hello", [f"fabric.profile={profile}", "traffic.0.size=64KiB"]), tmp_path / "a")
    result = decoded(read(tmp_path / "a"))
    flows = by_interface(result)
    assert len(flows) == 8
    assert {flow["complete"] for flow in flows.values()} == {0, 1}
    for there, back in (("h0-leaf0", "leaf0-h0"), ("spine0-leaf1", "leaf1-spine0")):
        asked, answer = flows[there], flows[back]
        assert asked["answered_by_flow"] == answer["number"]
        assert answer["answers_flow"] == asked["number"]
        assert asked["message_bytes"] == 65536
    frames = {
        there: [each.time_ns for each in read(tmp_path / "a") if each.interface == there and is_traffic(each)]
        for there in flows
    }
    (message,) = (each for each in result["messages"] if each["flow"] == flows["h0-leaf0"]["number"])
    assert message["duration_ns"] == frames["h0-leaf0"][-1] - frames["h0-leaf0"][0]
    assert message["answer_ns"] == frames["leaf0-h0"][-1] - frames["h0-leaf0"][0]
    assert message["dma_bytes"] == message["payload_bytes"] == 65536


def test_message_latencies_are_those_of_the_run(tmp_path: Path) -> None:
    """The run's own books: first bit out of the NIC to the ACK's first bit on the last link."""
    seen = record(load("latency-native"), tmp_path / "a")
    sent = [each for each in seen if not isinstance(each.frame, ControlFrame)]
    result = decoded(read(tmp_path / "a"))
    (flow,) = (each for each in result["flows"] if each["interface"] == "h0-s0")
    first = [each for each in sent if each.direction == "h0-s0"]
    last = [each for each in sent if each.direction == "s0-h0"]
    times = [back.time_ps // 1000 - there.time_ps // 1000 for there, back in zip(first, last, strict=True)]
    assert flow["answer_ns"] == {
        "count": 100,
        "min": min(times),
        "mean": sum(times) / 100,
        "max": max(times),
    }


QUEUE_PAIRS = """
name: queue pairs
fabric: {{profile: {profile}, topology: {{kind: line, switches: 1}}}}
traffic: [{{kind: write, pairs: [[h0, h1]], size: 12KiB, qps: 3, count: 4}}]
"""


def test_queue_pairs_alike_in_every_psn_are_told_apart_by_the_source_port(tmp_path: Path) -> None:
    record(parse(QUEUE_PAIRS.format(profile="roce")), tmp_path / "a")
    result = decoded(read(tmp_path / "a"))
    flows = [flow for flow in result["flows"] if flow["interface"] == "h0-s0"]
    assert [flow["complete"] for flow in flows] == [4, 4, 4]
    for flow in flows:
        answer = result["flows"][flow["answered_by_flow"] - 1]
        assert answer["source_port"] == flow["source_port"]
        assert flow["answer_ns"]["count"] == 4


def test_where_it_is_not_clear_nothing_is_claimed(tmp_path: Path) -> None:
    record(parse(QUEUE_PAIRS.format(profile="native")), tmp_path / "a")
    result = decoded(read(tmp_path / "a"))
    assert sum(flow["complete"] for flow in result["flows"]) == 24
    answers = [flow for flow in result["flows"] if not flow["messages"]]
    assert len(answers) == 6
    for flow in answers:  # both ends give their queue pairs the same numbers here
        if flow["answers_flow"] is not None:
            assert flow["destination_qp"] == result["flows"][flow["answers_flow"] - 1]["destination_qp"]


def test_damaged_frames_are_counted_and_not_followed() -> None:
    bad = bytearray(GOLDEN["write_only"])
    bad[-6] ^= 1
    frames = [GOLDEN["write_only"], bytes(bad)]
    result = decoded([Record(number, "if0", 1, data, len(data)) for number, data in enumerate(frames)])
    (flow,) = result["flows"]
    assert (flow["frames"], flow["icrc_bad"], flow["messages"], flow["retransmitted"]) == (2, 1, 1, 0)
    assert result["icrc"] == {"ok": 1, "bad": 1, "unchecked": 0}


def test_no_more_flows_than_the_limit_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emu.capture.flows, "FLOW_LIMIT", 3)
    data = GOLDEN["ack"]
    result = decoded([Record(0, f"if{number % 5}", 1, data, len(data)) for number in range(20)])
    assert len(result["flows"]) == 3
    assert sum(flow["frames"] for flow in result["flows"]) == 12
    assert result["left_out"]["frames_of_further_flows"] == 8
    assert result["frames"] == result["rdma_frames"] == 20


def test_the_drivers_captures(shared_data: Path) -> None:
    """Messages, answers and what was sent again, as the captures' names and notes have it."""
    results = {
        path.stem.partition("__")[2]: decoded(read(path)) for path in (shared_data / "captures").glob("rxe61__*.pcap")
    }
    assert len(results) == 19
    for name, result in results.items():
        assert (result["icrc"]["bad"], result["malformed"]) == (0, 0), name
        assert result["icrc"]["ok"] == result["rdma_frames"] == result["frames"], name
    assert results["rc_timeout_blackhole"]["flows"][0]["retransmitted"] == 2  # retry_cnt 2 means three tries
    assert results["rc_loss_data"]["flows"][1]["naks"] == 11
    for name in (
        "rc_write",
        "rc_send",
        "rc_read",
        "rc_atomic",
        "rc_psn_wrap",
        "rc_write_imm",
        "rc_ipv6",
        "rc_loss_data",
    ):
        assert all(each["complete"] and each["answer_ns"] for each in results[name]["messages"]), name
    for each in results["uc_send_write"]["messages"]:
        assert each["complete"] and each["answer_ns"] is None
    for each in results["rc_write"]["messages"]:
        assert each["payload_bytes"] == each["dma_bytes"]
