"""One flow: a queue pair's messages to its peer, and what measurement needs to know of the queue pair."""

from __future__ import annotations

from typing import Protocol


class Flow:
    """One queue pair's messages to its peer. Times in picoseconds, -1 where there is none."""

    __slots__ = ("bytes", "failed", "finish_ps", "messages", "operation", "retransmitted", "size_bytes", "start_ps")

    def __init__(self) -> None:
        self.start_ps = -1
        self.finish_ps = -1  # the last message's data was visible
        self.messages = 0
        self.bytes = 0
        self.size_bytes = 0  # of each message; -1 where they differ
        self.operation = ""  # of each message; empty where they differ
        self.failed = 0
        self.retransmitted = 0


class FlowKey(Protocol):
    """What a message's `flow` is to measurement: something to group by, with two ends."""

    qp_num: int
    kind: str  # of the traffic that it belongs to
    expected: int  # messages it will post; 0: not known

    def __hash__(self) -> int: ...

    @property
    def source(self) -> str:
        """The host that sends."""

    @property
    def destination(self) -> str:
        """The host that receives."""

    @property
    def received_bytes(self) -> int:
        """Payload that its peer has accepted in order so far."""
