"""One message's life as a sequence diagram in plain text: time runs down, a column each for who takes part."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

COLUMN = 9  # characters between two lifelines
NEAR = {"h0.gpu": "gpu", "h0.cpu": "cpu", "h0.nic": "nic", "network": "network"}
FAR = {"h1.nic": "far nic", "h1.cpu": "far cpu", "h1.gpu": "far gpu"}
MAY_BE_MISSING = "h1.cpu"  # only there where it takes part
PACKET = re.compile(r"(MWr|MRd|CplD) (\d+) B: (.*)")
FRAME = re.compile(r"(.*), (\d+) B of wire")
LEGEND = (
    "Time runs down, in ns since the message was posted. ---> a packet, as it leaves; * what a part does by itself."
    " Like packets share a line."
)

Step = Mapping[str, Any]


def diagram(steps: Sequence[Step]) -> Iterator[str]:
    """Its lines, the heads of the columns first."""
    names = {**NEAR, **FAR}
    if not any(MAY_BE_MISSING in (step["who"], step["where"]) for step in steps):
        del names[MAY_BE_MISSING]
    places = {name: place for place, name in enumerate(names)}
    yield (f"{'ns':>9}  " + "".join(title.center(COLUMN) for title in names.values())).rstrip()
    for first, text in _grouped(steps):
        lane = _lane(places.get(first["who"]), places.get(first["where"]), len(places))
        yield f"{first['at_ns']:>9.1f}  {lane}  {text}".rstrip()


def _grouped(steps: Sequence[Step]) -> Iterator[tuple[Step, str]]:
    """Packets of one kind, for one purpose, from and to the same ends, told of together where the first leaves."""
    groups: dict[tuple[str, ...], list[Step]] = {}
    for number, step in enumerate(steps):
        groups.setdefault(_alike(step, number), []).append(step)
    for group in groups.values():
        yield group[0], group[0]["what"] if len(group) == 1 else _together(group)


def _alike(step: Step, number: int) -> tuple[str, ...]:
    packet = PACKET.fullmatch(step["what"])
    if packet is not None:
        return step["who"], step["where"], packet[1], packet[3]
    if FRAME.fullmatch(step["what"]) is not None:
        return step["who"], step["where"], "ACK" if "Acknowledge" in step["what"] else "data"
    return (str(number),)


def _together(group: Sequence[Step]) -> str:
    first, last = group[0]["what"], group[-1]["what"]
    until = f"{group[-1]['at_ns']:.1f}"
    packet = PACKET.fullmatch(first)
    if packet is not None:
        total = sum(int(found[2]) for step in group if (found := PACKET.fullmatch(step["what"])) is not None)
        return f"{len(group):,} {packet[1]}, {total:,} B: {packet[3]} (to {until})"
    frames = [found for step in group if (found := FRAME.fullmatch(step["what"])) is not None]
    total = sum(int(found[2]) for found in frames)
    names = frames[0][1] if first == last else f"{frames[0][1]} to {frames[-1][1].rpartition(' ')[2]}"
    return f"{len(group):,} frames, {names}, {total:,} B of wire (to {until})"


def _lane(here: int | None, there: int | None, count: int) -> str:
    cells = [" "] * (COLUMN * count)
    middles = [COLUMN * place + COLUMN // 2 for place in range(count)]
    for middle in middles:
        cells[middle] = "|"
    if here is not None and (there is None or there == here):
        cells[middles[here]] = "*"
    elif here is not None and there is not None:
        start, end = sorted((middles[here], middles[there]))
        for place in range(start + 1, end):
            cells[place] = "-"
        cells[middles[there] + (-1 if there > here else 1)] = ">" if there > here else "<"
    return "".join(cells)
