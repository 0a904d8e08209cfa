"""A curve in one line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from emu.report.spark import SHADES, sparkline


def test_the_highest_is_darkest_and_nothing_is_blank() -> None:
    assert sparkline([0, 1, 50, 100]) == " .+@"
    assert sparkline([0, 0]) == "  "
    assert sparkline([]) == ""


def test_many_values_share_a_column_and_the_largest_shows() -> None:
    assert sparkline([0] * 99 + [5], width=10) == " " * 9 + "@"
    assert sparkline([9, 0, 0, 0, 0, 0], width=3) == "@  "


@given(st.lists(st.integers(0, 10**9), max_size=500), st.integers(1, 80))
def test_it_is_as_wide_as_asked_and_shows_whatever_is_there(values: list[int], width: int) -> None:
    line = sparkline(values, width)
    assert len(line) == min(width, len(values))
    assert set(line) <= set(SHADES)
    assert (line.strip() != "") == any(values)
