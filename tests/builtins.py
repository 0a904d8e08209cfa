"""The built-in scenarios: which of them end how, and each with little traffic, for tests that look at every frame."""

from __future__ import annotations

from typing import Any

import pytest

from emu.scenario import builtin
from emu.scenario.load import load
from emu.scenario.model import Scenario

INCOMPLETE = frozenset(name for name in builtin.names() if name.startswith("ring-deadlock"))
"""Those that end with exit code 5, as they expect."""
LOUD = frozenset(("headroom-one-byte-short", "pause-storm")) | INCOMPLETE
"""Those with warnings of what they are there to show."""
LITTLE = {
    "all-to-all": ("size=16KiB",),
    "credit-starvation": ("size=64KiB",),
    "doorbell": ("count=20",),
    "pcie-bound": ("size=64KiB", "count=2"),
    "dcqcn": ("size=64KiB", "count=1"),
    "incast": ("size=32KiB",),
    "pfc-before": ("size=128KiB",),
    "ecn-before": ("size=128KiB",),
    "two-vls": ("size=64KiB",),
    "victim": ("size=64KiB",),
}
"""What makes the first traffic of a scenario little, by how the scenario's name begins."""


def small(name: str, *settings: str) -> Scenario:
    """A built-in, with less traffic where it has much, and then without expectations."""
    less = [f"traffic.0.{each}" for start, values in LITTLE.items() if name.startswith(start) for each in values]
    return load(name, [*less, *(["expect=[]"] if less else []), *settings])


def all_but_long(*long: str) -> list[Any]:
    """Every built-in, as parameters of a test; of these the test takes its time."""
    return [pytest.param(name, marks=pytest.mark.long) if name in long else name for name in builtin.names()]
