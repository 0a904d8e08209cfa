"""Which links a scenario has captured: their names, or all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import BeforeValidator, WithJsonSchema

from emu.scenario.field import TEXT_LIMIT, nearest, refuse, show
from emu.topology import link_names

EVERY_LINK = "all"
NEAR_LIMIT = 10_000  # names looked at for the nearest: more would take seconds


def _read_capture(value: object) -> object:
    if value == EVERY_LINK:
        return value
    if isinstance(value, str) or not isinstance(value, (list, tuple)):
        raise refuse(f"{show(value)} is no list of links: write [leaf0-h0], or all")
    for place, name in enumerate(value):
        if not isinstance(name, str) or not name or len(name) > TEXT_LIMIT:
            raise refuse(f"{show(name)} is no link's name: write it like leaf0-h0", place)
    return tuple(value)


Capture = Annotated[
    tuple[str, ...] | Literal["all"],
    BeforeValidator(_read_capture),
    WithJsonSchema({"anyOf": [{"const": EVERY_LINK}, {"type": "array", "items": {"type": "string"}}]}),
]


def check_capture(capture: tuple[str, ...] | str, ends: Iterable[tuple[str, str]]) -> None:
    """Refuse a name that no direction of a link between these pairs of nodes has."""
    if not capture or capture == EVERY_LINK:
        return
    pairs = list(ends)
    forward, backward = link_names(pairs), link_names([(b, a) for a, b in pairs])
    known = {*forward, *backward}
    near = [*forward, *backward][:NEAR_LIMIT]
    for place, name in enumerate(capture):
        if name not in known:
            raise refuse(f"unknown link {show(name)}{nearest(name, near)}", "capture", place)
