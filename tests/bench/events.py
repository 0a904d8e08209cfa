"""Events for each hop of a data frame: a count, the same on any machine."""

from __future__ import annotations

from emu.run import Options, run
from tests.bench.figure import Figure
from tests.bench.traffic import all_to_all

LIMITS = (
    ("native", "none", 2.6),
    ("roce", "none", 2.6),
    ("native", "credits", 3.6),
    ("roce", "pfc", 3.1),
)
"""With flow control a port wakes at the end of each frame to free its buffer: one event more a hop. Credits have frames
of their own beside; PFC has three events at a switch (first bit in, out of the pipeline, wire free), a few for ACKs."""


def measure() -> list[Figure]:
    """One figure a kind of network and flow control."""
    return [_figure(*each) for each in LIMITS]


def _figure(profile: str, flow_control: str, limit: float) -> Figure:
    settings = f"fabric.flow_control={flow_control}", "fabric.congestion_control=none"
    cost = run(all_to_all(profile, "256KiB", 1, *settings), Options(wire="memory"))["run"]
    return Figure(
        f"events a data frame-hop, all-to-all, {profile}, {flow_control}",
        cost["events"] / cost["frame_hops"],
        limit,
        f"{cost['events']} events, {cost['frame_hops']} data and {cost['control_frame_hops']} control hops,"
        f" {cost['frame_hops_per_s']} hops/s in memory",
    )
