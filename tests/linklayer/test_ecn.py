"""Marking: never, always, and between them with the probability of the curve."""

from __future__ import annotations

import random
from fractions import Fraction
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.errors import ScenarioError
from emu.linklayer.ecn import EcnConfig, Marker

KB = 1000
CURVE = EcnConfig(kmin_bytes=800 * KB, kmax_bytes=3200 * KB, pmax=Fraction(1, 5))
FRAMES = 20_000
SIGMAS = 5  # one wrong alarm in two million, were the seed not fixed


def marker(config: EcnConfig = CURVE, seed: str = "1/ecn") -> Marker:
    return Marker(config, random.Random(seed))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((801, 800, Fraction(1)), "Kmin, 801 bytes, lies above Kmax, 800"),
        ((-1, 800, Fraction(1)), "Kmin is -1"),
        ((0, 0, Fraction(101, 100)), "Pmax is 101/100"),
        ((0, 0, Fraction(-1, 100)), "Pmax is -1/100"),
    ],
)
def test_curves_that_make_no_sense_are_refused(values: tuple[int, int, Fraction], message: str) -> None:
    kmin, kmax, pmax = values
    with pytest.raises(ScenarioError, match=message):
        EcnConfig(kmin_bytes=kmin, kmax_bytes=kmax, pmax=pmax)


@pytest.mark.parametrize(
    ("queue", "probability"),
    [
        (0, 0),
        (800 * KB, 0),
        (800 * KB + 1, Fraction(1, 12_000_000)),
        (2000 * KB, Fraction(1, 10)),
        (3200 * KB, Fraction(1, 5)),
        (3200 * KB + 1, 1),
    ],
)
def test_the_curve(queue: int, probability: Fraction) -> None:
    assert CURVE.probability(queue) == probability


@pytest.mark.parametrize("queue", [800 * KB, 900 * KB, 1400 * KB, 2000 * KB, 2900 * KB, 3200 * KB, 3200 * KB + 1])
def test_as_many_are_marked_as_the_curve_says(queue: int) -> None:
    marks = marker()
    count = sum(marks.marks(queue) for _ in range(FRAMES))
    probability = float(CURVE.probability(queue))
    assert abs(count - FRAMES * probability) <= SIGMAS * sqrt(FRAMES * probability * (1 - probability))
    assert marks.marked == count


def test_the_bounds_would_notice_a_curve_that_is_a_little_off() -> None:
    marks = marker(EcnConfig(kmin_bytes=800 * KB, kmax_bytes=3200 * KB, pmax=Fraction(1, 4)))
    count = sum(marks.marks(2000 * KB) for _ in range(FRAMES))
    probability = float(CURVE.probability(2000 * KB))
    assert abs(count - FRAMES * probability) > SIGMAS * sqrt(FRAMES * probability * (1 - probability))


@given(
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.fractions(0, 1, max_denominator=10**6),
    st.lists(st.integers(0, 3 * 10**6), max_size=50),
)
def test_numbers_are_drawn_between_kmin_and_kmax_only_and_compared_exactly(
    kmin: int, width: int, pmax: Fraction, queues: list[int]
) -> None:
    config = EcnConfig(kmin_bytes=kmin, kmax_bytes=kmin + width, pmax=pmax)
    marks, numbers = marker(config), random.Random("1/ecn")
    for queue in queues:
        expected = queue > kmin + width
        if kmin < queue <= kmin + width:
            whole = width * pmax.denominator
            expected = Fraction(numbers.randrange(whole), whole) < config.probability(queue)
        assert marks.marks(queue) == expected


def test_a_step_is_a_curve_too() -> None:
    marks = marker(EcnConfig(kmin_bytes=100, kmax_bytes=100, pmax=Fraction(0)))
    assert [marks.marks(queue) for queue in (99, 100, 101)] == [False, False, True]


def test_the_same_numbers_mark_the_same_frames_and_others_do_not() -> None:
    runs = [[each.marks(2500 * KB) for _ in range(200)] for each in (marker(), marker(), marker(seed="2/ecn"))]
    assert runs[0] == runs[1] != runs[2]


def test_the_probability_is_exact_where_it_is_coarse() -> None:
    marks, numbers = marker(EcnConfig(kmin_bytes=0, kmax_bytes=2, pmax=Fraction(1))), random.Random("1/ecn")
    assert [marks.marks(1) for _ in range(50)] == [numbers.randrange(2) < 1 for _ in range(50)]
    assert all(marks.marks(2) for _ in range(50))
