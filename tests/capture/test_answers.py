"""Which flow answers which: every claim is what the queue pairs know of their peers, and work per frame is bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from struct import pack
from typing import Any

import pytest

from emu.addresses import ipv4_text
from emu.capture import Record, answers, read
from emu.capture.flow import Flow
from emu.capture.recorder import Recorder
from emu.capture.summary import Summary
from emu.crc import icrc_roce_ipv4
from emu.opcodes import ACKNOWLEDGE, WRITE_ONLY
from emu.run.assembly import Assembly
from emu.scenario.load import load
from emu.scenario.model import Scenario
from tests.capture import lossless

Truth = dict[tuple[str, str, int], int]  # who sends from one host to another's queue pair
TRAFFIC = (
    "[{kind: all_to_all, size: 5KB, qps: 2}]",
    "[{kind: all_to_all, size: 5KB, qps: 3, count: 4}]",
    "[{kind: all_to_all, size: 64B, qps: 1, count: 4}, {kind: write, pairs: [[h0, h3], [h2, h1]], size: 20KB, qps: 2}]",
)
HOSTS = (bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2)))


def record(scenario: Scenario, path: Path) -> Truth:
    """Run it with all links recorded; the truth, from the emulated queue pairs themselves."""
    assembly = Assembly(scenario)
    native = scenario.fabric.framing == "native"
    with Recorder(path) as recorder:
        recorder.watch(assembly.taps, assembly.topology.links, native=native, title="answers")
        assembly.join(None)  # now, as links with credits come up before the clock starts
        assembly.engine.run(None)
    text = "LID {}".format if native else ipv4_text
    return {
        (text(state.envelope.source), text(state.envelope.destination), state.envelope.destination_qp): qp
        for nic in assembly.fabric.nics.values()
        for qp, state in nic.queue_pairs.items()
    }


def decoded(records: Iterable[Record]) -> dict[str, Any]:
    summary = Summary(with_rows=False)
    summary.add(records)
    return summary.result()


def claims(result: dict[str, Any], truth: Truth) -> tuple[int, int]:
    """How many are right, and how many wrong; of messages, too: one is answered only by what its flow's claim says."""
    flows = {flow["number"]: flow for flow in result["flows"]}
    right = wrong = 0
    for flow in flows.values():
        by = flows.get(flow["answered_by_flow"])
        if by is None:
            assert flow["answer_ns"]["count"] == 0
            continue
        ends = (flow["source"], flow["destination"])
        is_right = truth[*ends, flow["destination_qp"]] == by["destination_qp"]
        is_right &= ends == (by["destination"], by["source"]) and by["answers_flow"] == flow["number"]
        right, wrong = right + is_right, wrong + (not is_right)
    for message in result["messages"]:
        if flows[message["flow"]]["answered_by_flow"] is None:
            assert message["answered_frame"] is message["answer_ns"] is None
    return right, wrong


@pytest.mark.parametrize("traffic", TRAFFIC)
@pytest.mark.parametrize("spines", [2, 4])
@pytest.mark.parametrize("profile", ["roce", "native"])
def test_no_claim_is_wrong_where_connections_go_different_ways(
    profile: str, spines: int, traffic: str, tmp_path: Path
) -> None:
    topology = f"fabric.topology={{kind: leaf_spine, leaves: 2, spines: {spines}, hosts_per_leaf: 2}}"
    scenario = load("hello", [f"fabric.profile={profile}", topology, f"traffic={traffic}", "expect=[]"])
    truth = record(scenario, tmp_path / "a")
    records = list(read(tmp_path / "a"))
    whole = decoded(records)
    right, wrong = claims(whole, truth)
    assert wrong == 0
    if profile == "roce":  # of those with requests, where both ways pass the same link
        assert right > 0.5 * sum(1 for flow in whole["flows"] if flow["messages"])
    for spine in range(spines):
        for leaf in range(2):
            names = {f"leaf{leaf}-spine{spine}", f"spine{spine}-leaf{leaf}"}
            assert claims(decoded(each for each in records if each.interface in names), truth)[1] == 0, names
        some = (each for each in records if f"spine{spine}" in each.interface)
        assert claims(decoded(some), truth)[1] == 0, spine


CONGESTED = "[{kind: incast, senders: 3, receiver: h3, size: 128KiB}, {kind: all_to_all, size: 20KB, qps: 2}]"


@pytest.mark.parametrize("scenario", [lossless.pfc, lossless.credits])
def test_flow_control_and_notifications_lead_to_no_wrong_claim(
    scenario: Callable[..., Scenario], tmp_path: Path
) -> None:
    truth = record(scenario(f"traffic={CONGESTED}"), tmp_path / "a")
    records = list(read(tmp_path / "a"))
    result = decoded(records)
    right, wrong = claims(result, truth)
    assert wrong == 0
    assert right > 0 or scenario is lossless.credits
    assert any("CNP" in flow["opcodes"] for flow in result["flows"])
    for link in ("leaf0-spine0", "leaf1-h3"):
        here, _, there = link.partition("-")
        some = (each for each in records if each.interface in (link, f"{there}-{here}"))
        assert claims(decoded(some), truth)[1] == 0


def test_one_connection_each_way_is_claimed_on_every_link_of_a_native_fabric(tmp_path: Path) -> None:
    scenario = load("hello", ["fabric.profile=native", "traffic.0.count=3"])
    truth = record(scenario, tmp_path / "a")
    result = decoded(read(tmp_path / "a"))
    assert claims(result, truth) == (4, 0)


def frame(forth: bool, qp: int, psn: int, *, port: int = 50000) -> bytes:
    """A WRITE from the first host to the second, or an ACK on the way back, of RoCEv2."""
    source, destination = HOSTS if forth else HOSTS[::-1]
    opcode, body = (WRITE_ONLY, pack("!QII", 0, 0, 0)) if forth else (ACKNOWLEDGE, pack("!I", 0x1F << 24 | 1))
    bth = pack("!BBHII", opcode, 0x40, 0xFFFF, qp, psn) + body
    ip = pack("!BBHHHBBH4s4s", 0x45, 0, 32 + len(bth), 0, 0x4000, 64, 17, 0, source, destination)
    data = bytes(12) + b"\x08\0" + ip + pack("!HHHH", port, 4791, 12 + len(bth), 0) + bth
    return data + pack("<I", icrc_roce_ipv4(data[14:]))


def records_of(frames: Iterable[bytes]) -> Iterator[Record]:
    return (Record(number, "if0", 1, data, len(data)) for number, data in enumerate(frames))


def pairs(frames: Iterable[bytes]) -> list[int | None]:
    """By flow, the number of the flow that answers it."""
    result = decoded(records_of(frames))
    assert result["icrc"]["bad"] == 0
    return [flow["answered_by_flow"] for flow in result["flows"]]


def test_a_sole_candidate_with_another_port_is_not_the_one() -> None:
    assert pairs([frame(True, 1, 0, port=50000), frame(False, 9, 0, port=50001)]) == [None, None]
    assert pairs([frame(True, 1, 0, port=50000), frame(False, 9, 0, port=50000)]) == [2, None]


def test_a_claim_is_taken_back_when_another_one_that_could_have_asked_is_seen_later() -> None:
    """As where a capture begins between one's request and its answer."""
    begun = [frame(True, 1, 5), frame(False, 9, 5)]
    assert pairs(begun) == [2, None]
    assert pairs([*begun, frame(True, 2, 6)]) == [None, None, None]
    assert pairs([*begun, frame(True, 2, 900_000)]) == [2, None, None]


def test_who_could_not_have_sent_that_yet_is_ruled_out_for_good() -> None:
    frames = [frame(True, 1, 0), frame(True, 2, 0), frame(True, 2, 1), frame(False, 9, 1), frame(True, 1, 1)]
    assert pairs(frames) == [None, 3, None]
    assert pairs([*frames, frame(False, 8, 1)]) == [4, 3, None, None]


def test_an_answer_costs_no_more_where_many_could_have_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: how often a flow is looked at."""
    looks = 0
    could_answer = answers._could_answer

    def counted(asked: Flow, psn: int) -> bool:
        nonlocal looks
        looks += 1
        return could_answer(asked, psn)

    monkeypatch.setattr(answers, "_could_answer", counted)
    for requesters in (answers.CANDIDATE_LIMIT, 2000):
        looks = 0
        asked = [frame(True, 1 + number, 5) for number in range(requesters)]
        pairs([*asked, *[frame(False, 0x800000, 9_000_000)] * 2000])
        assert looks <= 2 * answers.CANDIDATE_LIMIT  # that nothing fits is remembered
        looks = 0
        pairs([*asked, *[frame(False, 0x800000, 5)] * 200])
        assert looks <= 200 * answers.CANDIDATE_LIMIT
