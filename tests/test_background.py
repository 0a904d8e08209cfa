"""Looks beside a run: as often as asked for, never later than the run's own last event, and they keep nothing alive."""

from __future__ import annotations

from emu.background import Background
from emu.engine import Engine


class Looker:
    """Looks every 10 ps, and notes when."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.times_ps: list[int] = []
        self.background = Background(engine, self.look)

    def look(self) -> None:
        self.times_ps.append(self.engine.now_ps)
        self.background.after(10)


def test_looks_go_on_until_the_last_event_and_not_beyond() -> None:
    engine = Engine()
    looker = Looker(engine)
    engine.at(34, lambda _: None)
    looker.background.after(10)
    engine.run()
    assert looker.times_ps == [10, 20, 30, 34]
    assert engine.now_ps == 34
    assert engine.events_run - looker.background.calls == 1


def test_two_that_look_do_not_keep_each_other_going() -> None:
    engine = Engine()
    lookers = [Looker(engine), Looker(engine)]
    engine.at(20, lambda _: None)
    for looker in lookers:
        looker.background.after(10)
    engine.run()
    assert [looker.times_ps for looker in lookers] == [[10, 20], [10, 20]]


def test_one_look_is_due_at_a_time() -> None:
    engine = Engine()
    times_ps: list[int] = []
    background = Background(engine, lambda: times_ps.append(engine.now_ps))
    engine.at(50, lambda _: None)
    background.after(30)
    background.after(10)
    assert background.is_due
    engine.run()
    assert (times_ps, background.is_due, background.calls) == ([30], False, 1)


def test_what_comes_at_the_same_instant_has_been_seen() -> None:
    engine = Engine()
    seen: list[int] = []
    done: list[int] = []
    background = Background(engine, lambda: seen.append(len(done)))
    for when_ps in (5, 7, 7):
        engine.at(when_ps, lambda _: done.append(1))
    background.after(100)
    engine.run()
    assert seen == [3]


def test_where_nothing_is_to_come_nobody_looks() -> None:
    engine = Engine()
    background = Background(engine, lambda: None)
    background.after(10)
    assert not background.is_due
    assert not engine.queue
