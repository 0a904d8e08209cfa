"""The physical floor: when a message's last bit would be in if its frames were alone on the path.

The recurrences of the timing model (docs/timing.md), over integers; every measured message is held against them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


def transit_ps(hops: Sequence[Hop], frames_wire_bytes: Iterable[int]) -> int:
    """First bit out of the source NIC to last bit in, for frames that leave back to back."""
    last_out = [0] * len(hops)  # when each hop's wire is free again
    first = last = 0
    for wire_bytes in frames_wire_bytes:
        for number, hop in enumerate(hops):
            ser = serialization_ps(wire_bytes, hop.rate_bps)
            if number:
                before = hops[number - 1]
                slower = last - first > ser
                stores = before.stores or (before.stores_slow_to_fast and slower)
                first = last if stores else max(first, last - ser)
                first += before.propagation_ps + before.hop_latency_ps
                first = max(first, last_out[number])
            else:
                first = last_out[0]
            last = last_out[number] = first + ser
    return last_out[-1] + hops[-1].propagation_ps
