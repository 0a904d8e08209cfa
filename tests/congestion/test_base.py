"""Pacing, the registry, and what every rate control keeps to."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.congestion.base import RateControl, gap_ps
from emu.congestion.none import NoControl
from emu.congestion.registry import BY_NAME
from emu.units import US

LINE_BPS = 100 * 10**9
EVERY = [(name, preset) for name, presets in BY_NAME.items() for preset in presets]


def test_the_registry_has_the_names_of_the_scenario_file() -> None:
    assert {name: list(presets) for name, presets in BY_NAME.items()} == {
        "none": ["default"],
        "dcqcn": ["adapter", "paper"],
        "ib_cca": ["default"],
    }


@given(st.integers(1, 10_000), st.integers(10**6, 10**12))
def test_a_gap_is_rounded_up_to_a_picosecond(wire_bytes: int, rate_bps: int) -> None:
    exact = Fraction(wire_bytes * 8 * 10**12, rate_bps)
    assert 0 <= gap_ps(wire_bytes, rate_bps) - exact < 1


def test_without_control_the_rate_is_the_lines() -> None:
    control = NoControl(LINE_BPS)
    control.on_cnp(5)
    control.on_bytes_sent(10**9, 6)
    assert (control.rate_bps, control.cnps, control.on_timer(7)) == (LINE_BPS, 1, None)
    assert control.pace(4096, 1000) == 1000 + 4096 * 80


@pytest.mark.parametrize(("name", "preset"), EVERY)
def test_before_any_notification_a_flow_has_the_line(name: str, preset: str) -> None:
    control = BY_NAME[name][preset](LINE_BPS)
    control.on_bytes_sent(10**9, 10 * US)
    assert control.on_timer(500 * US) is None
    assert control.rate_bps == LINE_BPS
    assert control.pace(1250, 500 * US) == 500 * US + 100_000


Step = tuple[str, int, int]
steps = st.lists(
    st.tuples(st.sampled_from(["cnp", "bytes", "timer", "pace"]), st.integers(0, 700 * US), st.integers(64, 10**7)),
    max_size=60,
)


def play(control: RateControl, script: list[Step], *, eager: bool) -> list[tuple[int, int]]:
    """Rate and next start after each step; eager: the timer is served whenever it asks."""
    now_ps, seen = 0, []
    for what, delay_ps, size in script:
        before_ps, now_ps = now_ps, now_ps + delay_ps
        while eager and (due_ps := control.on_timer(before_ps)) is not None and due_ps < now_ps:
            before_ps = due_ps
        if what == "cnp":
            control.on_cnp(now_ps)
        elif what == "bytes":
            control.on_bytes_sent(size, now_ps)
        elif what == "pace":
            control.pace(size, now_ps)
        next_ps = control.next_start_ps(now_ps)
        seen.append((control.rate_bps, next_ps))
    return seen


@pytest.mark.parametrize(("name", "preset"), EVERY)
@settings(deadline=None, max_examples=60)
@given(script=steps)
def test_when_the_timer_is_served_changes_nothing(name: str, preset: str, script: list[Step]) -> None:
    make = BY_NAME[name][preset]
    lazy = play(make(LINE_BPS), script, eager=False)
    assert lazy == play(make(LINE_BPS), script, eager=True)
    assert all(0 < rate_bps <= LINE_BPS for rate_bps, _ in lazy)


@pytest.mark.parametrize(("name", "preset"), [each for each in EVERY if each[0] != "none"])
def test_a_lower_rate_moves_the_next_start_that_was_promised(name: str, preset: str) -> None:
    control = BY_NAME[name][preset](LINE_BPS)
    promised_ps = control.pace(125_000, 0)
    control.on_cnp(1 * US)
    assert control.next_start_ps(5 * US) > promised_ps == 10 * US
