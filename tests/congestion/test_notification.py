"""The notification point: one CNP for the first marked frame, then none too soon."""

from __future__ import annotations

import random

import pytest

from emu.congestion.notification import MIN_TIME_BETWEEN_CNPS_PS, NotificationPoint
from emu.errors import ScenarioError
from emu.units import US


def test_the_presets() -> None:
    assert MIN_TIME_BETWEEN_CNPS_PS == {"adapter": 4 * US, "paper": 50 * US}


def test_the_first_is_answered_and_then_none_for_the_interval() -> None:
    point = NotificationPoint(4 * US)
    assert point.on_marked("a", 0)
    assert not point.on_marked("a", 4 * US - 1)
    assert point.on_marked("a", 4 * US)
    assert not point.on_marked("a", 5 * US)
    assert (point.marked, point.sent, point.suppressed) == (4, 2, 2)


def test_flows_are_paced_each_on_its_own() -> None:
    point = NotificationPoint(50 * US)
    assert [point.on_marked(flow, 1) for flow in ("a", "b", "a", ("h0", 7))] == [True, True, False, True]


def test_without_an_interval_every_marked_frame_is_answered() -> None:
    point = NotificationPoint(0)
    assert all(point.on_marked(1, 10) for _ in range(3))


def test_a_negative_interval_is_refused() -> None:
    with pytest.raises(ScenarioError, match="not negative"):
        NotificationPoint(-1)


def test_each_is_the_first_marked_frame_after_the_interval() -> None:
    numbers, point, next_ps = random.Random(4), NotificationPoint(50), [0] * 5
    for now_ps in sorted(numbers.randrange(20_000) for _ in range(5000)):
        flow = numbers.randrange(5)
        due = now_ps >= next_ps[flow]
        assert point.on_marked(flow, now_ps) == due
        if due:
            next_ps[flow] = now_ps + 50
    assert 1000 < point.sent == 5000 - point.suppressed < 2000
