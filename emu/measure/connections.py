"""Connections made while a run goes on: how many, how long each took to make, and why some were not."""

from __future__ import annotations

from typing import Any

from emu.measure.values import Values

TOLD = 16  # failures of which the reason is kept


class Connections:
    """Adds up what `Taps.connection_settled` tells."""

    def __init__(self) -> None:
        self.setup_ps = Values()  # first REQ posted to ready to send
        self.failed = 0
        self.failures: list[str] = []

    def settled(self, source: str, destination: str, took_ps: int, why_not: str) -> None:
        """One is made, or (with a reason) is not."""
        if not why_not:
            self.setup_ps.append(took_ps)
            return
        self.failed += 1
        if len(self.failures) < TOLD:
            self.failures.append(f"{source} to {destination}: {why_not}")

    def entry(self) -> dict[str, Any]:
        """The `connections` key."""
        return {
            "made": self.setup_ps.count,
            "failed": self.failed,
            "setup_ns": self.setup_ps.summary_ns(),
            "failures": list(self.failures),
        }
