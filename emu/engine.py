"""The clock, the event queue, timers, coroutines and named randomness: everything that decides what happens next."""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Generator
from heapq import heappop, heappush
from itertools import count
from typing import Any

from emu.errors import InvariantBroken
from emu.units import TIME_LIMIT_PS

Action = Callable[[Any], object]
Event = tuple[int, int, Action, Any]
"""When, in picoseconds; its place among the events of that instant; what to call with what."""

URGENT = -(1 << 62)
"""Added to a sequence number: before all else of that instant. A pause that comes as a frame would start stops it."""
LOOK_EVERY_EVENTS = 4096  # how often a run looks at the outside world


class Engine:
    """Integer picoseconds; events run in order of time, those of one instant in the order they were scheduled.

    Of one instant, what a link's flow control says comes first: see URGENT.
    """

    __slots__ = ("_has_tasks", "_live", "_stopped", "events_run", "now_ps", "on_progress", "queue", "tasks", "tick")

    def __init__(self) -> None:
        self.now_ps = 0
        self.events_run = 0
        self.tasks = 0  # coroutines still running, and what else is held: the run ends with the last of them
        self.on_progress: Callable[[], object] | None = None  # called now and then, for a progress bar
        self.queue: list[Event] = []  # a heap; `at` is the way in, but for ports, which push a million times a second
        self.tick = count().__next__  # the next sequence number
        self._stopped = False
        self._live: set[Task] = set()
        self._has_tasks = False  # without any, a run ends when nothing is left to do

    def at(self, when_ps: int, action: Action, argument: Any = None) -> None:
        """Call `action(argument)` at `when_ps`, which may not lie in the past."""
        if when_ps < self.now_ps:
            raise InvariantBroken(f"an event for {when_ps} ps was scheduled at {self.now_ps} ps")
        heappush(self.queue, (when_ps, self.tick(), action, argument))

    def run(self, until_ps: int | None = None) -> None:
        """Run until the traffic is done, nothing is left to do, or `until_ps` has come (its events included).

        Without `until_ps` that is TIME_LIMIT_PS: no clock here runs further, so that every sum of times fits 64 bits.
        """
        queue = self.queue
        limit_ps = TIME_LIMIT_PS if until_ps is None else until_ps
        self._stopped = False
        while queue and not self._stopped:
            done = 0
            for done in range(1, LOOK_EVERY_EVENTS + 1):  # noqa: B007 - counted, not used inside
                event = heappop(queue)
                when_ps, _, action, argument = event
                if when_ps > limit_ps:
                    heappush(queue, event)
                    self.now_ps = limit_ps
                    self._stopped = True
                    done -= 1
                    break
                self.now_ps = when_ps
                action(argument)
                if self._stopped or not queue:
                    break
            self.events_run += done
            if self.on_progress is not None:
                self.on_progress()

    def stop(self) -> None:
        """End `run` after the present event."""
        self._stopped = True

    def pending(self, kind: type) -> list[Any]:
        """The arguments of that type in events still to come: what conservation counts as in flight."""
        return [argument for *_, argument in self.queue if isinstance(argument, kind)]

    def spawn(self, coroutine: Coroutine[Future, Any, Any]) -> Task:
        """Start a workload's coroutine at the present instant; `await` the task for its result."""
        task = Task(self, coroutine)
        self._live.add(task)
        self._has_tasks = True
        self.tasks += 1
        self.at(self.now_ps, task.step)
        return task

    def forget(self, task: Task) -> None:
        """A task has returned."""
        self._live.discard(task)
        self.release()

    def hold(self) -> None:
        """The run may not end before `release`, though every coroutine has returned."""
        self.tasks += 1

    def release(self) -> None:
        """What was held is over; with the last coroutine and the last thing held the run ends."""
        self.tasks -= 1
        if self.tasks == 0 and self._has_tasks:
            self.stop()

    def close(self) -> None:
        """End the coroutines that have not returned, those that never ran included."""
        while self._live:
            self._live.pop().close()

    def sleep(self, duration_ps: int) -> Future:
        """Await this to go on `duration_ps` later."""
        future = Future()
        self.at(self.now_ps + duration_ps, future.resolve)
        return future


class Future:
    """Something a coroutine can wait for; resolved once, with a value."""

    __slots__ = ("_waiters", "done", "value")

    def __init__(self) -> None:
        self.done = False
        self.value: Any = None
        self._waiters: list[Action] = []

    def resolve(self, value: Any = None) -> None:
        """Let everyone who waits go on, now."""
        if self.done:
            return
        self.done, self.value = True, value
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter(value)

    def when_done(self, action: Action) -> None:
        """Call `action(value)` once this is resolved (at once if it is)."""
        if self.done:
            action(self.value)
        else:
            self._waiters.append(action)

    def __await__(self) -> Generator[Future, Any, Any]:
        if not self.done:
            yield self
        return self.value


class Task(Future):
    """A running coroutine; resolved with what it returns. An exception in it leaves `Engine.run`."""

    __slots__ = ("_coroutine", "_engine")

    def __init__(self, engine: Engine, coroutine: Coroutine[Future, Any, Any]) -> None:
        super().__init__()
        self._engine = engine
        self._coroutine = coroutine

    def step(self, value: Any) -> None:
        """Run the coroutine up to its next await."""
        try:
            awaited = self._coroutine.send(value)
        except StopIteration as stop:
            self.resolve(stop.value)
            self._engine.forget(self)
            return
        awaited.when_done(self.step)

    def close(self) -> None:
        """Let the coroutine end where it is."""
        self._coroutine.close()


class Timer:
    """One deadline that is moved, not cancelled: a wake-up that comes too early sleeps again, a stopped one is idle."""

    __slots__ = ("_action", "_due_ps", "_engine", "_wake_ps")

    def __init__(self, engine: Engine, action: Callable[[], object]) -> None:
        self._engine = engine
        self._action = action
        self._due_ps = -1  # -1: stopped
        self._wake_ps = -1  # when the earliest scheduled wake-up comes; -1: none is scheduled

    def start(self, due_ps: int) -> None:
        """Call the action at `due_ps`, whatever was set before."""
        self._due_ps = due_ps
        if self._wake_ps < 0 or due_ps < self._wake_ps:
            self._wake_ps = due_ps
            self._engine.at(due_ps, self._wake, due_ps)

    def stop(self) -> None:
        """Forget the deadline."""
        self._due_ps = -1

    @property
    def running(self) -> bool:
        """Whether a deadline is set."""
        return self._due_ps >= 0

    def _wake(self, wake_ps: int) -> None:
        if wake_ps != self._wake_ps:
            return  # an earlier wake-up took over
        self._wake_ps = -1
        if self._due_ps < 0:
            return
        if wake_ps < self._due_ps:
            self._wake_ps = self._due_ps
            self._engine.at(self._due_ps, self._wake, self._due_ps)
            return
        self._due_ps = -1
        self._action()


def stream(seed: int, purpose: str) -> random.Random:
    """A generator of its own for each purpose, so that a new user of randomness shifts no other's numbers."""
    return random.Random(f"{seed}/{purpose}")
