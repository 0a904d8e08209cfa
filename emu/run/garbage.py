"""Python's search for unused cycles of objects: seldom during a run, whose frames and events are in none."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

THRESHOLDS = (50_000, 20, 100)  # Python's own are 700, 10, 10: that searches all there is again and again


@contextmanager
def sought_seldom() -> Iterator[None]:
    """Meanwhile; afterwards as it was."""
    before = gc.get_threshold()
    if before[0]:  # else whoever called us wants none at all
        gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
