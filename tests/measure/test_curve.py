"""Curves of queues: the most in each step, in memory that does not grow."""

from __future__ import annotations

import random

from emu.measure.curve import POINTS, Curve, Curves
from emu.measure.series import Sample


def test_each_step_has_the_most_that_was_held_in_it() -> None:
    curve = Curve(10)
    curve.set(0, 0, 5)
    curve.set(12, 0, 9)
    curve.set(14, 0, 1)
    curve.set(45, 0, 2)
    curve.reach(59)
    assert curve.points == [5, 9, 1, 1, 2, 2]


def test_lanes_add_up() -> None:
    curve = Curve(10)
    curve.set(0, 0, 5)
    curve.set(1, 1, 7)
    curve.set(11, 0, 0)
    assert (curve.points, curve.level_bytes) == ([12, 12], 7)


def test_a_long_run_makes_it_coarser_and_no_longer() -> None:
    curve, numbers = Curve(10), random.Random(1)
    seen = []
    for time_ps in range(0, 10 * POINTS * 40, 10):
        level = numbers.randrange(1000)
        curve.set(time_ps, 0, level)
        seen.append(level)
        assert len(curve.points) <= POINTS
    assert max(curve.points) == max(seen)
    width = curve.step_ps // 10
    assert curve.points[1] == max(seen[width - 1 : 2 * width])  # with what was still held when the step began


def test_a_queue_that_was_never_seen_is_empty() -> None:
    curves = Curves(10)
    curves.take(Sample(0, "tx_bytes", "a-b", -1, 100))
    assert set(curves.of("a-b", 95).points) == {0}
    curves.take(Sample(0, "queue_bytes", "a-b", 0, 100))
    assert curves.of("a-b", 25).points == [100, 100, 100]
