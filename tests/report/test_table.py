"""Columns line up; numbers keep four digits that matter."""

from __future__ import annotations

import pytest

from emu.report.table import count_text, share_text, size_text, table, time_text


def test_columns_line_up() -> None:
    rows = [("size", "native"), ("64B", "1.000 us"), ("1MiB", "3")]
    assert table(rows) == ["  size    native", "  64B   1.000 us", "  1MiB         3"]
    assert table(rows, left=(1,), indent=0) == ["size  native", " 64B  1.000 us", "1MiB  3"]
    assert table([]) == []


def test_rows_may_be_short() -> None:
    assert table([("a", "b"), ("cc",)], indent=0) == ["a   b", "cc"]


@pytest.mark.parametrize(
    ("value_ns", "text"),
    [
        (0, "0 ns"),
        (0.02, "0.020 ns"),
        (82.92, "82.92 ns"),
        (99.996, "100.0 ns"),
        (942.92, "942.9 ns"),
        (999.94, "999.9 ns"),
        (999.96, "1.000 us"),
        (1963.88, "1.964 us"),
        (22_010, "22.01 us"),
        (4.3e12, "4300.0 s"),
        (-1500, "-1.500 us"),
    ],
)
def test_times(value_ns: float, text: str) -> None:
    assert time_text(value_ns) == text


def test_shares_and_counts() -> None:
    assert share_text(0.5199) == "52.0 %"
    assert [count_text(number, "hop") for number in (0, 1, 1024)] == ["0 hops", "1 hop", "1,024 hops"]
    assert count_text(2, "switch", "switches") == "2 switches"


@pytest.mark.parametrize(
    ("value_bytes", "text"),
    [(0, "0B"), (1023, "1023B"), (98_304, "96KiB"), (320_000 << 10, "312.5MiB"), (3 << 40, "3TiB")],
)
def test_sizes(value_bytes: int, text: str) -> None:
    assert size_text(value_bytes) == text
