"""Removes what dead runs left behind, and nothing else."""

from __future__ import annotations

import os
import select
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

from emu.lab import registry
from emu.lab.owner import Owner
from emu.lab.proc import check_proc

END_TIMEOUT_MS = 2000


def clean() -> list[str]:
    """End the processes and remove the temporary results of runs whose process is dead; one line for each.

    Raises MachineError where /proc does not tell who is dead.
    """
    check_proc()
    return [*_end_processes(), *_remove_results()]


def orphans() -> Iterator[tuple[int, str]]:
    """Processes that dead runs left: number and run id."""
    for entry in os.listdir("/proc"):
        if entry.isdecimal() and (run_id := _dead_run_of(int(entry))):
            yield int(entry), run_id


def _end_processes() -> Iterator[str]:
    for pid, _ in list(orphans()):
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            # Looked at again: until it was opened, the number may have gone to someone else.
            run_id = _dead_run_of(pid)
            if run_id and _end(process):
                yield f"process {pid} of run {run_id}"
        finally:
            os.close(process)


def _end(process: int) -> bool:
    try:
        signal.pidfd_send_signal(process, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    poll = select.poll()
    poll.register(process, select.POLLIN)
    poll.poll(END_TIMEOUT_MS)
    return True


def _dead_run_of(pid: int) -> str | None:
    """The run id in a process's environment, if that run's own process is dead."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:  # ended, or not ours to read
        return None
    values = dict(line.split(b"=", 1) for line in environment.split(b"\0") if b"=" in line)
    owner = Owner.parse(values.get(b"EMU_OWNER", b"").decode(errors="replace"))
    run_id = values.get(b"EMU_RUN", b"").decode(errors="replace")
    return run_id if run_id and owner is not None and owner.is_dead else None


def _remove_results() -> Iterator[str]:
    for record in registry.records():
        if not record.is_dead:
            continue
        for path in record.paths:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            elif path.exists() or path.is_symlink():
                path.unlink(missing_ok=True)
            else:
                continue
            yield f"{path} of run {record.run_id}"
        record.remove()
