"""What held traffic back, as a person reads it: the p99 message, shares, deadlocks, and drops that must not be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from emu.report.table import count_text, time_text

Result = Mapping[str, Any]
DROPS = "LOSSLESS DROP"
LOUD = (DROPS, "DEADLOCK")  # warnings that begin so
PLACES = 6  # where frames were dropped: shown
RULE = "!" * 100


def alarms(result: Result) -> Iterator[str]:
    """Drops of a lossless class, and a deadlock that happened, between rules that catch the eye."""
    loud = [warning for warning in result["warnings"] if is_loud(warning)]
    drops = [warning for warning in loud if warning.startswith(DROPS)]
    lines = drops[:PLACES]
    if len(drops) > PLACES:
        rest = count_text(len(drops) - PLACES, "place")
        lines.append(f"{DROPS}: and at {rest} more, {count_text(result['drops']['lossless'], 'frame')} in all")
    lines += [warning for warning in loud if warning not in drops]
    if lines:
        yield RULE
        yield from (f"!!  {line}" for line in lines)
        yield RULE


def is_loud(warning: str) -> bool:
    """Whether a warning stands at the top already."""
    return warning.startswith(LOUD)


def waits(result: Result) -> Iterator[str]:
    """The p99 message in a sentence, and fairness."""
    if result["p99"]["sentence"]:
        yield f"  {result['p99']['sentence']}"
    yield from (f"  {line}" for line in fairness(result))


def fairness(result: Result) -> Iterator[str]:
    """Jain's index and why it is what it is; nothing of a single flow."""
    found = result["fairness"]
    counted = [flow for flow in result["flows"] if flow["window_bytes"] is not None]
    if found["jain"] is not None and len(counted) > 1:
        begin, end = map(time_text, found["window_ns"])
        yield f"Fairness (Jain) {found['jain']:.3f} over {count_text(len(counted), 'flow')}, from {begin} to {end}."
    elif found["jain"] is None and len(result["flows"]) > 1:
        yield "Fairness (Jain): none, as there was no moment at which all flows were active."
    if found["sentence"]:
        yield f"{found['sentence']}."
