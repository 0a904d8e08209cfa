"""Kills a run and cleans up after it, in namespaces that nobody else lives in; prints what was there when, as JSON.

`python -m tests.crash.killed WHEN`, alone in network, mount and PID namespaces: nothing here may reach outside them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.crash.command import LONG, descendants_of, is_running, start, wait_for
from tests.tree import ROOT

PRIVATE = ("/tmp", "/run")  # empty ones, mounted over those of the machine
FOREIGN = "h1"
FOREIGN_LINK = "s1-eth1"
WORK = Path("/tmp/emu-killed")
# What must stay to be seen where it lies in one of those: the checkout, and the interpreter's environment.
NEEDED = [ROOT] if Path(sys.prefix).is_relative_to(ROOT) else [ROOT, Path(sys.prefix)]
KEPT = [path for path in NEEDED if any(path.is_relative_to(folder) for folder in PRIVATE)]


def command(*words: str) -> str:
    """What it prints."""
    return subprocess.run(words, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout


def prepare() -> subprocess.Popen[bytes]:
    """Somebody else's lab, named as Mininet names things: a namespace with a process in it, and a link."""
    held = {path: os.open(path, os.O_PATH) for path in KEPT}
    for folder in PRIVATE:
        command("mount", "-t", "tmpfs", "none", folder)
    for path, handle in held.items():
        path.mkdir(parents=True)
        command("mount", "--no-canonicalize", "--bind", f"/proc/{os.getpid()}/fd/{handle}", str(path))
        os.close(handle)
    command("ip", "netns", "add", FOREIGN)
    command("ip", "link", "add", FOREIGN_LINK, "type", "veth", "peer", "name", "s1-eth2")
    WORK.mkdir()
    (WORK / "long.yaml").write_text(LONG)
    somebody = subprocess.Popen(["ip", "netns", "exec", FOREIGN, "sleep", "600"])
    wait_for(lambda: Path(f"/proc/{somebody.pid}/cmdline").read_text().startswith("sleep"))
    return somebody


def reap() -> None:
    """What became ours when its parent died, as a machine's first process does it."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def files_in(folder: str) -> Iterator[str]:
    """All files and folders there but the checkout's and the run's own folder's."""
    for place, folders, names in os.walk(folder):
        yield from (str(Path(place, name)) for name in (*folders, *names))
        folders[:] = [name for name in folders if Path(place, name) not in (*KEPT, WORK)]


def snapshot() -> dict[str, Any]:
    """All that a run could leave: processes, namespaces, interfaces, mounts, files of the private folders."""
    processes, namespaces = {}, set()
    for entry in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError):  # it ended meanwhile
            processes[entry] = Path(f"/proc/{entry}/cmdline").read_text()
            namespaces |= {os.readlink(f"/proc/{entry}/ns/{kind}") for kind in ("net", "mnt")}
    return {
        "processes": processes,
        "namespaces": sorted(namespaces),
        "named": command("ip", "netns", "list").split(),
        "interfaces": command("ip", "-o", "link"),
        "mounts": Path("/proc/self/mounts").read_text(),
        "files": sorted(path for folder in PRIVATE for path in files_in(folder)),
        "work": sorted(path.name for path in WORK.iterdir()),
    }


def emu(*arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr of a command."""
    process = start(*arguments, cwd=WORK)
    said = process.communicate(timeout=60)
    return process.returncode, *said


def main(when: str) -> None:
    """Kill a run when it is being built, when it runs, or when one of its holders is stopped and cannot notice."""
    somebody = prepare()
    before = snapshot()
    run = start("run", "long.yaml", "--capture", "cap.pcapng", "--out", "out", cwd=WORK)
    if when == "building":
        wait_for(lambda: descendants_of(run.pid))
    else:
        wait_for(lambda: is_running(WORK))
    holders = sorted(descendants_of(run.pid))
    if when == "stopped":
        os.kill(holders[0], signal.SIGSTOP)
    run.kill()
    run.communicate(timeout=60)
    wait_for(lambda: len(descendants_of(run.pid)) == (when == "stopped"), 5)  # most end without being told
    reap()
    left = snapshot()
    cleaned, again = emu("clean"), emu("clean")
    reap()
    after = snapshot()
    decoded = emu("decode", "cap.pcapng", "--json") if (WORK / "cap.pcapng").exists() else None
    somebody.kill()
    print(
        json.dumps(
            {
                "pid": run.pid,
                "holders": holders,
                "before": before,
                "left": left,
                "cleaned": cleaned,
                "again": again,
                "after": after,
                "somebody": somebody.pid,
                "decoded": decoded,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1])
