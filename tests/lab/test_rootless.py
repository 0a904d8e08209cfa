"""Without root: the same inside a user namespace, or a clear word why not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from emu.errors import MachineError
from emu.lab import doctor, rootless
from tests.lab.fabrics import REPOSITORY

BUILD = """
from emu.lab.lab import Lab
from tests.lab.fabrics import SMALL
from tests.wire.stub import StubFraming, make_frame
with Lab(SMALL) as lab:
    for link in SMALL.links:
        for wire in lab.wires(link, StubFraming()):
            frame = make_frame(wire.framing, 1)
            assert wire.send(frame) and wire.receive(frame) is frame
            wire.finish()
    print("crossed", lab.mininet["h0"].cmd("ls /sys/class/net").split())
"""


def as_nobody(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a user without rights; skips where that cannot be."""
    if os.geteuid() or not _all_users_exist():
        pytest.skip("only root outside a user namespace can become someone else")
    runuser = shutil.which("runuser", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if runuser is None:
        pytest.skip("runuser (util-linux) is missing")
    if _run_as_nobody(runuser, sys.executable, "-c", "import emu.lab.lab").returncode:
        pytest.skip("nobody may not read this checkout, or the folders above it")
    return _run_as_nobody(runuser, *command)


def _run_as_nobody(runuser: str, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [runuser, "-u", "nobody", "--", *command],
        cwd="/",
        env={
            **os.environ,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": str(REPOSITORY),
            "HOME": "/nonexistent",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _all_users_exist() -> bool:
    """Whether this is no user namespace such as ours, which has one user alone."""
    return int(Path("/proc/self/uid_map").read_text().split()[2]) > 65_534


def without_user_namespaces() -> str | None:
    """Why an ordinary user has none here."""
    done = as_nobody(sys.executable, "-c", "from emu.lab.rootless import available; print(available() or '')")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip() or None


@pytest.mark.lab
def test_a_fabric_without_root() -> None:
    if reason := without_user_namespaces():
        pytest.skip(reason)
    done = as_nobody(sys.executable, "-m", "emu.lab.rootless", sys.executable, "-c", BUILD)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "crossed ['h0-eth0', 'lo']\n"


@pytest.mark.lab
def test_the_command_gets_its_arguments_and_its_exit_code_back() -> None:
    if reason := without_user_namespaces():
        pytest.skip(reason)
    done = as_nobody(sys.executable, "-m", "emu.lab.rootless", "sh", "-c", 'echo "$1"; exit 7', "sh", "a  b")
    assert (done.returncode, done.stdout) == (7, "a  b\n")


@pytest.mark.lab
@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_closed_files_are_no_hindrance(closed: str) -> None:
    if reason := without_user_namespaces():
        pytest.skip(reason)
    done = as_nobody("sh", "-c", f"exec {sys.executable} -m emu run hello --quiet {closed}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_privileged_command_just_runs() -> None:
    if not rootless.is_privileged():
        pytest.skip("not privileged")
    here = os.readlink("/proc/self/ns/net")
    command = [sys.executable, "-m", "emu.lab.rootless", "readlink", "/proc/self/ns/net"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, here)
    rootless.ensure_privileges()


def test_where_it_is_impossible_the_command_runs_all_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(rootless, "is_privileged", lambda: False)
    monkeypatch.setattr(rootless, "available", lambda: "forbidden: allow it")
    monkeypatch.setattr(os, "execvp", lambda _, command: ran.append(command))
    rootless.main(["true", "-x"])
    assert ran == [["true", "-x"]]
    assert capsys.readouterr().err == "no namespaces: forbidden: allow it\n"


def test_a_command_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        rootless.execute_or_exit(["emu-no-such-command"])
    assert stop.value.code == 3
    assert "emu-no-such-command" in capsys.readouterr().err


def test_emu_itself_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rootless, "is_privileged", lambda: False)
    monkeypatch.setattr(rootless, "available", lambda: f"forbidden; or {rootless.WAYS_OUT}")
    with pytest.raises(MachineError, match="sudo.*--wire memory"):
        rootless.ensure_privileges()


@pytest.mark.parametrize(("setting", "value", "remedy"), rootless.SETTINGS)
def test_the_setting_that_forbids_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, setting: str, value: str, remedy: str
) -> None:
    (tmp_path / setting).parent.mkdir()
    (tmp_path / setting).write_text(f"{value}\n")
    monkeypatch.setattr(rootless, "SETTINGS_FOLDER", tmp_path)
    monkeypatch.setattr(rootless, "PROBE", "raise OSError(1, 'unshare: Operation not permitted')")
    reason = rootless.available()
    assert reason is not None
    assert setting.replace("/", ".") in reason
    assert remedy in reason
    (tmp_path / setting).unlink()
    assert "unshare: Operation not permitted" in str(rootless.available())


def test_a_doctor_leaves_every_row_filled() -> None:
    rows = doctor.checks()
    assert len({row.need for row in rows}) == len(rows) >= 10
    for row in rows:
        assert row.need and row.for_ and row.found
        assert bool(row.remedy) != row.ok


@pytest.mark.lab
def test_a_doctor_finds_nothing_wrong_where_labs_work() -> None:
    assert {row.need for row in doctor.checks() if not row.ok} <= {"ifconfig", "2560 open files"}


def test_a_doctor_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(doctor, "attempt_all", lambda: dict.fromkeys(("mnexec", "veth"), (False, "it broke: mend it")))
    monkeypatch.setattr(doctor, "PATH", "/nonexistent")
    rows = {row.need: row for row in doctor.checks()}
    assert rows["ip"].remedy.endswith("apt-get install iproute2)")
    assert (rows["mnexec"].found, rows["mnexec"].remedy) == ("it broke", "mend it")
