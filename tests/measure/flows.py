"""Flows that stand in for queue pairs: two ends, a kind, and what their peer has received."""

from __future__ import annotations


class FakeFlow:
    """A FlowKey whose `received_bytes` a test sets; how often it was read is counted."""

    def __init__(self, source: str, destination: str = "h0", kind: str = "incast", expected: int = 1) -> None:
        self.source = source
        self.destination = destination
        self.kind = kind
        self.expected = expected
        self.qp_num = 17
        self.now_bytes = 0
        self.reads = 0

    @property
    def received_bytes(self) -> int:
        self.reads += 1
        return self.now_bytes
