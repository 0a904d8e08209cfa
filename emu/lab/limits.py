"""What a lab needs of its own process while it is up: enough open files, and one CPU."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
from collections.abc import Iterator

from emu.errors import MachineError

SPARE_FILES = 64  # for everything that is neither a packet socket nor a holder's pipe
_LIBC = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def enough_files(wanted: int) -> Iterator[None]:
    """So many more files may be opened meanwhile. Raises MachineError if the hard limit is lower.

    The soft limit is raised only as far as needed: programs that close every possible file would take long.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = len(os.listdir("/proc/self/fd")) + wanted + SPARE_FILES
    if needed > hard != resource.RLIM_INFINITY:
        raise MachineError(
            f"the fabric needs {needed} open files (two sockets a link, a pipe a node) and the limit is {hard}:"
            " raise it (ulimit -Hn as root; in a container --ulimit nofile), or use --wire memory"
        )
    if needed > soft != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextlib.contextmanager
def one_cpu() -> Iterator[None]:
    """This thread stays on the CPU it is on meanwhile: a veth delivers at once to a receiver of the same CPU."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {_LIBC.sched_getcpu()} & allowed or {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
