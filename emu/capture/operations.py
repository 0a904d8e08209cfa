"""A capture as work requests: which queue pair posted what, how large, when, and how long until it was answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from emu.capture.flow import Flow
from emu.capture.reader import CaptureFile
from emu.capture.seen import SeenMessage
from emu.capture.summary import Summary
from emu.errors import ScenarioError, WireError

MESSAGE_LIMIT = 1_000_000
MAX_MESSAGE_BYTES = 2**31  # IBTA vol. 1, 9.7.1
DEPTH_LIMIT = 1024
WHOLE = ("SEND", "SEND with Immediate", "RDMA Write", "RDMA Write with Immediate")
OPERATIONS = {
    "RC": frozenset((*WHOLE, "SEND with Invalidate", "RDMA Read Request", "Compare Swap", "Fetch Add")),
    "UC": frozenset(WHOLE),
    "UD": frozenset(WHOLE[:2]),
}
"""What can be posted again, by transport and name; the rest is left out, and counted."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One message. Times in nanoseconds, `posted_ns` from the capture's first frame on."""

    name: str  # of OPERATIONS
    size_bytes: int
    immediate: int | None
    posted_ns: int  # its first packet was seen
    answer_ns: int | None  # from there to its ACK or last response; None: not seen, or not clear whose it is
    complete: bool


@dataclass(frozen=True, slots=True)
class Conversation:
    """What one queue pair asked of another; `depth`: of how many messages it awaited the answer at once."""

    transport: str
    source: str
    destination: str
    destination_qp: int
    operations: tuple[Operation, ...]
    depth: int


@dataclass(frozen=True, slots=True)
class Captured:
    """What a capture's queue pairs asked; `endpoints` in the order they were seen."""

    network: str
    endpoints: tuple[str, ...]
    conversations: tuple[Conversation, ...]
    warnings: tuple[str, ...] = ()


def read_operations(path: str) -> Captured:
    """All that can be posted again. Raises ScenarioError for what is no capture, is damaged, or has nothing of it."""
    warnings: list[str] = []
    summary = Summary(with_rows=False, limit=MESSAGE_LIMIT)
    try:
        with CaptureFile(path, warnings.append) as capture:
            summary.add(capture)
    except WireError as error:
        raise ScenarioError(str(error)) from None
    flows, messages, more = summary.conversations()
    if more:
        raise ScenarioError(f"{path}: more than {MESSAGE_LIMIT:,} messages; cut it into pieces (editcap -c)")
    left_out: Counter[str] = Counter()
    conversations = tuple(_conversations(flows, messages, summary.first_ns, left_out))
    if not conversations:
        raise ScenarioError(f"{path}: no RDMA message in it that could be posted again")
    warnings += [f"{count} x {name} left out: it cannot be posted here" for name, count in sorted(left_out.items())]
    ends = dict.fromkeys(end for each in conversations for end in (each.source, each.destination))
    network = next(flow.key.network for flow in flows if flow.stream is not None)
    return Captured(network, tuple(ends), conversations, tuple(warnings))


def _conversations(
    flows: Sequence[Flow], messages: Sequence[tuple[int, SeenMessage]], first_ns: int, left_out: Counter[str]
) -> Iterable[Conversation]:
    """Each once, as the first of its links shows it: other links of a capture of several show it too."""
    by_flow: dict[int, list[SeenMessage]] = {}
    for number, message in messages:
        by_flow.setdefault(number, []).append(message)
    known: set[tuple[object, ...]] = set()
    for flow in sorted(flows, key=lambda each: each.first_ns):
        key = flow.key
        if flow.number not in by_flow or key[1:] in known:
            continue
        known.add(key[1:])
        is_clear = flow.answers is not None
        operations, transport = [], ""
        for message in by_flow[flow.number]:
            transport, _, name = message.operation.partition(" ")
            if key.source == key.destination:
                left_out[f"{message.operation} of a host to itself"] += 1
            elif name in OPERATIONS.get(transport, ()) and message.size_bytes <= MAX_MESSAGE_BYTES:
                operations.append(_operation(name, message, first_ns, is_clear=is_clear))
            else:
                left_out[message.operation] += 1
        if operations:
            depth = _depth(operations)
            yield Conversation(transport, key.source, key.destination, key.destination_qp, tuple(operations), depth)


def _operation(name: str, message: SeenMessage, first_ns: int, *, is_clear: bool) -> Operation:
    answered_ns = message.answered_ns if is_clear else None
    return Operation(
        name=name,
        size_bytes=message.size_bytes,
        immediate=message.immediate,
        posted_ns=max(0, message.first_ns - first_ns),
        answer_ns=None if answered_ns is None else max(0, answered_ns - message.first_ns),
        complete=message.complete,
    )


def _depth(operations: Iterable[Operation]) -> int:
    """How many were outstanding at most, as far as answers show; those without one do not count as such."""
    waiting: list[int] = []
    most = 1
    for operation in operations:
        while waiting and waiting[0] <= operation.posted_ns:
            heappop(waiting)
        if operation.answer_ns is not None:
            heappush(waiting, operation.posted_ns + operation.answer_ns)
        most = max(most, len(waiting))
    return min(most, DEPTH_LIMIT)
