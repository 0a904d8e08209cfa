"""Nearest-rank percentiles."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.measure.percentile import nearest_rank, summary_ns


@pytest.mark.parametrize(("thousandths", "value"), [(500, 5), (900, 9), (990, 10), (999, 10), (1000, 10), (1, 1)])
def test_of_one_to_ten(thousandths: int, value: int) -> None:
    assert nearest_rank(range(1, 11), thousandths) == value


@given(st.lists(st.integers(0, 10**9), min_size=1), st.integers(1, 1000))
def test_at_least_that_share_does_not_exceed_it(values: list[int], thousandths: int) -> None:
    rank = nearest_rank(sorted(values), thousandths)
    assert sum(value <= rank for value in values) * 1000 >= thousandths * len(values)
    assert sum(value < rank for value in values) * 1000 < thousandths * len(values)


def test_a_summary_is_in_nanoseconds() -> None:
    summary = summary_ns(array("q", [1500, 500, 1000]))
    assert summary == {"min": 0.5, "mean": 1.0, "p50": 1.0, "p90": 1.5, "p99": 1.5, "p999": 1.5, "max": 1.5}


def test_nothing_gives_zeros() -> None:
    assert set(summary_ns(array("q")).values()) == {0}
