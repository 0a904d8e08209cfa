"""Each message of a replay: how long it took where it was captured, and how long here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from emu.report.table import count_text, size_text, table, time_text

Told = Mapping[str, Any]
SHOWN = 20  # messages


def replay_text(told: Told) -> str:
    """The first messages and the means, as text."""
    messages: Sequence[Told] = told["messages"]
    rows: list[tuple[str, ...]] = [("replayed", "bytes", "captured", "here", "captured / here", "visible after", "")]
    rows += [_row(message) for message in messages[:SHOWN]]
    lines = table(rows, left=(0, 6))
    if len(messages) > SHOWN:
        lines.append(f"  and {count_text(len(messages) - SHOWN, 'message')} more")
    both = [(each["captured_ns"], each["completion_ns"]) for each in messages]
    pairs = [(captured, here) for captured, here in both if captured is not None and here is not None]
    if pairs:
        captured, here = (sum(values) / len(pairs) for values in zip(*pairs, strict=True))
        lines.append(
            f"  mean of {count_text(len(pairs), 'message')} answered in both: {time_text(captured)} as captured,"
            f" first packet to answer; {time_text(here)} here, posting to completion"
        )
    ends = ", ".join(f"{end} is {host}" for end, host in told["endpoints"].items())
    return "\n".join([*lines, *([f"  {ends}"] if ends else [])])


def _row(message: Told) -> tuple[str, ...]:
    captured, here, visible = message["captured_ns"], message["completion_ns"], message["latency_ns"]
    remarks = [] if message["captured_whole"] else ["not whole in the capture"]
    if message["status"] != "SUCCESS":
        remarks.append(message["status"] or "not finished")
    return (
        message["operation"],
        size_text(message["size_bytes"]),
        time_text(captured) if captured is not None else "-",
        time_text(here) if here is not None else "-",
        f"{captured / here:.1f}" if captured is not None and here else "-",
        time_text(visible) if visible is not None else "-",
        ", ".join(remarks),
    )
