"""A long run ended by Ctrl-C, once or twice, SIGTERM or a closed terminal: at any moment, in 5 s, without a trace."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.crash.command import LONG, descendants_of, is_running, listens, start, wait_for
from tests.lab.fabrics import interfaces_here

pytestmark = pytest.mark.lab
ARGUMENTS = ("run", "long.yaml", "--json", "--out", "out")
LIMIT_S = 5.0


class Run:
    """A long run in a folder of its own; its registry, too."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.registry = folder / "registry"
        self.registry.mkdir(parents=True)
        (folder / "long.yaml").write_text(LONG)
        self.began_s = time.monotonic()
        environment = os.environ | {"XDG_RUNTIME_DIR": str(self.registry)}
        self.process = start(*ARGUMENTS, cwd=folder, env=environment, **options)

    def sleep_until(self, moment_s: float) -> None:
        """`moment_s` after its start."""
        time.sleep(max(0.0, self.began_s + moment_s - time.monotonic()))

    def await_end(self) -> tuple[str, str]:
        """What it prints until it has ended, in time and without a trace."""
        asked_s = time.monotonic()
        said = self.process.communicate(timeout=LIMIT_S)
        wait_for(lambda: not descendants_of(self.process.pid), asked_s + LIMIT_S - time.monotonic())
        assert list(self.registry.iterdir()) == []
        assert not list(self.folder.glob(".*"))
        return said

    def check_partial_result(self) -> dict[str, Any]:
        """What was written, or {} if there was nothing to write yet; all of it marked."""
        if not (self.folder / "out").exists():
            return {}
        result: dict[str, Any] = json.loads((self.folder / "out/result.json").read_text())
        assert (result["complete"], result["interrupted"]) == (False, True)
        rows = (self.folder / "out/messages.csv").read_text().splitlines()
        assert len(rows) == result["messages"]["completed"] + 1
        return result


def ctrl_c(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)


def ctrl_c_twice(process: subprocess.Popen[str]) -> None:
    ctrl_c(process)
    time.sleep(0.02)
    ctrl_c(process)


def ctrl_c_again_and_again(process: subprocess.Popen[str]) -> None:
    for _ in range(100):
        ctrl_c(process)
        time.sleep(0.005)


def terminate(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)


def hang_up(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGHUP)


@pytest.mark.parametrize("end", [ctrl_c, ctrl_c_twice, ctrl_c_again_and_again, terminate, hang_up])
def test_nothing_is_left(end: Callable[[subprocess.Popen[str]], None], tmp_path: Path) -> None:
    """At 0.1, 0.5, 2 and 5 s where one Ctrl-C does it, all at once; else when it is built, and when it runs."""
    interfaces = interfaces_here()
    moments = (0.1, 0.5, 2.0, 5.0) if end is ctrl_c else (0.5, 1.5)
    runs = [Run(tmp_path / str(moment_s)) for moment_s in moments]
    try:
        results = []
        for run, moment_s in zip(runs, moments, strict=True):
            run.sleep_until(moment_s)
            wait_for(partial(listens, run.process.pid))  # before it is not emu that runs, but Python that starts
            if moment_s == moments[-1]:
                wait_for(lambda: is_running(runs[-1].folder))
            end(run.process)
            printed, said = run.await_end()
            assert (run.process.returncode, "Traceback" in said) == (130, False), said
            assert "interrupted" in said
            results.append(run.check_partial_result())
            assert bool(results[-1]) == bool(printed)
            if printed:
                assert json.loads(printed) == results[-1]
    finally:
        for run in runs:
            run.process.kill()
            run.process.communicate()
    assert results[-1]["messages"]["completed"] > 0  # it had come that far
    assert interfaces_here() == interfaces


@pytest.mark.parametrize("moment", ["building", "running"])
def test_a_closed_terminal(moment: str, tmp_path: Path) -> None:
    """Its master closed, the kernel hangs up: nobody reads what is said, but the result is written."""
    master, slave = pty.openpty()
    run = Run(tmp_path, stdin=slave, stdout=slave, stderr=slave, start_new_session=True, preexec_fn=_take_terminal)
    os.close(slave)
    try:
        wait_for(lambda: is_running(tmp_path) if moment == "running" else descendants_of(run.process.pid))
        os.close(master)
        run.await_end()
    finally:
        run.process.kill()
        run.process.wait()
    assert run.process.returncode == 130
    assert bool(run.check_partial_result()) or moment == "building"


def _take_terminal() -> None:
    import fcntl  # noqa: PLC0415 - between fork and exec
    import termios  # noqa: PLC0415

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_ctrl_c_at_a_terminal_reaches_no_holder(tmp_path: Path) -> None:
    """The terminal sends it to all of its foreground processes: with the run alone they would be gone before it."""
    master, slave = pty.openpty()
    run = Run(tmp_path, stdin=slave, stdout=slave, stderr=slave, start_new_session=True, preexec_fn=_take_terminal)
    os.close(slave)
    try:
        wait_for(lambda: is_running(tmp_path))
        os.write(master, b"\x03")
        wait_for(lambda: run.process.poll() is not None, LIMIT_S)
        shown = os.read(master, 65536).decode()
        run.await_end()
    finally:
        run.process.kill()
        run.process.wait()
        os.close(master)
    assert run.process.returncode == 130
    assert "Traceback" not in shown
    assert run.check_partial_result()["messages"]["completed"] > 0
