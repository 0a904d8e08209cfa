"""`emu` in a process of its own, as at a terminal, and how the tests wait for what it does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.tree import ROOT

# SIGINT is ignored in what a shell started in the background: here it must be as at a terminal.
START = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
    f"sys.path.insert(0, {str(ROOT)!r}); from emu.start import main; sys.exit(main())"
)
# It is killed when we end, even by SIGKILL (PR_SET_PDEATHSIG is 1); it ends by itself if we have gone before that.
TIED = "import ctypes, os; ctypes.CDLL(None).prctl(1, 9); os.getppid() == {parent} or os._exit(1);"
LONG = """
name: long
fabric: {profile: roce, topology: {kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 1}}
traffic: [{kind: write, pairs: [[h0, h1]], size: 4KiB, count: 100000000}]
capture: [leaf0-spine0]
"""
PATIENCE_S = 30.0


def start(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    """Run `emu ARGUMENTS`; its stdout and stderr are pipes if not told otherwise."""
    return subprocess.Popen(
        [sys.executable, "-c", TIED.format(parent=os.getpid()) + START, *arguments],
        stdin=options.pop("stdin", subprocess.DEVNULL),
        stdout=options.pop("stdout", subprocess.PIPE),
        stderr=options.pop("stderr", subprocess.PIPE),
        text=True,
        **options,
    )


def wait_for(condition: Callable[[], object], timeout_s: float = PATIENCE_S) -> float:
    """Wait until it is so; how long that took, in seconds."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < timeout_s, "it does not come to that"
        time.sleep(0.02)
    return time.monotonic() - began


def descendants_of(owner: int) -> dict[int, str]:
    """Processes of the runs of process `owner`, wherever in the tree they hang: number and node."""
    found = {}
    for entry in filter(str.isdecimal, os.listdir("/proc")):
        try:
            variables = Path(f"/proc/{entry}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        values = dict(each.split(b"=", 1) for each in variables if b"=" in each)
        if values.get(b"EMU_OWNER", b"").startswith(f"{owner}:".encode()):
            found[int(entry)] = values.get(b"EMU_NODE", b"").decode()
    return found


def listens(pid: int) -> bool:
    """Whether the process catches SIGTERM: Python itself does not, emu does from its first line on."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(caught >> signal.SIGTERM - 1 & 1)


def is_running(folder: Path) -> bool:
    """Whether a run of LONG with `--out` in this folder has come to its traffic."""
    return any(file.stat().st_size for file in folder.glob(".*.partial/messages.csv"))
