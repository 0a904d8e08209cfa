"""The slowest messages of a run, so that one sentence can say what the p99 message waited for."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappush, heappushpop
from typing import Any, NamedTuple

from emu.frame import Message
from emu.measure.flow import FlowKey
from emu.measure.values import nearest_rank
from emu.parts import PARTS, unpack
from emu.units import NS, TIME_UNITS, format_size

KEPT = 4096
P99 = 990  # thousandths
EXACT_UP_TO = 100 * KEPT - 1  # messages: of so many, the p99 is the KEPT-th slowest
LEAST_SHARE = 0.01  # of its latency; a part below that is not worth a word
WAITS = {"credits": "waiting for credits", "pfc": "waiting while paused", "none": "waiting for flow control"}
WORDS = {
    "host": "on the host's path to the NIC",
    "nic": "in the NICs",
    "serialization": "on the wire itself",
    "propagation": "in cables",
    "switching": "in switches",
    "queueing": "behind other frames",
}


class Slow(NamedTuple):
    """One message. Times in picoseconds."""

    latency_ps: int
    sequence: int  # of its delivery, so that no two compare equal
    parts: int  # of its latency: emu/parts.py
    size_bytes: int
    floor_ps: int
    retransmitted: int  # frames sent again
    flow: FlowKey


class Slowest:
    """A heap of the slowest, KEPT of them at most."""

    __slots__ = ("_heap", "count")

    def __init__(self) -> None:
        self._heap: list[Slow] = []
        self.count = 0

    def add(self, message: Message, latency_ps: int, floor_ps: int) -> None:
        """One more message was delivered."""
        self.count += 1
        heap = self._heap
        if len(heap) == KEPT and latency_ps <= heap[0].latency_ps:
            return
        size_bytes, retransmitted = message.size_bytes, message.retransmitted
        slow = Slow(latency_ps, self.count, message.parts, size_bytes, floor_ps, retransmitted, message.flow)
        if len(heap) < KEPT:
            heappush(heap, slow)
        else:
            heappushpop(heap, slow)

    @property
    def is_exact(self) -> bool:
        """Whether the message at the p99 is still kept."""
        return self.count <= EXACT_UP_TO

    def p99(self) -> Slow | None:
        """The message whose latency is the p99 by nearest rank; of too many, the fastest that is kept."""
        if not self._heap:
            return None
        from_the_slowest = min(self.count - nearest_rank(self.count, P99) + 1, len(self._heap))
        return sorted(self._heap)[-from_the_slowest]


def entry(slowest: Slowest, flow_control: str, congestion_control: str = "none") -> dict[str, Any]:
    """The `p99` key of docs/results.md; zeros and empty texts where no message was delivered."""
    slow = slowest.p99()
    parts = dict(zip(PARTS, unpack(slow.parts if slow else 0), strict=True))
    parts["queueing"] += parts.pop("control_frame_wait")
    parts = {"host": 0, **parts}
    return {
        "latency_ns": slow.latency_ps / NS if slow else 0.0,
        "src": slow.flow.source if slow else "",
        "dst": slow.flow.destination if slow else "",
        "exact": slowest.is_exact,
        "breakdown_ns": {name: part / NS for name, part in {**parts, "total": sum(parts.values())}.items()},
        "sentence": _sentence(slow, parts, slowest, _words(slow, flow_control, congestion_control)) if slow else "",
    }


def _sentence(slow: Slow, parts: Mapping[str, int], slowest: Slowest, words: Mapping[str, str]) -> str:
    shares = sorted(((part / max(slow.latency_ps, 1), words[name]) for name, part in parts.items()), reverse=True)
    where = ", ".join(f"{share * 100:.0f} % {what}" for share, what in shares if share >= LEAST_SHARE)
    which = "p99 message" if slowest.is_exact else f"{KEPT:,}th slowest message"
    text = (
        f"The {which} ({slow.flow.source} to {slow.flow.destination or 'where each datagram went'},"
        f" {format_size(slow.size_bytes)}) took {_time(slow.latency_ps)}{_times(slow)}: {where}."
    )
    return text if slowest.is_exact else f"{text} (Of {slowest.count:,} messages the p99 itself is no longer known.)"


def _times(slow: Slow) -> str:
    """Of its floor; nothing where none is known, as of datagrams."""
    if not slow.floor_ps:
        return ""
    if slow.latency_ps == slow.floor_ps:
        return ", its physical floor"
    return f", {slow.latency_ps / slow.floor_ps:.1f} times its {_time(slow.floor_ps)} floor"


def _words(slow: Slow, flow_control: str, congestion_control: str) -> dict[str, str]:
    """What each part of its time was. A NIC's has waits of its own making in it, too."""
    own = [f"pacing by {congestion_control}"] if congestion_control != "none" else []
    if slow.retransmitted:
        own.append(f"sending {slow.retransmitted:,} frame{'s' if slow.retransmitted > 1 else ''} again")
    nic = WORDS["nic"] + (f" ({' and '.join(own)} included)" if own else "")
    return {**WORDS, "nic": nic, "flow_control_wait": WAITS.get(flow_control, WAITS["none"])}


def _time(value_ps: int) -> str:
    """Four digits that matter, in a readable unit."""
    unit, scale = next(((unit, scale) for unit, scale in reversed(TIME_UNITS.items()) if value_ps >= scale), ("ps", 1))
    return f"{value_ps / scale:.4g} {unit}"
