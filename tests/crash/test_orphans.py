"""A test run that is killed takes the runs that it has started with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.crash.command import LONG, wait_for
from tests.tree import ROOT

STARTER = "import time; from tests.crash.command import start; print(start('run', 'long.yaml', '--wire', 'memory').pid,"


def state_of(pid: int) -> str:
    """As /proc says it; Z and nothing: it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


def test_nothing_outlives_its_starter(tmp_path: Path) -> None:
    (tmp_path / "long.yaml").write_text(LONG.replace("capture: [leaf0-spine0]\n", ""))
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER + " flush=True); time.sleep(600)"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert starter.stdout is not None
    with starter, starter.stdout:
        try:
            pid = int(starter.stdout.readline())
            wait_for(lambda: Path(f"/proc/{pid}/cmdline").exists())
            assert state_of(pid) not in ("", "Z")
        finally:
            starter.send_signal(signal.SIGKILL)
    wait_for(lambda: state_of(pid) in ("", "Z"))
