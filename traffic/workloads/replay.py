"""`kind: replay`: what a capture's queue pairs posted, posted again, in the same order, by queue pairs of our own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from emu.capture.operations import Captured, Conversation, read_operations
from emu.errors import ScenarioError
from emu.scenario.replay import Replay
from emu.units import NS, TIME_LIMIT_PS
from traffic.workloads.cluster import Cluster
from traffic.workloads.replayed import Replayed, Setting

PACED_DEPTH = 1024  # messages outstanding at most where the capture's times say when they are posted


class Origin(NamedTuple):
    """What a replaying queue pair's messages are copies of: message `number` of the queue pair is its operation."""

    conversation: Conversation
    number: int  # among the capture's
    source: str  # hosts
    destination: str


def prepare(model: Replay, hosts: Sequence[str], path_mtu_bytes: int) -> None:
    """Refuse, before anything is built, what cannot be replayed there. Raises ScenarioError."""
    captured = captured_in(model.file)
    place(captured, dict(model.map), hosts)
    last_ns = max(operation.posted_ns for each in captured.conversations for operation in each.operations)
    if model.speed is not None and model.start_ps + last_ns * NS / model.speed > TIME_LIMIT_PS:
        raise ScenarioError(f"{model.file}: at speed {model.speed} it takes more than eleven days; use a higher speed")
    for each in captured.conversations:
        largest = max(operation.size_bytes for operation in each.operations)
        if each.transport == "UD" and largest > path_mtu_bytes:
            raise ScenarioError(f"{model.file}: a datagram of {largest}B does not fit path_mtu, {path_mtu_bytes}B")


def start(cluster: Cluster, model: Replay) -> None:
    """Connect a pair of queue pairs for each of the capture's that asked, and let them post."""
    captured = captured_in(model.file)
    hosts = place(captured, dict(model.map), tuple(cluster.contexts))
    for number, each in enumerate(captured.conversations):
        setting = Setting(
            source=hosts[each.source],
            destination=hosts[each.destination],
            kind=model.kind,
            priority=model.priority,
            window=each.depth if model.speed is None else PACED_DEPTH,
        )
        replayed = Replayed(cluster, each, setting)
        replayed.qp.origin = Origin(each, number, setting.source, setting.destination)
        cluster.engine.spawn(replayed.post_all(model.start_ps, times_ps(each, model.speed)))


def times_ps(conversation: Conversation, speed: Fraction | None) -> Sequence[int]:
    """When each operation is posted at the earliest, after the start; all at once where the speed is not given."""
    if speed is None:
        return [0] * len(conversation.operations)
    return [int(operation.posted_ns * NS / speed) for operation in conversation.operations]


def place(captured: Captured, given: Mapping[str, str], hosts: Sequence[str]) -> dict[str, str]:
    """The host of each endpoint: as given, the others in order on the hosts that are left. Raises ScenarioError."""
    ends = captured.endpoints
    for end in given:
        if end not in ends:
            raise ScenarioError(f"map: the capture has no endpoint {end!r}; it has {', '.join(ends)}")
    if len(ends) > len(hosts):
        raise ScenarioError(f"{len(ends)} endpoints in the capture, and {len(hosts)} hosts here: use more hosts")
    left = iter([host for host in hosts if host not in given.values()])
    return {end: given[end] if end in given else next(left) for end in ends}


def captured_in(file: str) -> Captured:
    """What the capture's queue pairs asked; a file that has not changed is read once. Raises ScenarioError."""
    try:
        state = Path(file).stat()
    except OSError as error:
        raise ScenarioError(f"{file}: {error.strerror}") from None
    return _read(file, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=1)
def _read(file: str, _mtime_ns: int, _size: int) -> Captured:
    """Read once for the check and for the run."""
    return read_operations(file)
