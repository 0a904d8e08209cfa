"""`emu doctor` on machines that lack something: it names that, and the remedy; so does a run that needs it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.lab.fabrics import REPOSITORY

pytestmark = pytest.mark.lab
PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"
EMU = f"{sys.executable} -m emu"
FORBID = "echo 0 > /proc/sys/user/max_user_namespaces"  # of one user namespace alone
WITHOUT_NET_RAW = "setpriv --bounding-set=-net_raw --inh-caps=-net_raw"


def shell(script: str, *alone: str) -> subprocess.CompletedProcess[str]:
    """Run it in namespaces that `unshare` makes; skips where it cannot."""
    command = ["unshare", *alone] if alone else []
    if alone and (shutil.which("unshare") is None or subprocess.run([*command, "true"], check=False).returncode):
        pytest.skip("namespaces of these kinds cannot be made here")
    return subprocess.run(
        [*command, "bash", "-c", script],
        cwd=REPOSITORY,
        env={**os.environ, "PATH": PATH},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def doctor(before: str, *alone: str, with_: str = "") -> tuple[int, dict[str, dict[str, Any]]]:
    """Its exit code, and its rows by need, after `before` was done to the machine."""
    done = shell(f"{before} || exit 99; {with_} {EMU} doctor --json", *alone)
    if done.returncode == 99:
        pytest.skip("this machine cannot be made to look so")
    assert done.stderr == ""
    return done.returncode, {row["need"]: row for row in json.loads(done.stdout)["rows"]}


def hidden(*programs: str) -> str:
    """The commands that hide programs, where they are installed."""
    paths = [shutil.which(program, path=PATH) for program in programs]
    return " && ".join(["true", *(f"mount --bind /dev/null {path}" for path in paths if path)])


def mount_namespace() -> tuple[str, ...]:
    return ("--mount",) if os.geteuid() == 0 else ("--user", "--map-root-user", "--mount")


def test_no_mnexec() -> None:
    code, rows = doctor(hidden("mnexec"), *mount_namespace())
    assert code == 3
    assert rows["mnexec"]["found"] == "mnexec is missing, which makes Mininet's namespaces"
    assert "apt-get install mininet" in rows["mnexec"]["remedy"]
    assert "--wire memory" in rows["mnexec"]["remedy"]
    run = shell(f"{hidden('mnexec')} && {EMU} run hello --quiet", *mount_namespace())
    assert (run.returncode, run.stdout) == (3, "")
    assert "mnexec is missing" in run.stderr
    assert "apt-get install mininet" in run.stderr


@pytest.mark.parametrize(("program", "package"), [("tshark", "tshark"), ("ip", "iproute2"), ("ifconfig", "net-tools")])
def test_no_tool_that_runs_do_without(program: str, package: str) -> None:
    code, rows = doctor(hidden(program), *mount_namespace())
    assert code == 0
    assert rows[program]["found"] == "missing"
    assert f"apt-get install {package}" in rows[program]["remedy"]


def test_a_low_limit_of_open_files() -> None:
    code, rows = doctor("ulimit -n 1000")
    row = rows["2560 open files"]
    assert (code, row["found"]) == (0, "1000")
    assert "ulimit -Hn" in row["remedy"]
    assert "--ulimit nofile" in row["remedy"]
    run = shell(f"ulimit -n 80; {EMU} run hello --quiet")
    assert run.returncode == 3
    assert run.stderr.count("\n") == 1
    assert "open files (two sockets a link, a pipe a node) and the limit is 80: raise it (ulimit -Hn" in run.stderr


def test_user_namespaces_are_restricted() -> None:
    """To somebody who is root of a user namespace, but may not open packet sockets there."""
    if shutil.which("setpriv", path=PATH) is None:
        pytest.skip("setpriv (util-linux) is missing")
    alone = ("--user", "--map-root-user", "--net")
    code, rows = doctor(FORBID, *alone, with_=WITHOUT_NET_RAW)
    row = rows["root, or user namespaces"]
    assert (code, row["found"]) == (3, "neither")
    assert "user.max_user_namespaces is 0, which forbids it: sudo sysctl user.max_user_namespaces=" in row["remedy"]
    assert "sudo" in row["remedy"]
    assert "--wire memory" in row["remedy"]
    run = shell(f"{FORBID} && {WITHOUT_NET_RAW} {EMU} run hello --quiet", *alone)
    assert run.returncode == 3
    assert "user.max_user_namespaces is 0" in run.stderr
    assert run.stderr.count("\n") == 1


def test_a_machine_without_any_of_it_still_runs_in_memory() -> None:
    script = f"{hidden('mnexec', 'ip', 'tshark', 'ifconfig')} && {EMU} run hello --wire memory --quiet"
    done = shell(script, *mount_namespace())
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_it_leaves_nothing() -> None:
    before = sorted(str(path) for folder in ("/run", "/tmp") for path in Path(folder).glob("emu*"))
    assert shell(f"{EMU} doctor").returncode == 0
    assert sorted(str(path) for folder in ("/run", "/tmp") for path in Path(folder).glob("emu*")) == before
