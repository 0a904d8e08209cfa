"""A disk that fills up: the run goes on, what is on the disk is whole, what is missing is named, the exit code is 3."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.crash.command import START
from tests.crash.test_kill import PATH

SCENARIO = """
name: much
fabric:
  profile: {profile}
  flow_control: none
  topology: {{kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 1}}
traffic: [{{kind: write, pairs: [[h0, h1]], size: 64B, count: {count}}}]
{more}
"""
CAPTURE = "capture: [leaf0-spine0]"
WHY = "No space left on device; free some space, or write elsewhere"
EARLY = re.compile(rf"capture (\S+) ends early, after ([\d,]+) frames: {WHY}")
WIRES = ("memory", pytest.param("veth", marks=pytest.mark.lab))


class Disk:
    """A folder `small` of so many KiB, to be seen by one command; what that leaves there is copied to `left`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.left = folder / "left"
        (folder / "small").mkdir()
        alone = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
        self.alone = [shutil.which(alone[0], path=PATH) or "unshare", *alone[1:]]

    def write(self, profile: str = "roce", count: int = 6_000, more: str = CAPTURE) -> None:
        (self.folder / "much.yaml").write_text(SCENARIO.format(profile=profile, count=count, more=more))

    def emu(self, size_kib: int, arguments: str, first: str = "true") -> subprocess.CompletedProcess[str]:
        """Skips where no such disk can be had."""
        mount = f"mount -t tmpfs -o size={size_kib}k none small || exit 99"
        script = f'{mount}; {first}; "$@"; code=$?; cp -a small left; exit $code'
        done = subprocess.run(
            [*self.alone, "sh", "-c", script, "sh", sys.executable, "-c", START, *arguments.split()],
            cwd=self.folder,
            env=os.environ | {"PATH": PATH},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if done.returncode == 99 or "unshare" in done.stderr:
            pytest.skip("no small disk can be mounted here")
        assert "Traceback" not in done.stderr
        return done


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def decoded(path: Path) -> dict[str, Any]:
    """What `emu decode` says of a capture that has no damage at all."""
    done = subprocess.run(
        [sys.executable, "-c", START, "decode", str(path), "--json"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["complete"] is True
    return result


@pytest.mark.parametrize(
    ("wire", "profile"),
    [
        ("veth", "roce"),
        ("memory", "native"),
        pytest.param("veth", "native", marks=pytest.mark.long),
        pytest.param("memory", "roce", marks=pytest.mark.long),
    ],
)
def test_a_capture_that_finds_no_room_ends_and_the_run_does_not(wire: str, profile: str, disk: Disk) -> None:
    disk.write(profile, 3_000)
    done = disk.emu(256, f"run much.yaml --wire {wire} --json --out out --capture small/much.pcapng")
    result = json.loads(done.stdout)
    assert done.returncode == 3
    assert (result["complete"], result["messages"]["completed"]) == (True, 3_000)
    (warning,) = result["warnings"]
    said = EARLY.fullmatch(warning)
    assert said is not None
    assert said[1] == "much.pcapng"
    assert done.stderr == f"emu: {warning}\n"
    assert json.loads((disk.folder / "out/result.json").read_text()) == result
    assert decoded(disk.left / "much.pcapng")["frames"] == int(said[2].replace(",", "")) > 1_000
    assert (disk.left / "much.pcapng").stat().st_size > 250 * 1024  # to the last whole record that fits
    assert decoded(disk.folder / "out/captures/much.pcapng")["frames"] == 2 * 3_000  # WRITEs and their ACKs


def test_the_result_has_room_all_the_same(disk: Disk) -> None:
    """Capture, messages.csv and queues.csv end early, beside it."""
    disk.write()
    done = disk.emu(1_536, "run much.yaml --wire memory --json --out small/out")
    assert done.returncode == 3
    result = json.loads((disk.left / "out/result.json").read_text())
    assert json.loads(done.stdout) == result
    assert (result["complete"], result["messages"]["completed"]) == (True, 6_000)
    capture, messages, queues = result["warnings"]
    assert EARLY.fullmatch(capture)
    assert messages == f"messages.csv ends early: {WHY}"
    assert queues == f"queues.csv ends early: {WHY}"
    assert done.stderr == f"emu: {capture}\nemu: {messages}\nemu: {queues}\n"
    files = ["captures", "messages.csv", "queues.csv", "result.json"]
    assert sorted(path.name for path in (disk.left / "out").iterdir()) == files
    with (disk.left / "out/queues.csv").open(newline="") as file:
        samples = list(csv.reader(file))
    assert {len(sample) for sample in samples} == {5}
    times_ns = [float(sample[0]) for sample in samples[1:]]
    assert times_ns == sorted(times_ns)
    assert len(times_ns) > 1_000
    assert decoded(disk.left / "out/captures/much.pcapng")["frames"] > 1_000
    with (disk.left / "out/messages.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert [row[3] for row in rows[1:]] == [str(number) for number in range(len(rows) - 1)]
    assert {len(row) for row in rows} == {len(rows[0])}
    assert 500 < len(rows) < 6_000
    assert [path.name for path in disk.left.iterdir()] == ["out"]


def test_the_text_says_it_too(disk: Disk) -> None:
    disk.write(count=3_000)
    done = disk.emu(128, "run much.yaml --wire memory --capture small/much.pcapng")
    assert done.returncode == 3
    assert "3,000 messages completed" in done.stdout
    assert "capture much.pcapng ends early" in done.stdout


@pytest.mark.parametrize("where", ["--out small/out", "--capture small/much.pcapng"])
def test_a_disk_that_is_full_from_the_beginning_is_said_before_the_run(where: str, disk: Disk) -> None:
    disk.write()
    done = disk.emu(64, f"run much.yaml --wire memory --json {where}", "cat /dev/zero > small/filled 2> /dev/null")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("emu run: ")
    assert done.stderr.endswith(f"{WHY}\n")
    assert done.stderr.count("\n") == 1
    assert [path.name for path in disk.left.iterdir()] == ["filled"]
