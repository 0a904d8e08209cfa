"""`emu replay`: the run's result, and beside it each message as captured and as here."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from emu.cli import main
from emu.measure.result import comparable

MEMORY = ("--wire", "memory")


def replayed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["replay", *arguments, *MEMORY, "--json"]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


@pytest.fixture
def captures(shared_data: Path) -> Path:
    return shared_data / "captures"


def test_json_is_the_result_and_the_messages(captures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(captures / "rxe61__rc_send_imm.pcap")
    result = replayed(capsys, file)
    told = result["replay"]
    assert main(["decode", file, "--json"]) == 0
    decoded = json.loads(capsys.readouterr().out)["messages"]
    assert result["messages"]["completed"] == len(told["messages"]) == len(decoded)
    for ours, theirs in zip(told["messages"], decoded, strict=True):
        assert ours["operation"] == theirs["operation"] == "RC SEND with Immediate"
        assert (ours["size_bytes"], ours["captured_ns"]) == (theirs["size_bytes"], theirs["answer_ns"])
        assert ours["start_ns"] == ours["captured_start_ns"] == theirs["first_ns"] - decoded[0]["first_ns"]
        assert 0 < ours["latency_ns"] < ours["completion_ns"]
    assert told["endpoints"] == {"192.0.2.1": "h0", "192.0.2.2": "h1"}
    assert result["scenario"]["fabric"]["profile"] == "roce"
    topology = {"kind": "leaf_spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 1}
    assert result["scenario"]["fabric"]["topology"] == topology


@pytest.mark.parametrize("name", ["ud_send", "uc_send_write"])
def test_what_nobody_acknowledges_has_a_time_too(name: str, captures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A message was told of as it completed, which is before it arrives where nothing is acknowledged."""
    file = str(captures / f"rxe61__{name}.pcap")
    messages = replayed(capsys, file)["replay"]["messages"]
    assert len(messages) == 4
    assert all(each["latency_ns"] > each["completion_ns"] > 0 for each in messages)
    assert main(["replay", file, *MEMORY]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith(f"  {name[:2].upper()} ")]
    assert len(lines) == 4
    assert all(line.rstrip().endswith(" us") for line in lines)


def test_and_none_where_it_never_arrives(captures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = tmp_path / "lossy.yaml"
    scenario.write_text(
        "name: lossy\nfabric: {profile: roce, topology: {kind: line, switches: 1}}\n"
        "traffic: [{kind: write, pairs: [[h0, h1]], size: 8B}]\n"
        "inject: [{link: h0-s0, drop: 100%, match: {nth: [2, 3]}}]\n"
    )
    messages = replayed(capsys, str(captures / "rxe61__ud_send.pcap"), "--scenario", str(scenario))["replay"][
        "messages"
    ]
    assert [each["latency_ns"] is None for each in messages] == [False, True, True, False]
    assert {each["status"] for each in messages} == {"SUCCESS"}


def test_our_own_capture_takes_as_long_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same messages at the same times through the same fabric: each is answered as soon, to the rounding of ns."""
    name = "latency-native"
    first, again = str(tmp_path / "a.pcapng"), str(tmp_path / "b.pcapng")
    more = ("--set", "traffic.0.count=7", "--set", "expect=[]", "--quiet")
    assert main(["run", name, *MEMORY, *more, "--capture", first]) == 0
    result = replayed(capsys, first, "--scenario", name, "--capture", again)
    assert result["complete"]
    assert main(["decode", again, "--json"]) == 0
    taken = json.loads(capsys.readouterr().out)
    (link,) = (flow["number"] for flow in taken["flows"] if flow["interface"] == "h0-s0")
    ours = [each["answer_ns"] for each in taken["messages"] if each["flow"] == link]
    captured = [each["captured_ns"] for each in result["replay"]["messages"]]
    assert len(captured) == len(ours) == 7
    assert all(abs(here - there) <= 1 for here, there in zip(ours, captured, strict=True))


def test_the_folder_says_what_was_replayed(captures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(captures / "rxe61__uc_send_write.pcap")
    printed = replayed(capsys, file, "--speed", "1/3", "--out", str(tmp_path / "out"))
    kept = json.loads((tmp_path / "out" / "result.json").read_text())
    assert kept == printed
    told = kept["replay"]
    assert (told["file"], told["speed"]) == (file, "1/3")
    assert sum(told["operations"].values()) == len(told["messages"]) == kept["messages"]["posted"]
    counted = Counter(each["operation"] for each in told["messages"])
    assert list(told["operations"].items()) == sorted(counted.items())
    assert sum(each["messages"] for each in told["conversations"]) == len(told["messages"])
    assert len(told["conversations"]) == len(kept["flows"])


def test_the_scenario_gives_fabric_and_hosts_and_nothing_else(
    captures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(captures / "rxe61__rc_read.pcap")
    result = replayed(capsys, file, "--scenario", "incast-native", "--map", "192.0.2.1=h9", "--seed", "7")
    scenario = result["scenario"]
    assert [each["kind"] for each in scenario["traffic"]] == ["replay"]
    assert scenario["fabric"]["profile"] == "native"
    assert (result["seed"], scenario.get("expect", [])) == (7, [])
    assert result["flows"][0]["src"] == "h9"
    assert result["flows"][0]["dst"] == "h0"


def test_both_wires_and_two_runs_agree_and_pace_is_obeyed(captures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(captures / "rxe61__rc_write.pcap")
    one, two = replayed(capsys, file), replayed(capsys, file)
    assert comparable(one) == comparable(two)
    fast = replayed(capsys, file, "--as-fast-as-possible")
    assert fast["virtual_ns"] < one["virtual_ns"] / 100
    assert replayed(capsys, file, "--speed", "2")["replay"]["messages"][-1]["start_ns"] == pytest.approx(
        one["replay"]["messages"][-1]["start_ns"] / 2
    )


def test_the_text_has_both(captures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(captures / "rxe61__rc_nak_out_of_bounds.pcap"), *MEMORY]) == 0
    out = capsys.readouterr().out
    assert "1 message completed of 1 posted" in out
    assert "not whole in the capture" in out
    assert out.rstrip().endswith("192.0.2.1 is h0, 192.0.2.2 is h1")
    assert main(["replay", str(captures / "rxe61__rc_write.pcap"), *MEMORY]) == 0
    assert "mean of 16 messages answered in both: " in capsys.readouterr().out


def test_a_run_that_fails_says_so(captures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    late = ("--set", "host.nic.ack_timeout_code=1", "--set", "host.nic.retry_cnt=0", "--set", "host.nic.receive=1ms")
    assert main(["replay", str(captures / "rxe61__rc_send.pcap"), *MEMORY, *late, "--json"]) == 5
    out, err = capsys.readouterr()
    statuses = [each["status"] for each in json.loads(out)["replay"]["messages"]]
    assert statuses == ["RETRY_EXC_ERR", *[""] * 5]
    assert "1 message failed" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{file}.not"], "no such file"),
        (["-"], "a capture is read from a file here"),
        (["{file}", "--map", "192.0.2.1"], "write END=HOST"),
        (["{file}", "--map", "a=h0", "--map", "a=h1"], "a has a host already, h0"),
        (["{file}", "--map", "a=h0"], "no endpoint 'a'"),
        (["{file}", "--speed", "x"], "is no number"),
        (["{file}", "--speed", "1", "--as-fast-as-possible"], "not allowed with"),
        (["{file}", "--scenario", "nobody"], "no scenario file or built-in 'nobody'"),
        (["{file}", "--sample", "1us"], "--out DIR says where"),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str], said: str, captures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(captures / "rxe61__rc_send.pcap")
    assert main(["replay", *(each.format(file=file) for each in arguments), *MEMORY]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.startswith("emu replay: ")
    assert err.count("\n") == 1


def test_the_capture_of_a_native_fabric_is_replayed_on_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "a.pcapng")
    assert main(["run", "hello", *MEMORY, "--quiet", "--capture", file]) == 0
    result = replayed(capsys, file)
    assert result["scenario"]["fabric"]["profile"] == "native"
    assert list(result["replay"]["endpoints"]) == ["LID 1", "LID 2"]
