"""The physical floor: when a message's last bit would be in if its frames were alone on the path.

The recurrences of the timing model (docs/timing.md), over integers; every measured message is held against them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from emu.units import SECOND


class Hop(NamedTuple):
    """One link of a path and what its far end does. Times in picoseconds; the last hop's far end is the NIC."""

    rate_bps: int
    propagation_ps: int
    hop_latency_ps: int
    stores: bool  # the far end is a store-and-forward switch
    stores_slow_to_fast: bool  # the far end is cut-through, but stores what goes on to a faster link


def serialization_ps(wire_bytes: int, rate_bps: int) -> int:
    """Wire bytes times the time of one byte, rounded up to a whole picosecond."""
    return -(-wire_bytes * 8 * SECOND // rate_bps)


Runs = Sequence[tuple[int, int]]
"""Frames by their bytes on the wire, and how many of each follow one another."""


class Transit:
    """Frames one after the other on a path of their own. Times in picoseconds since the first bit left the source."""

    def __init__(self, hops: Sequence[Hop]) -> None:
        self._hops = hops
        self._last_out = [0] * len(hops)  # when the last bit has left each egress

    @property
    def last_in_ps(self) -> int:
        """When the last frame's last bit is in at the destination."""
        return self._last_out[-1] + self._hops[-1].propagation_ps

    def message(self, runs: Runs) -> None:
        """Send the frames of one message."""
        for wire_bytes, count in runs:
            self.repeat(lambda size=wire_bytes: self.frame(size), count)  # type: ignore[misc]

    def repeat(self, send: Callable[[], None], times: int) -> None:
        """Do `send()` that often; once each adds the same at every egress, the rest is a multiplication.

        Not while an egress adds less than the one before it: what waits there grows less, and when it is gone it adds
        more.
        """
        steady, added = 0, [0]
        for done in range(1, times + 1):
            before = list(self._last_out)
            send()
            before, added = added, [after - since for after, since in zip(self._last_out, before, strict=True)]
            steady = steady + 1 if added == before else 0
            if steady > 2 * len(self._hops) and all(near <= far for near, far in pairwise(added)):
                rest = times - done
                self._last_out = [since + rest * more for since, more in zip(self._last_out, added, strict=True)]
                return

    def frame(self, wire_bytes: int) -> None:
        """Send one frame: F and L of the timing model at every egress."""
        first = last = 0
        for number, hop in enumerate(self._hops):
            ser = serialization_ps(wire_bytes, hop.rate_bps)
            if number:
                before = self._hops[number - 1]
                stores = before.stores or (before.stores_slow_to_fast and last - first > ser)
                first = last if stores else max(first, last - ser)
                first += before.propagation_ps + before.hop_latency_ps
            first = max(first, self._last_out[number])
            last = self._last_out[number] = first + ser


def transit_ps(hops: Sequence[Hop], message: Runs, messages: int = 1) -> int:
    """First bit out of the source NIC to last bit in, for messages whose frames leave back to back."""
    transit = Transit(hops)
    transit.repeat(lambda: transit.message(message), messages)
    return transit.last_in_ps
