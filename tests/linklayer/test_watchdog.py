"""The PFC watchdog: detects a pause that does not end, acts, and restores; every move is in its table."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.errors import InvariantBroken, ScenarioError
from emu.linklayer.watchdog import MOVES, Action, Event, State, Watchdog, WatchdogConfig

DETECT, RESTORE = 200, 400


def watchdog(action: Action = Action.DROP) -> Watchdog:
    return Watchdog(WatchdogConfig(detection_ps=DETECT, restoration_ps=RESTORE, action=action))


@pytest.mark.parametrize("times", [(0, 1), (1, 0), (-1, 1)])
def test_times_are_above_zero(times: tuple[int, int]) -> None:
    with pytest.raises(ScenarioError, match="above 0"):
        WatchdogConfig(detection_ps=times[0], restoration_ps=times[1])


@pytest.mark.parametrize("action", Action)
def test_a_storm_is_detected_acted_upon_and_over(action: Action) -> None:
    dog = watchdog(action)
    assert dog.action is action
    assert (dog.on_event(Event.PAUSED, 1000), dog.deadline_ps, dog.acts) == (State.SUSPECT, 1000 + DETECT, False)
    assert dog.on_event(Event.PAUSED, 1150) is State.SUSPECT  # refreshed: no new lease
    assert dog.deadline_ps == 1000 + DETECT
    assert (dog.on_event(Event.TIMEOUT, 1200), dog.deadline_ps, dog.acts) == (State.STORM, -1, True)
    assert dog.on_event(Event.PAUSED, 5000) is State.STORM
    assert (dog.on_event(Event.RESUMED, 6000), dog.deadline_ps) == (State.RESTORING, 6000 + RESTORE)
    assert dog.acts
    assert (dog.on_event(Event.PAUSED, 6100), dog.deadline_ps) == (State.STORM, -1)
    assert dog.on_event(Event.RESUMED, 7000) is State.RESTORING
    assert (dog.on_event(Event.TIMEOUT, 7400), dog.deadline_ps, dog.acts) == (State.OPERATIONAL, -1, False)
    assert dog.storms == 1


def test_a_pause_that_ends_in_time_is_no_storm() -> None:
    dog = watchdog()
    for start in (0, 1000):
        dog.on_event(Event.PAUSED, start)
        assert dog.on_event(Event.RESUMED, start + DETECT - 1) is State.OPERATIONAL
    assert (dog.deadline_ps, dog.storms) == (-1, 0)


@pytest.mark.parametrize(("state", "event"), sorted(set(product(State, Event)) - set(MOVES), key=str))
def test_a_move_that_there_is_not_is_a_bug(state: State, event: Event) -> None:
    dog = watchdog()
    dog.state = state
    with pytest.raises(InvariantBroken, match=f"{state.value} has no {event.value}"):
        dog.on_event(event, 0)


def test_a_deadline_does_not_come_early() -> None:
    dog = watchdog()
    dog.on_event(Event.PAUSED, 0)
    with pytest.raises(InvariantBroken, match="no timeout at 199"):
        dog.on_event(Event.TIMEOUT, DETECT - 1)


@given(st.lists(st.tuples(st.sampled_from([Event.PAUSED, Event.RESUMED]), st.integers(0, 300)), max_size=40))
def test_it_acts_exactly_when_a_pause_lasted_and_has_not_been_gone_for_long(script: list[tuple[Event, int]]) -> None:
    dog, now = watchdog(), 0
    paused_since: int | None = None
    gone_since: int | None = 0
    acts = False
    for event, gap in script:
        for _ in range(gap):
            now += 1
            if now == dog.deadline_ps:
                dog.on_event(Event.TIMEOUT, now)
            acts = acts or (paused_since is not None and now - paused_since >= DETECT)
            acts = acts and not (gone_since is not None and now - gone_since >= RESTORE)
            assert dog.acts == acts
        dog.on_event(event, now)
        if event is Event.PAUSED:
            paused_since, gone_since = now if paused_since is None else paused_since, None
        else:
            paused_since, gone_since = None, now if gone_since is None else gone_since
