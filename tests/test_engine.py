"""The clock: order, timers, coroutines, randomness."""

from __future__ import annotations

from typing import Any

import pytest

from emu.engine import Engine, Future, Timer, stream
from emu.errors import InvariantBroken
from emu.units import TIME_LIMIT_PS


def test_time_goes_in_order_and_equal_times_as_scheduled() -> None:
    engine = Engine()
    seen: list[Any] = []
    for when_ps, name in ((5, "b"), (3, "a"), (5, "c"), (5, "d")):
        engine.at(when_ps, lambda name: seen.append((engine.now_ps, name)), name)
    engine.run()
    assert seen == [(3, "a"), (5, "b"), (5, "c"), (5, "d")]
    assert engine.events_run == 4


def test_the_past_is_refused() -> None:
    engine = Engine()
    engine.at(10, lambda _: engine.at(9, print))
    with pytest.raises(InvariantBroken):
        engine.run()


def test_until_runs_the_events_of_that_instant_and_no_later_one() -> None:
    engine = Engine()
    seen: list[Any] = []
    for when_ps in (1, 2, 3):
        engine.at(when_ps, seen.append, when_ps)
    engine.run(until_ps=2)
    assert (seen, engine.now_ps) == ([1, 2], 2)
    engine.run()
    assert (seen, engine.now_ps) == ([1, 2, 3], 3)


def test_events_are_counted_across_many() -> None:
    engine = Engine()
    for when_ps in range(10_000):
        engine.at(when_ps, lambda _: None)
    engine.run()
    assert engine.events_run == 10_000


def test_progress_is_called_now_and_then() -> None:
    engine = Engine()
    calls: list[int] = []
    engine.on_progress = lambda: calls.append(engine.now_ps)
    for when_ps in range(10_000):
        engine.at(when_ps, lambda _: None)
    engine.run()
    assert len(calls) == 3


def test_a_timer_is_moved_without_waking_for_the_old_deadline() -> None:
    engine = Engine()
    fired: list[int] = []
    timer = Timer(engine, lambda: fired.append(engine.now_ps))
    timer.start(100)
    engine.at(50, lambda _: timer.start(200))
    engine.run()
    assert fired == [200]
    assert engine.events_run == 3  # the move, the early wake-up that sleeps on, the real one


def test_a_timer_can_be_moved_earlier_and_stopped() -> None:
    engine = Engine()
    fired: list[int] = []
    timer = Timer(engine, lambda: fired.append(engine.now_ps))
    timer.start(100)
    timer.start(30)
    engine.run()
    assert fired == [30]
    timer.start(engine.now_ps + 10)
    timer.stop()
    engine.run()
    assert fired == [30]
    assert not timer.running


def test_a_timer_fires_again_when_restarted_in_its_action() -> None:
    engine = Engine()
    fired: list[int] = []

    def action() -> None:
        fired.append(engine.now_ps)
        if len(fired) < 3:
            timer.start(engine.now_ps + 10)

    timer = Timer(engine, action)
    timer.start(10)
    engine.run()
    assert fired == [10, 20, 30]


def test_coroutines_sleep_wait_for_each_other_and_end_the_run() -> None:
    engine = Engine()
    seen: list[Any] = []

    async def child() -> str:
        await engine.sleep(10)
        return "answer"

    async def parent() -> None:
        answer = await engine.spawn(child())
        seen.append((engine.now_ps, answer))

    engine.spawn(parent())
    engine.at(10**6, seen.append, "after the traffic")
    engine.run()
    assert seen == [(10, "answer")]
    assert engine.tasks == 0


def test_an_exception_in_a_coroutine_leaves_the_run() -> None:
    engine = Engine()

    async def wrong() -> None:
        await engine.sleep(1)
        raise ValueError("mine")

    engine.spawn(wrong())
    with pytest.raises(ValueError, match="mine"):
        engine.run()


def test_closing_ends_the_coroutines_that_wait_or_never_ran() -> None:
    engine = Engine()
    ended: list[str] = []

    async def waits(name: str) -> None:
        try:
            await engine.sleep(100)
        finally:
            ended.append(name)

    engine.spawn(waits("ran"))
    engine.run(until_ps=10)
    engine.spawn(waits("never ran"))
    engine.close()
    assert ended == ["ran"]


def test_no_clock_runs_past_the_longest_time() -> None:
    engine = Engine()
    engine.at(TIME_LIMIT_PS + 1, print)
    engine.run()
    assert (engine.now_ps, engine.events_run, len(engine.queue)) == (TIME_LIMIT_PS, 0, 1)


def test_a_future_resolves_once() -> None:
    future = Future()
    seen: list[Any] = []
    future.when_done(seen.append)
    future.resolve(1)
    future.resolve(2)
    future.when_done(seen.append)
    assert seen == [1, 1]


def test_stop_ends_after_the_present_event() -> None:
    engine = Engine()
    seen: list[Any] = []

    def stop(_: object) -> None:
        engine.stop()
        seen.append("rest of the event")

    engine.at(1, stop)
    engine.at(2, seen.append, "later")
    engine.run()
    assert seen == ["rest of the event"]


def test_streams_are_independent_and_repeatable() -> None:
    assert stream(1, "a").random() == stream(1, "a").random()
    assert stream(1, "a").random() != stream(1, "b").random()
    assert stream(1, "a").random() != stream(2, "a").random()


def test_pending_lists_arguments_of_a_type() -> None:
    engine = Engine()
    engine.at(1, print, "text")
    engine.at(1, print, 3)
    assert engine.pending(str) == ["text"]
