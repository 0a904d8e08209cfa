"""Percentiles by nearest rank, and memory that does not grow."""

from __future__ import annotations

import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.measure import values
from emu.measure.values import PERCENTILES, Values, nearest_rank


def filled(numbers: list[int]) -> Values:
    """Those values."""
    made = Values()
    for number in numbers:
        made.append(number)
    return made


@pytest.mark.parametrize(("thousandths", "rank"), [(500, 5), (900, 9), (990, 10), (999, 10), (1000, 10), (1, 1)])
def test_ranks_of_ten(thousandths: int, rank: int) -> None:
    assert nearest_rank(10, thousandths) == rank


@given(st.lists(st.integers(0, 10**18), min_size=1))
def test_at_least_that_share_does_not_exceed_a_percentile(numbers: list[int]) -> None:
    summary = filled(numbers).summary_ns()
    for name, thousandths in PERCENTILES.items():
        below = sum(number / 1000 <= summary[name] for number in numbers)
        assert below * 1000 >= thousandths * len(numbers)
    assert (summary["min"], summary["max"]) == (min(numbers) / 1000, max(numbers) / 1000)
    assert summary["mean"] == sum(numbers) / len(numbers) / 1000


def test_nothing_gives_zeros() -> None:
    assert set(Values().summary_ns().values()) == {0}


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 1000])
def test_what_was_put_in_a_file_is_merged_in_order(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "CHUNK", 64)
    monkeypatch.setattr(values, "READ_AHEAD", 16)
    numbers = [random.Random(count).randrange(10**12) for _ in range(count)]
    assert list(filled(numbers).ordered()) == sorted(numbers)


def test_half_a_million_values_take_no_more_memory_than_a_few() -> None:
    tracemalloc.start()
    made = Values()
    for number in range(500_000):
        made.append(number * 7919 % 1_000_003)
    summary = made.summary_ns()
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert summary["p50"] == pytest.approx(500, rel=0.01)
    assert peak_bytes < 8_000_000
