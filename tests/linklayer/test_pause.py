"""Pausing over time: quanta, response, reloading, cancelling, and being told again before it is over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.errors import InvariantBroken, ScenarioError
from emu.linklayer.pause import MAX_QUANTA, PauseConfig, PauseSchedule, PauseTimer, quanta_ps
from emu.units import NS, US

G = 10**9
ALL = (1 << 8) - 1


@pytest.mark.parametrize(
    ("rate", "quantum_ps", "longest_ps"),
    [
        (10 * G, 51_200, 3_355_392_000),
        (100 * G, 5_120, 335_539_200),
        (400 * G, 1_280, 83_884_800),
        (800 * G, 640, 41_942_400),
    ],
)
def test_a_quantum_is_512_bit_times_of_that_link(rate: int, quantum_ps: int, longest_ps: int) -> None:
    assert quanta_ps(1, rate) == quantum_ps
    assert quanta_ps(MAX_QUANTA, rate) == longest_ps
    timer = PauseTimer(rate)
    timer.on_quanta(MAX_QUANTA, 7)
    assert timer.until_ps == 7 + longest_ps


@given(st.integers(1, MAX_QUANTA), st.integers(1, 10**12), st.integers(0, 10**15))
def test_the_timer_rounds_as_the_arithmetic_does(quanta: int, rate: int, now: int) -> None:
    timer = PauseTimer(rate)
    timer.on_quanta(quanta, now)
    assert timer.until_ps - now == quanta_ps(quanta, rate)
    assert 0 <= (timer.until_ps - now) * rate - quanta * 512 * 10**12 < rate


def starts(timer: PauseTimer, *times: int) -> list[bool]:
    return [timer.may_start(time) for time in times]


def test_a_pause_is_obeyed_after_the_response_time_and_runs_out() -> None:
    timer = PauseTimer(100 * G, response_ps=1000)
    assert starts(timer, 0, 100) == [True, True]
    timer.on_quanta(1, 100)  # 5,120 ps
    assert starts(timer, 100, 1099, 1100, 5219, 5220) == [True, True, False, False, True]
    assert [timer.is_pending(time) for time in (100, 5219, 5220)] == [True, True, False]
    assert [timer.paused_ps(time) for time in (100, 1100, 2000, 5220, 9000)] == [0, 0, 900, 4120, 4120]


def test_xon_ends_it_at_once_or_after_its_own_response_time() -> None:
    timer = PauseTimer(100 * G)
    timer.on_quanta(10, 0)
    timer.on_quanta(0, 3000)
    assert starts(timer, 2999, 3000) == [False, True]
    assert timer.paused_ps(9000) == 3000
    slow = PauseTimer(100 * G, resume_ps=500)
    slow.on_quanta(10, 0)
    slow.on_quanta(0, 3000)
    assert starts(slow, 3499, 3500) == [False, True]
    late = PauseTimer(100 * G, resume_ps=500)
    late.on_quanta(1, 0)
    late.on_quanta(0, 5000)
    assert late.until_ps == 5120  # it would have been over before


def test_xon_before_the_response_time_cancels_the_xoff() -> None:
    timer = PauseTimer(100 * G, response_ps=1000, resume_ps=500)
    timer.on_quanta(10, 0)
    timer.on_quanta(0, 999)
    assert starts(timer, 999, 1000, 1001, 51_199) == [True] * 4
    assert timer.paused_ps(60_000) == 0


def test_a_second_xoff_reloads_the_timer_both_ways() -> None:
    timer = PauseTimer(100 * G, response_ps=1000)
    timer.on_quanta(2, 0)
    timer.on_quanta(2, 5000)
    assert starts(timer, 5000, 5500, 15_239, 15_240) == [False, False, False, True]  # no gap for a response time
    assert timer.paused_ps(20_000) == 15_240 - 1000
    timer.on_quanta(10, 20_000)
    timer.on_quanta(1, 30_000)
    assert timer.until_ps == 35_120
    assert timer.paused_ps(40_000) == 14_240 + 14_120


def test_xoff_before_xon_is_obeyed_leaves_the_pause_whole() -> None:
    timer = PauseTimer(100 * G, response_ps=1000, resume_ps=700)
    timer.on_quanta(10, 0)
    timer.on_quanta(0, 2000)
    timer.on_quanta(10, 2500)
    assert starts(timer, 2699, 2700, 3400, 53_699, 53_700) == [False, False, False, False, True]


def test_a_pause_shorter_than_the_response_time_never_begins() -> None:
    timer = PauseTimer(100 * G, response_ps=6000)
    timer.on_quanta(1, 0)
    assert starts(timer, 0, 5120, 6000, 7000) == [True] * 4
    assert timer.paused_ps(9000) == 0


def test_an_xon_that_nobody_waits_for_does_nothing() -> None:
    timer = PauseTimer(100 * G, resume_ps=700)
    timer.on_quanta(0, 100)
    assert timer.may_start(100)
    assert not timer.is_pending(100)


@given(
    st.lists(
        st.tuples(st.integers(1, 9000), st.one_of(st.just(0), st.integers(1, 3))),
        max_size=20,
    ),
    st.integers(0, 4000),
    st.integers(0, 400),
)
def test_the_time_paused_is_the_time_in_which_nothing_could_start(
    frames: list[tuple[int, int]], response: int, resume: int
) -> None:
    timer = PauseTimer(5_120 * G, response_ps=response, resume_ps=resume)  # a quantum is 100 ps
    now = refused = 0
    for gap, quanta in [*frames, (1000, 0)]:
        for _ in range(min(gap, 1000)):
            refused += not timer.may_start(now)
            now += 1
        timer.on_quanta(quanta, now)
        assert timer.paused_ps(now) == refused


def config(quanta: int = 100, guard_ps: int = 200 * NS) -> PauseConfig:
    return PauseConfig(rate_bps=100 * G, quanta=quanta, guard_ps=guard_ps)


@pytest.mark.parametrize("quanta", [0, -1, 65536])
def test_quanta_that_no_frame_can_carry_are_refused(quanta: int) -> None:
    with pytest.raises(ScenarioError, match=f"{quanta} quanta: 1 to 65535"):
        config(quanta)


def test_a_pause_too_short_to_refresh_is_refused() -> None:
    with pytest.raises(ScenarioError, match="too soon to be refreshed"):
        config(quanta=39)  # 199.68 ns
    assert config(quanta=40).refresh_ps == 4_800
    with pytest.raises(ScenarioError, match="guard of -1"):
        config(guard_ps=-1)
    for response, resume in ((-1, 0), (0, -1)):
        with pytest.raises(ScenarioError, match="after -1 ps"):
            PauseTimer(G, response_ps=response, resume_ps=resume)


def test_one_frame_says_all_that_changed_as_it_leaves() -> None:
    schedule = PauseSchedule(config())
    assert not schedule.is_due
    assert schedule.want(3, True)
    assert schedule.want(5, True)
    assert schedule.frame_out(0) == (0b101000, (0, 0, 0, 100, 0, 100, 0, 0))
    assert not schedule.is_due
    assert schedule.want(3, False)
    assert schedule.frame_out(10) == (0b101000, (0, 0, 0, 0, 0, 100, 0, 0))
    assert schedule.want(5, False)
    assert schedule.frame_out(20) == (0b100000, (0,) * 8)
    assert schedule.deadline_ps == -1
    assert schedule.frames == 3


def test_what_was_taken_back_before_it_left_is_not_said() -> None:
    schedule = PauseSchedule(config())
    assert schedule.want(3, True)
    assert not schedule.want(3, False)
    assert not schedule.is_due
    with pytest.raises(InvariantBroken, match="nothing to say"):
        schedule.frame_out(0)


def test_what_stays_paused_is_said_again_before_it_is_over() -> None:
    schedule = PauseSchedule(config())
    schedule.want(3, True)
    schedule.frame_out(1000)
    assert schedule.deadline_ps == 1000 + 512_000 - 200_000
    assert not schedule.on_deadline(schedule.deadline_ps - 1)
    assert schedule.on_deadline(schedule.deadline_ps)
    assert schedule.deadline_ps == -1
    schedule.frame_out(500_000)
    assert schedule.deadline_ps == 812_000
    schedule.want(3, False)
    schedule.frame_out(600_000)
    assert not schedule.on_deadline(900_000)


@given(st.integers(40, 3000), st.lists(st.integers(0, 200 * NS - 1), min_size=1, max_size=30), st.integers(0, 5 * US))
def test_refreshed_in_time_a_pause_has_no_gap(quanta: int, waits: list[int], flight: int) -> None:
    """Whatever a refresh waits for the wire, short of the guard."""
    schedule, timer = PauseSchedule(config(quanta)), PauseTimer(100 * G)
    schedule.want(3, True)
    now = 0
    for wait in waits:
        told, until = now + flight, timer.until_ps
        assert told <= until or until == 0
        timer.on_quanta(schedule.frame_out(now)[1][3], told)
        assert timer.from_ps == flight
        assert schedule.on_deadline(schedule.deadline_ps)
        now += config(quanta).refresh_ps + wait


def test_a_pause_that_is_wanted_again_before_its_end_has_left_is_still_refreshed() -> None:
    """The deadline comes while XON waits for the wire; then XOFF is wanted again, as the peer's pause runs out."""
    schedule = PauseSchedule(PauseConfig(rate_bps=400 * 10**9, quanta=1000, guard_ps=85_560))
    schedule.want(3, True)
    schedule.frame_out(0)
    assert schedule.want(3, False)
    assert schedule.on_deadline(schedule.deadline_ps)
    assert schedule.want(3, True)
    schedule.frame_out(schedule.deadline_ps + 1)
    assert schedule.deadline_ps > 0
