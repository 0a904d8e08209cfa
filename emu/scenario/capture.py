"""Which links a scenario has captured: their names, or all; those inside hosts where there are such."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from pydantic import BeforeValidator, WithJsonSchema

from emu.scenario.field import TEXT_LIMIT, nearest, refuse, show
from emu.scenario.host_path import PATHS
from emu.topology import link_names, pcie_link_names

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


def check_capture(
    capture: tuple[str, ...] | str, ends: Iterable[tuple[str, str]], hosts: Sequence[str] = (), path: str = "none"
) -> None:
    """Refuse a name that no direction of a link between these pairs of nodes has, nor of one inside these hosts.

    Hosts have links inside where there is a `path` through them.
    """
    if not capture or capture == EVERY_LINK:
        return
    pairs = list(ends)
    names = [*link_names(pairs), *link_names([(b, a) for a, b in pairs])]
    inside = [name for host in hosts for both in pcie_link_names(host) for name in both]
    if path != "none":
        names += inside
    known, within = set(names), set(inside)
    for place, name in enumerate(capture):
        if name in known:
            continue
        if name in within:
            raise refuse(
                f"{show(name)} is a link inside a host, and host.path is none: frames start at the NIC;"
                f" set path to {', '.join(PATHS)}",
                *("capture", place),
            )
        raise refuse(f"unknown link {show(name)}{nearest(name, names[:NEAR_LIMIT])}", "capture", place)
