"""The result folder appears whole or not at all, and takes nobody else's place."""

from __future__ import annotations

import csv
import errno
import os
import shutil
import signal
from pathlib import Path

import pytest

from emu.errors import MachineError, ScenarioError
from emu.lab import registry
from emu.measure.series import Sample
from emu.report.folder import ResultFolder
from emu.run import Options, run
from emu.scenario.load import load

FILES = ["messages.csv", "queues.csv", "result.json"]


def write(path: Path, *, force: bool = False) -> None:
    with ResultFolder(path, force=force) as folder:
        folder.finish({"number": 1})


def test_it_is_there_only_once_it_is_whole(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with ResultFolder(out, force=False) as folder:
        assert not out.exists()
        (partial,) = tmp_path.iterdir()
        assert partial in [path for record in registry.records() for path in record.paths]
        folder.finish({"number": 1})
        assert out.is_dir()
    assert list(tmp_path.iterdir()) == [out]
    assert out.stat().st_mode & 0o777 == tmp_path_mode(tmp_path)
    assert partial not in [path for record in registry.records() for path in record.paths]


def tmp_path_mode(tmp_path: Path) -> int:
    (tmp_path / "usual").mkdir()
    return (tmp_path / "usual").stat().st_mode & 0o777


def test_what_is_not_finished_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyError), ResultFolder(tmp_path / "out", force=False):
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_force_replaces_a_result_and_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(out)
    (out / "report.html").touch()
    with pytest.raises(ScenarioError, match="exists already"):
        write(out)
    write(out, force=True)
    assert sorted(path.name for path in out.iterdir()) == FILES
    (out / "thesis.tex").touch()
    with pytest.raises(ScenarioError, match=r"holds what no run wrote \(thesis.tex\)"):
        write(out, force=True)
    assert (out / "thesis.tex").exists()


def test_a_file_in_its_place_stays(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(ScenarioError, match="is no folder"):
        write(tmp_path / "out", force=True)
    with pytest.raises(ScenarioError, match="Not a directory|File exists"):
        write(tmp_path / "out" / "below")
    assert (tmp_path / "out").read_text() == "mine"


def test_what_comes_into_its_place_meanwhile_stays(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(ScenarioError, match="exists already"), ResultFolder(out, force=False) as folder:
        write(out)
        folder.finish({"number": 2})
    assert (out / "result.json").read_text() == '{\n  "number": 1\n}\n'
    assert list(tmp_path.iterdir()) == [out]


def test_a_signal_while_it_is_put_away_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remove = shutil.rmtree

    def remove_signalled(path: Path, *, ignore_errors: bool) -> None:
        signal.raise_signal(signal.SIGINT)
        remove(path, ignore_errors=ignore_errors)

    monkeypatch.setattr(shutil, "rmtree", remove_signalled)
    before = list(registry.records())
    with pytest.raises(KeyboardInterrupt), ResultFolder(tmp_path / "out", force=False):
        pass
    assert list(tmp_path.iterdir()) == []
    assert list(registry.records()) == before


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize(("file", "table"), [("messages.csv", "_messages"), ("queues.csv", "_queues")])
def test_a_row_that_finds_no_room_costs_neither_the_run_nor_its_result(
    file: str, table: str, number: int, tmp_path: Path
) -> None:
    class Full:
        def writerow(self, row: object) -> None:
            raise OSError(number, os.strerror(number))

    with ResultFolder(tmp_path / "out", force=False) as folder:
        getattr(folder, table)._writer = Full()
        options = Options(wire="memory", on_message=folder.on_message, on_sample=folder.on_sample)
        result = run(load("hello"), options)
        assert result["complete"] is True
        (line,) = folder.settle()
        assert line.startswith(f"{file} ends early: {os.strerror(number)}; ")
        folder.finish(result)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == FILES
    lengths = {name: len((tmp_path / "out" / name).read_text().splitlines()) for name in FILES[:2]}
    assert lengths[file] == 1
    assert all(length > 1 for name, length in lengths.items() if name != file)


def test_what_cannot_be_begun_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(MachineError, match="free some space"), ResultFolder(tmp_path / "out", force=False):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_link_that_leads_to_itself_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ScenarioError, match="leads back to itself"):
        write(tmp_path / "loop" / "out")


def test_messages_are_rows_that_add_up(tmp_path: Path) -> None:
    scenario = load("hello", ["traffic.0.count=3"])
    with ResultFolder(tmp_path / "out", force=False) as folder:
        result = run(scenario, Options(wire="memory", on_message=folder.on_message))
        folder.finish(result)
    with (tmp_path / "out" / "messages.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["src"], row["dst"], row["number"], row["status"]) for row in rows] == [
        ("h0", "h1", str(number), "SUCCESS") for number in range(3)
    ]
    parts = ("nic", "serialization", "propagation", "switching", "queueing", "control_frame_wait", "flow_control_wait")
    for row in rows:
        assert float(row["latency_ns"]) == result["messages"]["latency_ns"]["max"]
        assert float(row["delivered_ns"]) - float(row["posted_ns"]) == pytest.approx(float(row["latency_ns"]), abs=1e-6)
        assert sum(float(row[f"{part}_ns"]) for part in parts) == pytest.approx(float(row["latency_ns"]), abs=1e-6)


def test_samples_are_rows_in_nanoseconds(tmp_path: Path) -> None:
    with ResultFolder(tmp_path / "out", force=False) as folder:
        folder.on_sample(Sample(1_500, "queue_bytes", "leaf0-h0", 3, 4194))
        folder.on_sample(Sample(2_000, "tx_bytes", "leaf0-h0", -1, 9))
        folder.finish({})
    assert (tmp_path / "out/queues.csv").read_text().splitlines() == [
        "time_ns,series,name,lane,value",
        "1.5,queue_bytes,leaf0-h0,3,4194",
        "2.0,tx_bytes,leaf0-h0,,9",
    ]
