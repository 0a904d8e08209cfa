"""Summaries of many values: minimum, mean, and nearest-rank percentiles."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from emu.units import NS

PERCENTILES = {"p50": 500, "p90": 900, "p99": 990, "p999": 999}  # in thousandths


def nearest_rank(ordered: Sequence[int], thousandths: int) -> int:
    """The smallest value that at least that share of all values does not exceed."""
    rank = -(-len(ordered) * thousandths // 1000)
    return ordered[max(rank, 1) - 1]


def summary_ns(values_ps: array[int]) -> dict[str, float]:
    """min, mean, p50, p90, p99, p999 and max in nanoseconds; zeros where there is no value."""
    if not values_ps:
        return dict.fromkeys(("min", "mean", *PERCENTILES, "max"), 0)
    ordered = sorted(values_ps)
    summary = {"min": ordered[0] / NS, "mean": sum(ordered) / len(ordered) / NS}
    for name, thousandths in PERCENTILES.items():
        summary[name] = nearest_rank(ordered, thousandths) / NS
    summary["max"] = ordered[-1] / NS
    return summary
