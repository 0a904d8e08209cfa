"""One flow as a capture shows it: what one queue pair sent to another, on one interface, counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from emu.capture.messages import RequestStream


class FlowKey(NamedTuple):
    """What tells flows apart. A reliable connection does not say its source queue pair."""

    interface: str
    network: str
    source: str
    destination: str
    destination_qp: int
    source_qp: int | None


@dataclass(slots=True)
class Spread:
    """Least, mean and most of a series of nanoseconds, without keeping it."""

    count: int = 0
    total: int = 0
    least: int = 0
    most: int = 0

    def add(self, value: int) -> None:
        """One more."""
        self.least = min(self.least, value) if self.count else value
        self.most = max(self.most, value) if self.count else value
        self.count += 1
        self.total += value

    def summary(self) -> dict[str, Any]:
        """As JSON has it."""
        mean = self.total / self.count if self.count else 0
        return {"count": self.count, "min": self.least, "mean": mean, "max": self.most}


@dataclass(slots=True)
class Flow:
    """Counts of one flow, its messages on their way, and the flow whose answers it carries, once known."""

    key: FlowKey
    number: int  # from 1
    source_port: int | None
    first_ns: int
    last_ns: int = 0
    frames: int = 0
    frame_bytes: int = 0
    payload_bytes: int = 0
    opcodes: Counter[int] = field(default_factory=Counter)
    icrc_bad: int = 0
    vcrc_bad: int = 0
    refusals: Counter[int] = field(default_factory=Counter)  # NAKs and RNR NAKs, by what their AETHs say
    marked: int = 0  # CE, FECN or BECN
    messages: int = 0
    complete: int = 0
    message_bytes: int = 0
    duration: Spread = field(default_factory=Spread)
    answer: Spread = field(default_factory=Spread)
    stream: RequestStream | None = None
    answered: Flow | None = None  # the flow whose requests this one answers
    candidates: list[Flow] = field(default_factory=list)  # while that is not clear yet
    compared: int = 0  # of those that might have asked, how many have been candidates so far
    answers: Flow | None = None  # the flow that answers this one's requests
