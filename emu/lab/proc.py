"""Whether /proc tells of this process's own PID namespace: only there does a process's number name that process."""

from __future__ import annotations

import os
from pathlib import Path

from emu.errors import MachineError

FOLDER = Path("/proc")
REMEDY = "mount the right one (mount -t proc proc /proc; unshare has --mount-proc for it)"


def check_proc(otherwise: str = "") -> None:
    """Raises MachineError if /proc is missing or another PID namespace's; `otherwise` is one more way out.

    In another's, /proc/PID would be somebody else: their namespaces, their environment, their start time.
    """
    try:
        number = os.readlink(FOLDER / "self")
        status = (FOLDER / "self/status").read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise MachineError(f"/proc does not show this process ({error.strerror}): {REMEDY}{otherwise}") from None
    # A process's numbers, from /proc's namespace down to its own: one if they are the same.
    numbers = next((line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:")), [number])
    if number != str(os.getpid()) or len(numbers) > 1:
        raise MachineError(f"/proc shows another PID namespace than this process's: {REMEDY}{otherwise}")
