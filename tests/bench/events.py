"""Events for each hop of a data frame: a count, the same on any machine."""

from __future__ import annotations

from emu.run import Options, run
from tests.bench.figure import Figure
from tests.bench.traffic import all_to_all

LIMIT = 2.6


def measure() -> list[Figure]:
    """One figure a kind of network."""
    figures = []
    for profile in ("native", "roce"):
        cost = run(all_to_all(profile), Options(wire="memory"))["run"]
        detail = f"{cost['events']} events, {cost['frame_hops']} data and {cost['control_frame_hops']} control hops,"
        figures.append(
            Figure(
                f"events a data frame-hop, all-to-all, {profile}",
                cost["events"] / cost["frame_hops"],
                LIMIT,
                f"{detail} {cost['frame_hops_per_s']} hops/s in memory",
            )
        )
    return figures
