"""`emu run`: verdicts, what stdout carries, the result folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from emu.cli import main
from emu.measure.result import comparable
from emu.scenario import builtin

MEMORY = ("--wire", "memory")
TOO_SHORT = ("--set", "run.until=100ns", "--set", "expect=[]")
DISAPPOINTED = ("--set", "expect=[messages.completed == 7]")


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        ((), 0, ""),
        (TOO_SHORT, 5, "emu: traffic did not complete: the run ended at 100.0 ns before its traffic did, 1 message "),
        (DISAPPOINTED, 4, "emu: does not hold: messages.completed == 7 (it is 1)\n"),
        ((*TOO_SHORT, *DISAPPOINTED), 4, "emu: does not hold: messages.completed == 7 (it is 0)\nemu: traffic did not"),
    ],
)
@pytest.mark.parametrize("form", [(), ("--json",), ("--quiet",), ("--json", "--quiet")])
def test_verdicts(
    more: tuple[str, ...], code: int, said: str, form: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "hello", *MEMORY, *more, *form]) == code
    out, err = capsys.readouterr()
    assert err.startswith(said)
    assert err == "" or code
    if "--json" in form:
        assert json.loads(out)["scenario"]["name"] == "hello"
    else:
        assert bool(out) == ("--quiet" not in form)


def test_a_failed_message_is_exit_5(capsys: pytest.CaptureFixture[str]) -> None:
    timeout = ("--set", "host.nic.ack_timeout_code=1", "--set", "host.nic.retry_cnt=0", "--set", "expect=[]")
    assert main(["run", "hello", *MEMORY, *timeout, "--set", "host.nic.receive=1ms", "--json"]) == 5
    out, err = capsys.readouterr()
    assert err == "emu: traffic did not complete: 1 message failed\n"
    assert json.loads(out)["messages"]["failed"] == 1


def test_settings_and_seed_reach_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "hello", *MEMORY, "--set", "fabric.hop_latency=300ns", "--seed", "9", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["breakdown_ns"]["switching"] == 900
    assert result["seed"] == 9
    assert "fabric.hop_latency = 300ns" in result["provenance"]["scenario"]


def test_the_text_says_what_rests_on_what(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "hello", *MEMORY, "--set", "fabric.profile=roce-63", "--set", "expect=[]"]) == 0
    out = capsys.readouterr().out
    assert "hop_latency 795ns (CALIBRATED)" in out
    assert "roce-63 over memory" in out


def test_the_folder_holds_what_was_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "deep" / "out"
    arguments = ["run", "hello", *MEMORY, "--json", "--out", str(out)]
    assert main(arguments) == 0
    assert (out / "result.json").read_text() == capsys.readouterr().out
    assert main(arguments) == 2
    assert "exists already; --force" in capsys.readouterr().err
    assert main([*arguments, "--force", "--seed", "5"]) == 0
    assert json.loads((out / "result.json").read_text())["seed"] == 5
    assert [path.name for path in out.parent.iterdir()] == ["out"]


def test_a_mistake_makes_no_folder(tmp_path: Path) -> None:
    assert main(["run", "hello", *MEMORY, "--set", "nope=1", "--out", str(tmp_path / "out")]) == 2
    assert list(tmp_path.iterdir()) == []


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--schema"]) == 0
    assert "fabric" in json.loads(capsys.readouterr().out)["properties"]


def test_list_names_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [entry["name"] for entry in found["scenarios"]] == builtin.names()
    assert {"native", "roce", "roce-63", "ndr"} <= {entry["name"] for entry in found["profiles"]}
    assert {"leaf_spine", "line", "graph"} <= {entry["name"] for entry in found["topologies"]}
    assert all(entry["description"] for entries in found.values() for entry in entries)
    assert main(["list"]) == 0
    printed = capsys.readouterr().out
    assert all(entry["description"] in printed for entries in found.values() for entry in entries)


@pytest.mark.lab
def test_both_wires_give_the_same_result(capsys: pytest.CaptureFixture[str]) -> None:
    def result(wire: str) -> dict[str, Any]:
        assert main(["run", "hello", "--wire", wire, "--json"]) == 0
        printed: dict[str, Any] = json.loads(capsys.readouterr().out)
        assert printed["wire"] == wire
        return comparable(printed)

    assert result("veth") == result("memory")


@pytest.mark.parametrize("name", ["", "-"])
def test_a_capture_needs_a_file(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "hello", "--wire", "memory", "--capture", name]) == 2
    assert "is no file to write" in capsys.readouterr().err
