"""Small topologies, and ways to look at what a lab made and left."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from emu.lab.owner import Owner
from emu.topology import Kind, Link, Node, PortName, Topology

REPOSITORY = Path(__file__).parents[2]


def fabric(*pairs: tuple[str, str]) -> Topology:
    """Nodes named h... are hosts, all others switches; a link for each pair."""
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    kinds = {name: Kind.HOST if name.startswith("h") else Kind.SWITCH for name in names}
    following = {name: 0 if kinds[name] is Kind.HOST else 1 for name in names}
    links, seen = [], dict.fromkeys(pairs, 0)
    for pair in pairs:
        seen[pair] += 1
        a, b = (PortName(name, following[name]) for name in pair)
        for name in pair:
            following[name] += 1
        suffix = f"#{seen[pair]}" if seen[pair] > 1 else ""
        links.append(Link("-".join(pair) + suffix, a, b, 400 * 10**9, 15_000))
    return Topology(tuple(Node(name, kind) for name, kind in kinds.items()), tuple(links))


PAIR = fabric(("h0", "leaf0"))
SMALL = fabric(
    ("h0", "leaf0"), ("h1", "leaf1"), ("leaf0", "spine0"), ("leaf1", "spine0"), ("leaf0", "leaf1"), ("leaf0", "leaf1")
)


def inside(pid: int, *command: str) -> str:
    """What a command prints in the namespaces of a process."""
    done = subprocess.run(
        ["mnexec", "-a", str(pid), *command],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
        env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def processes_of(run_id: str) -> list[int]:
    """Processes whose environment says that they belong to the run."""
    found = []
    for entry in filter(str.isdecimal, os.listdir("/proc")):
        try:
            environment = Path(f"/proc/{entry}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if f"EMU_RUN={run_id}".encode() in environment:
            found.append(int(entry))
    return found


def process_at(node: str) -> int:
    """A process in the namespaces of a node of the lab that this process has up."""
    wanted = {f"EMU_NODE={node}".encode(), f"EMU_OWNER={Owner.this_process()}".encode()}
    for entry in filter(str.isdecimal, os.listdir("/proc")):
        try:
            environment = Path(f"/proc/{entry}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if wanted <= set(environment):
            return int(entry)
    raise LookupError(f"no process is at {node}")


def interfaces_here() -> set[str]:
    """Network interfaces of this namespace."""
    return {line.partition(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]}


def settings_here() -> dict[str, str]:
    """Every sysctl of this namespace but those that change by themselves, as `sysctl -a` shows them."""
    done = subprocess.run(
        ["sysctl", "-a"],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
        env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"},
    )
    pairs = (line.partition(" = ") for line in done.stdout.splitlines())
    return {name: value for name, _, value in pairs if not name.startswith(CHANGING)}


CHANGING = (
    "fs.dentry-state",
    "fs.file-nr",
    "fs.inode",
    "fs.quota.syncs",
    "kernel.ns_last_pid",
    "kernel.pty.nr",
    "kernel.random.",
    "net.netfilter.nf_conntrack_count",
)
