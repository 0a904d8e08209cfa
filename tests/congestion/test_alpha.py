"""The congestion estimate: worked out when asked for, it is what a clock would have made of it."""

from __future__ import annotations

import random

import pytest

from emu.congestion.alpha import ONE, Alpha


def test_at_a_notification_one_stays_one() -> None:
    alpha = Alpha(ONE, 1020, 55, at_cnp=True)
    alpha.start(0)
    alpha.on_cnp(0)
    assert alpha.at(54) == ONE
    assert alpha.at(55) == ONE * 255 // 256
    assert alpha.at(110) == ONE * 255 * 255 // 256 // 256


def test_a_notification_restarts_the_clock_where_it_is_an_update() -> None:
    alpha = Alpha(ONE // 2, 1020, 55, at_cnp=True)
    alpha.start(0)
    alpha.on_cnp(50)
    assert alpha.at(104) == (ONE // 2 * 255 + ONE) // 256
    assert alpha.at(105) == (ONE // 2 * 255 + ONE) // 256 * 255 // 256


def test_several_notifications_in_a_period_are_one_update_at_its_end() -> None:
    alpha = Alpha(ONE // 2, 1019, 10, at_cnp=False)
    alpha.start(0)
    for now_ps in (1, 2, 9):
        alpha.on_cnp(now_ps)
    assert alpha.at(9) == ONE // 2
    assert alpha.at(10) == (ONE // 2 * 1019 + ONE * 5) // 1024


def test_before_the_start_nothing_counts() -> None:
    alpha = Alpha(ONE, 1019, 10, at_cnp=False)
    alpha.on_cnp(3)
    assert alpha.at(10**9) == ONE
    alpha.start(10**9)
    alpha.start(10**9 + 5)  # runs already
    assert alpha.at(10**9 + 10) == ONE * 1019 // 1024


@pytest.mark.parametrize("at_cnp", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_asking_often_or_seldom_gives_the_same(at_cnp: bool, seed: int) -> None:
    numbers = random.Random(seed)
    often, seldom = Alpha(ONE, 1000, 7, at_cnp=at_cnp), Alpha(ONE, 1000, 7, at_cnp=at_cnp)
    now_ps = 0
    for alpha in (often, seldom):
        alpha.start(0)
    for _ in range(40):
        until_ps = now_ps + numbers.choice([3, 7, 50, 10_000])
        for between_ps in range(now_ps, until_ps):
            assert 0 <= often.at(between_ps) <= ONE
        now_ps = until_ps
        often.on_cnp(now_ps)
        seldom.on_cnp(now_ps)
        assert often.at(now_ps) == seldom.at(now_ps)


def test_it_ends_at_nothing_and_comes_back_in_step() -> None:
    alpha = Alpha(ONE, 1019, 10, at_cnp=False)
    alpha.start(0)
    assert alpha.at(10**9 + 3) == 0
    alpha.on_cnp(10**9 + 3)
    assert alpha.at(10**9 + 9) == 0
    assert alpha.at(10**9 + 10) == ONE * 5 // 1024
