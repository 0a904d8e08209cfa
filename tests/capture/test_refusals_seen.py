"""What a real driver's captures say of retransmissions, NAKs, RNR NAKs, refusals and READs' responses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emu.capture import read
from emu.capture.messages import Packet, RequestStream, SeenMessage
from emu.capture.summary import Summary
from emu.cli import main
from emu.opcodes import READ_REQUEST, WRITE_ONLY

Told = dict[str, Any]


@pytest.fixture(autouse=True)
def captures(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests name captures by what they are of."""
    monkeypatch.chdir(shared_data / "captures")


def decoded(name: str) -> tuple[dict[int, Told], list[Told]]:
    """Flows by number, and messages."""
    summary = Summary(with_rows=False)
    summary.add(read(f"rxe61__{name}.pcap"))
    result = summary.result()
    return {flow["number"]: flow for flow in result["flows"]}, list(result["messages"])


def aeths(name: str, kind: int) -> list[tuple[int, int]]:
    """PSN and syndrome of each acknowledgement whose syndrome is of that kind, straight from the bytes."""
    found = []
    for record in read(f"rxe61__{name}.pcap"):
        bth = record.data[42:54]
        if bth[0] == 0x11 and record.data[54] >> 5 == kind:
            found.append((int.from_bytes(bth[9:12], "big"), record.data[54]))
    return found


def test_loss_is_told_as_naks_and_what_was_sent_again() -> None:
    flows, messages = decoded("rc_loss_data")
    naks = aeths("rc_loss_data", 3)
    assert (flows[2]["naks"], flows[2]["rnrs"], flows[2]["nak_reasons"]) == (11, 0, {"PSN sequence error": 11})
    assert len(naks) == 11
    assert sum(message["naks"] for message in messages) == 11
    for message in messages:
        inside = [psn for psn, _ in naks if message["first_psn"] <= psn <= message["last_psn"]]
        assert message["naks"] == len(inside)
        assert (message["rnrs"], message["refused"], message["refused_ns"]) == (0, None, None)
    assert flows[1]["retransmitted"] == 40
    lost = 12  # before they came to the capture: their second copy is the first one seen
    assert sum(message["retransmitted"] for message in messages) == 40 + lost
    assert flows[1]["complete"] == flows[1]["answer_ns"]["count"] == 12


def test_rnr_naks_are_no_naks() -> None:
    flows, (message,) = decoded("rc_rnr")
    assert len(aeths("rc_rnr", 1)) == 3
    assert (flows[2]["naks"], flows[2]["rnrs"], flows[2]["nak_reasons"]) == (0, 3, {})
    assert (message["naks"], message["rnrs"], message["retransmitted"], message["refused"]) == (0, 3, 3, None)
    assert message["answer_ns"] > message["duration_ns"] > 0


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("rc_nak_bad_rkey", "remote access error"),
        ("rc_nak_out_of_bounds", "remote access error"),
        ("rc_nak_read_bad_rkey", "remote access error"),
        ("rc_nak_recv_too_small", "remote operational error"),
    ],
)
def test_what_a_refusal_says_and_how_long_it_took(name: str, reason: str) -> None:
    flows, (message,) = decoded(name)
    first, last = (record.time_ns for record in read(f"rxe61__{name}.pcap"))
    assert flows[2]["nak_reasons"] == {reason: 1}
    assert (message["refused"], message["refused_ns"], message["answer_ns"]) == (reason, last - first, None)
    assert (message["naks"], flows[2]["naks"]) == (1, 1)


def test_a_black_hole_answers_nothing() -> None:
    flows, (message,) = decoded("rc_timeout_blackhole")
    assert (len(flows), message["retransmitted"], message["answer_ns"]) == (1, 2, None)
    assert (message["naks"], message["rnrs"]) == (None, None)  # nobody knows what was answered elsewhere


def test_reads_are_as_large_as_what_comes_back() -> None:
    flows, messages = decoded("rc_read")
    records = list(read("rxe61__rc_read.pcap"))
    assert sum(message["response_bytes"] for message in messages) == flows[2]["payload_bytes"]
    for message in messages:
        assert message["response_bytes"] == message["dma_bytes"] == message["size_bytes"]
        request, first = (records[message["first_frame"] - 1 + step] for step in (0, 1))
        assert message["first_response_ns"] == first.time_ns - request.time_ns
        last = records[message["answered_frame"] - 1]
        assert message["answer_ns"] == last.time_ns - request.time_ns >= message["first_response_ns"]


def test_atomics_have_eight_bytes_and_an_answer() -> None:
    _, messages = decoded("rc_atomic")
    assert [(message["size_bytes"], message["payload_bytes"]) for message in messages] == [(8, 0)] * 3
    assert all(message["answer_ns"] for message in messages)
    assert all(message["response_bytes"] is message["first_response_ns"] is None for message in messages)


def test_immediates_are_those_of_the_last_packet() -> None:
    for name, kind in (("rc_send_imm", "SEND"), ("rc_write_imm", "RDMA Write")):
        _, messages = decoded(name)
        assert {message["operation"] for message in messages} == {f"RC {kind} with Immediate"}
        assert all(message["immediate"] is not None for message in messages)
    _, messages = decoded("rc_send")
    assert {message["immediate"] for message in messages} == {None}


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("rc_loss_data", ["40 frames sent again: flow 1", "11 NAKs (PSN sequence error): flow 2, to flow 1"]),
        ("rc_rnr", ["3 RNR NAKs: flow 2, to flow 1", "3 RNR NAKs, 3 frames sent again"]),
        (
            "rc_nak_bad_rkey",
            ["1 NAK (remote access error): flow 2, to flow 1", "refused after 2.174 ms: remote access"],
        ),
    ],
)
def test_the_text_says_so(name: str, lines: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decode", f"rxe61__{name}.pcap"]) == 0
    out = capsys.readouterr().out
    assert [line for line in lines if line not in out] == []


def test_a_response_that_comes_twice_counts_once_and_others_responses_not_at_all() -> None:
    begun: list[SeenMessage] = []
    stream = RequestStream(begun.append, lambda _: None)
    stream.on_packet(Packet(1, 0, READ_REQUEST, 2**24 - 1, 0, (0x1000, 7, 3000)), answered=True)
    for time_ns, psn in enumerate((2**24 - 1, 0, 2**24 - 1, 0, 1, 100), 1):
        stream.on_response(psn, 952 if psn == 1 else 1024, time_ns)
    (read_message,) = begun
    assert (read_message.response_bytes, read_message.first_response_ns) == (3000, 1)


def test_a_nak_of_what_is_not_known_is_nobodys() -> None:
    begun: list[SeenMessage] = []
    stream = RequestStream(begun.append, lambda _: None)
    stream.on_refusal(5, 0x62, 1)
    stream.on_packet(Packet(1, 0, WRITE_ONLY, 9, 0, (0x1000, 7, 0)), answered=True)
    stream.on_refusal(5, 0x62, 1)
    assert (begun[0].naks, begun[0].refusal) == (0, None)
