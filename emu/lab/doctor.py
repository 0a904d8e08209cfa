"""What this machine can do, what is missing, and the remedy for each; leaves nothing behind."""

from __future__ import annotations

import importlib.util
import os
import platform
import resource
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from emu.errors import MachineError
from emu.lab import rootless
from emu.lab.proc import check_proc
from emu.lab.trial import attempt_all

OLDEST_PYTHON = (3, 11)
FILES_FOR_A_BIG_FABRIC = 2 * 1024 + 512
MEMORY_MIB = 512
PATH = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"  # where an ordinary user's PATH does not look
VETH = "--wire veth"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that something needs: whether it is there, what was found, and what to do if it is not.

    An optional one is something that ordinary runs do without.
    """

    need: str
    for_: str
    ok: bool
    found: str
    remedy: str = ""
    optional: bool = False


def checks() -> list[Check]:
    """All checks, in under two seconds on an idle machine."""
    return [
        _python(),
        *(_module(name) for name in ("mininet", "scapy", "pyroute2")),
        *_namespaces(),
        _tool("ip", "tests, looking around in namespaces", "iproute2"),
        _tool("ifconfig", "emu live", "net-tools"),
        _files(),
        _cpus(),
        _memory(),
        _tool("tshark", "tests of captures, looking at them", "tshark"),
    ]


def _python() -> Check:
    wanted = ".".join(map(str, OLDEST_PYTHON))
    remedy = "" if sys.version_info >= OLDEST_PYTHON else f"install Python {wanted} and run make install"
    return Check(f"Python {wanted} or later", "everything", not remedy, platform.python_version(), remedy)


def _module(name: str) -> Check:
    found = importlib.util.find_spec(name) is not None
    use = {"mininet": "topologies, --wire veth", "scapy": "frames", "pyroute2": VETH}[name]
    return Check(f"Python package {name}", use, found, "found" if found else "missing", "" if found else "make install")


def _namespaces() -> list[Check]:
    """What needs a /proc that shows this process."""
    try:
        check_proc()
    except MachineError as error:
        found, _, remedy = str(error).rpartition(": ")
        return [Check("/proc of this PID namespace", VETH, False, found, remedy)]
    return [_privileges(), *_attempts()]


def _privileges() -> Check:
    need = "root, or user namespaces"
    if rootless.is_privileged():
        return Check(need, VETH, True, "root" if os.geteuid() == 0 else "capabilities")
    reason = rootless.available()
    if reason is None:
        return Check(need, VETH, True, "user namespaces")
    return Check(need, VETH, False, "neither", reason)


def _attempts() -> list[Check]:
    """What was really tried, as root or in a user namespace."""
    outcomes = attempt_all()
    return [
        _attempted("mnexec", "Mininet's namespaces", *outcomes["mnexec"]),
        _attempted("veth pairs and packet sockets", VETH, *outcomes["veth"]),
    ]


def _attempted(need: str, use: str, ok: bool, text: str) -> Check:
    if ok:
        return Check(need, use, True, text)
    reason, _, remedy = text.rpartition(": ")
    return Check(need, use, False, reason, remedy)


def _tool(name: str, use: str, package: str) -> Check:
    path = shutil.which(name, path=PATH)
    remedy = "" if path else f"install it (Debian, Ubuntu: apt-get install {package})"
    return Check(name, use, path is not None, path or "missing", remedy, optional=True)


def _files() -> Check:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    enough = limit == resource.RLIM_INFINITY or limit >= FILES_FOR_A_BIG_FABRIC
    remedy = "" if enough else "raise the hard limit (ulimit -Hn as root; in a container --ulimit nofile)"
    found = "no limit" if limit == resource.RLIM_INFINITY else str(limit)
    return Check(f"{FILES_FOR_A_BIG_FABRIC} open files", "fabrics of 1,024 links", enough, found, remedy, optional=True)


def _cpus() -> Check:
    return Check("a CPU", "a run stays on one", True, f"{len(os.sched_getaffinity(0))} usable")


def _memory() -> Check:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("MemAvailable:"):
            free_mib = int(line.split()[1]) // 1024
            remedy = "" if free_mib >= MEMORY_MIB else "end something else that needs memory"
            return Check(f"{MEMORY_MIB} MiB of free memory", "runs", not remedy, f"{free_mib} MiB", remedy)
    return Check(f"{MEMORY_MIB} MiB of free memory", "runs", True, "unknown")
