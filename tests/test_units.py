"""Quantities with units: exact, bounded, and clear about what is wrong."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu import units
from emu.errors import ScenarioError


@pytest.mark.parametrize(
    ("text", "value_ps"),
    [("260ns", 260_000), ("1.5us", 1_500_000), ("0s", 0), ("4.096 us", 4_096_000), ("1e3ps", 1000), ("1ps", 1)],
)
def test_times(text: str, value_ps: int) -> None:
    assert units.parse_time_ps(text) == value_ps


@pytest.mark.parametrize(
    ("text", "value"), [("4KiB", 4096), ("4KB", 4000), ("1MiB", 1 << 20), ("1MB", 10**6), ("0B", 0), ("1.5KiB", 1536)]
)
def test_sizes(text: str, value: int) -> None:
    assert units.parse_size_bytes(text) == value


@pytest.mark.parametrize(("text", "value"), [("400Gbps", 400 * 10**9), ("1.25Gbps", 125 * 10**7), ("1bps", 1)])
def test_rates(text: str, value: int) -> None:
    assert units.parse_rate_bps(text) == value


@pytest.mark.parametrize(("text", "value"), [("3m", 3000), ("10km", 10**7), ("5mm", 5), ("0m", 0)])
def test_lengths(text: str, value: int) -> None:
    assert units.parse_length_mm(text) == value


@pytest.mark.parametrize(("text", "share"), [("20%", Fraction(1, 5)), ("0.2", Fraction(1, 5)), (1, Fraction(1))])
def test_shares(text: object, share: Fraction) -> None:
    assert units.parse_fraction(text) == share


@pytest.mark.parametrize(
    "bad", ["260", 260, "-1ns", "nan", "inf", "infns", "1.5ps", "9e99s", "5m", "", "ns", None, True]
)
def test_what_is_no_time_is_refused_in_one_line(bad: object) -> None:
    with pytest.raises(ScenarioError) as caught:
        units.parse_time_ps(bad)
    assert "\n" not in str(caught.value)


def test_a_bare_number_is_told_the_units() -> None:
    with pytest.raises(ScenarioError, match="ps, ns, us, ms, s"):
        units.parse_time_ps(260)


@pytest.mark.parametrize("bad", ["0Gbps", "-1Gbps", "9e99Gbps", "400", "400GB"])
def test_what_is_no_rate_is_refused(bad: str) -> None:
    with pytest.raises(ScenarioError):
        units.parse_rate_bps(bad)


@given(st.integers(0, 10**15))
def test_formatted_sizes_read_back(value: int) -> None:
    assert units.parse_size_bytes(units.format_size(min(value, units.SIZE_LIMIT_BYTES))) == min(
        value, units.SIZE_LIMIT_BYTES
    )


@given(st.integers(0, 10**10))
def test_formatted_lengths_read_back(value: int) -> None:
    assert units.parse_length_mm(units.format_length(value)) == value


@given(st.text(max_size=20))
def test_any_text_is_a_quantity_or_a_scenario_error(text: str) -> None:
    for parse in (units.parse_time_ps, units.parse_size_bytes, units.parse_rate_bps, units.parse_length_mm):
        try:
            assert parse(text) >= 0
        except ScenarioError:
            continue
