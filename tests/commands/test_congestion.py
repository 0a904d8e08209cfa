"""`emu congestion`: its JSON is a list of results, its folder has one a run, its text what the runs have in common."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from emu.cli import main
from emu.harness.congestion import Case, observe
from emu.report.congestion import Observed
from emu.run import Options

SMALL = (
    *("congestion", "--wire", "memory", "--senders", "3", "--size", "16KiB", "--cc", "none"),
    *("--set", "fabric.topology.leaves=2", "--set", "fabric.topology.hosts_per_leaf=2"),
)


def test_json_is_a_list_of_results_and_the_folder_has_one_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main([*SMALL, "--json", "--out", str(out), "--sample", "100ns"]) == 0
    printed, said = capsys.readouterr()
    found = json.loads(printed)
    assert said == ""
    assert [result["scenario"]["name"] for result in found] == ["incast native none", "incast roce none"]
    assert [result["messages"]["completed"] for result in found] == [3, 3]
    assert sorted(path.name for path in out.iterdir()) == ["incast-native-none", "incast-roce-none"]
    for result, folder in zip(found, sorted(out.iterdir()), strict=True):
        assert json.loads((folder / "result.json").read_text()) == result
        with (folder / "queues.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        times = {float(row["time_ns"]) for row in rows}
        assert len(times) > 10
        assert all(time_ns % 100 == 0 for time_ns in times - {max(times)})
        assert len((folder / "messages.csv").read_text().splitlines()) == 4


def test_a_folder_that_is_there_is_not_overwritten_but_with_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    arguments = [*SMALL, "--profile", "native", "--quiet", "--out", str(out)]
    assert main(arguments) == 0
    assert main(arguments) == 2
    assert "exists already; --force overwrites it" in capsys.readouterr().err
    (out / "incast-native-none" / "queues.csv").write_text("old")
    assert main([*arguments, "--force"]) == 0
    assert (out / "incast-native-none" / "queues.csv").read_text() != "old"


def test_the_text_has_a_column_a_run_and_a_part_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--profile", "native,roce"]) == 0
    printed = capsys.readouterr().out
    head = next(line for line in printed.splitlines() if line.split()[:1] == ["incast"])
    assert head.split() == ["incast", "native", "none", "incast", "roce", "none"]
    assert printed.count("The p99 message (") == 2
    assert printed.count(" over time: the queue as looked at") == 2
    assert "what the figures rest on" in printed


def test_traffic_that_does_not_complete_is_exit_5(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*SMALL, "--profile", "native", "--set", "run.until=1us"]
    assert main([*arguments, "--json"]) == 5
    printed, said = capsys.readouterr()
    assert json.loads(printed)[0]["complete"] is False
    assert said.startswith("emu: incast native none: traffic did not complete: the run ended at 1.000 us")
    assert main(arguments) == 5
    assert "incast native none - INCOMPLETE: the run ended at" in capsys.readouterr().out


def test_an_interrupt_keeps_the_runs_that_are_whole(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop_at(last: str) -> None:
        def observe_or_stop(case: Case, options: Options) -> Observed:
            if case.name == last:
                raise KeyboardInterrupt
            return observe(case, options)

        monkeypatch.setattr("emu.commands.congestion.observe", observe_or_stop)

    out = tmp_path / "out"
    stop_at("incast roce none")
    assert main([*SMALL, "--json", "--out", str(out)]) == 130
    printed, said = capsys.readouterr()
    assert [result["scenario"]["name"] for result in json.loads(printed)] == ["incast native none"]
    assert said == "emu: interrupted after 1 run of 2\n"
    assert [path.name for path in out.iterdir()] == ["incast-native-none"]
    stop_at("incast native none")
    assert main([*SMALL, "--json", "--out", str(tmp_path / "none")]) == 130
    assert capsys.readouterr().out == ""
    assert not (tmp_path / "none").exists()


def test_quiet_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--profile", "native", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--pattern", "permutation", "--senders", "3"], "--senders: an incast has senders"),
        (["--senders", "0"], "argument --senders: '0': a whole number from 1"),
        (["--size", "1"], "argument --size: '1' has no unit"),
        (["--sample", "0us"], "argument --sample: '0us': looks are some time apart"),
        (["--sample", "fast"], "argument --sample: 'fast' is not a time"),
        (["--cc", "none,,dcqcn"], "argument --cc: 'none,,dcqcn': write a list like a,b,c"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["congestion", "--wire", "memory", *arguments]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"emu congestion: {said}")
    assert err.count("\n") == 1


def test_a_run_s_samples_need_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "hello", "--wire", "memory", "--sample", "1us"]) == 2
    assert "--out DIR says where" in capsys.readouterr().err
    out = tmp_path / "out"
    assert main(["run", "hello", "--wire", "memory", "--sample", "10ns", "--quiet", "--out", str(out)]) == 0
    rows = (out / "queues.csv").read_text().splitlines()
    assert rows[0] == "time_ns,series,name,lane,value"
    assert "310.0,tx_bytes,h0-leaf0,,4146" in rows or "300.0,tx_bytes,h0-leaf0,,4146" in rows
