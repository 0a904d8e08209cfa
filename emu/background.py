"""Looking on while a run goes on: events that are no part of it, for samplers and for what looks for deadlocks.

None comes later than an event of the run's own that is still to come, so none lengthens a run or keeps it alive, and
`calls` says how many to take off the run's count.
"""

from __future__ import annotations

from collections.abc import Callable

from emu.engine import Engine


class Background:
    """Calls `look` once, whenever it is asked to; `look` may ask again."""

    __slots__ = ("_engine", "_look", "calls", "is_due")

    def __init__(self, engine: Engine, look: Callable[[], object]) -> None:
        self._engine, self._look = engine, look
        self.is_due = False
        self.calls = 0  # events of ours that the engine has run

    def after(self, delay_ps: int) -> None:
        """Look so much later, unless a look is due already; with the run's last event if that comes sooner.

        That may be the run's last instant. It will have run before our look, for it was scheduled before.
        """
        if self.is_due:
            return
        queue, due_ps = self._engine.queue, self._engine.now_ps + delay_ps
        # Late events stand at a heap's end, mostly.
        if not any(event[0] >= due_ps and not isinstance(event[3], Background) for event in reversed(queue)):
            due_ps = max((event[0] for event in queue if not isinstance(event[3], Background)), default=-1)
        if due_ps >= 0:
            self.is_due = True
            self._engine.at(due_ps, self._wake, self)

    def _wake(self, _: Background) -> None:
        self.calls += 1
        self.is_due = False
        self._look()
