"""`loss_recovery` of NICs in whole runs: what each sends again, in which order it arrives, and that wires agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from emu.cli import main
from emu.measure.result import comparable
from emu.run import Options, run
from emu.scenario.load import parse

TEXT = """
name: recovery
fabric: {{profile: {profile}, topology: {{kind: line, switches: 2}}, {more}}}
host: {{nic: {{loss_recovery: {recovery}}}}}
traffic:
  - {{kind: write, pairs: [[h0, h1]], size: {size}, count: 10, depth: 4, op: {op}}}
  - {{kind: write, pairs: [[h1, h0]], size: 8B, count: 10, depth: 4, op: fetch_add}}
inject: [{{link: s0-s1, {fault}, match: {{kind: data}}}}]
"""
BOTH = ("go_back_n", "selective_repeat")
DROP = "drop: 1%"


def text(recovery: str, *, fault: str = DROP, op: str = "write", profile: str = "roce", more: str = "") -> str:
    return TEXT.format(recovery=recovery, fault=fault, op=op, profile=profile, size="1MiB", more=more)


def result(recovery: str, wire: str = "memory", **given: str) -> dict[str, Any]:
    return run(parse(text(recovery, **given), "recovery.yaml"), Options(wire=wire))


@pytest.mark.parametrize("profile", ["native", "roce"])
@pytest.mark.parametrize("op", ["write", "send", "write_imm", "read"])
def test_selective_repeat_sends_less_again(op: str, profile: str) -> None:
    back, selective = (result(each, op=op, profile=profile) for each in BOTH)
    for each in (back, selective):
        assert each["messages"]["completed"] == 20
    lost = selective["injected"]["drop"]
    again = selective["flows"][0]["retransmitted"]
    assert 0 < again <= 2 * lost
    assert again < back["flows"][0]["retransmitted"] / 2
    assert selective["flows"][0]["fct_ns"] <= back["flows"][0]["fct_ns"]


@pytest.mark.parametrize("op", ["write", "read"])
def test_without_loss_both_are_the_same(op: str) -> None:
    first, second = (json.loads(json.dumps(result(each, op=op, fault="delay: 1ns"))) for each in BOTH)
    for each in (first, second):
        del each["scenario"]["host"]["nic"]["loss_recovery"], each["provenance"]
    assert comparable(first) == comparable(second)


@pytest.mark.parametrize("fault", ["reorder: 5%", "duplicate: 5%", "corrupt: 2%", "drop: 30%, duplicate: 10%"])
def test_whatever_happens_to_frames_messages_arrive(fault: str) -> None:
    got = result("selective_repeat", fault=fault)
    assert got["complete"]
    assert got["messages"]["completed"] + got["messages"]["failed"] == got["messages"]["posted"]
    if "30%" not in fault:
        assert got["messages"]["completed"] == 20


def test_marks_on_what_waits_are_answered_once() -> None:
    ecn = "congestion_control: dcqcn, ecn: {kmin: 1KB, kmax: 2KB, pmax: 100%}"
    got = result("selective_repeat", more=ecn, fault="drop: 2%")
    assert got["messages"]["completed"] == 20
    marked = sum(link["ecn_marked"] for link in got["links"])
    assert 0 < got["frames"]["cnps"] <= marked


@pytest.mark.lab
@pytest.mark.parametrize("profile", ["native", "roce"])
def test_both_wires_agree(profile: str) -> None:
    fault = "drop: 2%, duplicate: 2%, reorder: 2%"
    memory, veth = (result("selective_repeat", wire, fault=fault, profile=profile) for wire in ("memory", "veth"))
    assert comparable(memory) == comparable(veth)
    assert not veth["disturbed"]
    assert memory["flows"][0]["retransmitted"] > 0


def test_a_capture_shows_the_gaps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario, file = tmp_path / "recovery.yaml", tmp_path / "recovery.pcapng"
    scenario.write_text(text("selective_repeat"))
    assert main(["run", str(scenario), "--wire", "memory", "--quiet", "--capture", str(file)]) == 0
    assert main(["decode", str(file), "--json"]) == 0
    flows = json.loads(capsys.readouterr().out)["flows"]
    assert all(flow["icrc_bad"] == 0 for flow in flows)
    reasons = [flow["nak_reasons"] for flow in flows if flow["nak_reasons"]]
    assert reasons
    assert all(set(each) == {"PSN sequence error"} for each in reasons)
