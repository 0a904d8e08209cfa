"""DCQCN's congestion estimate alpha: a moving average of `was there a notification`, worked out only when asked for.

Fixed point, ONE is 1.0: every update keeps `keep_1024` / 1024 of it, adds the rest of ONE if there was a notification,
and is rounded down.
"""

from __future__ import annotations

FRACTION_BITS = 30
ONE = 1 << FRACTION_BITS


class Alpha:
    """The estimate of one flow; its clock stands still until `start`."""

    __slots__ = ("_at_cnp", "_due_ps", "_keep", "_period_ps", "_seen", "_value")

    def __init__(self, initial: int, keep_1024: int, period_ps: int, *, at_cnp: bool) -> None:
        """`at_cnp`: every notification is an update and restarts the clock; else each period is one update."""
        self._value = initial
        self._keep = keep_1024
        self._period_ps = period_ps
        self._at_cnp = at_cnp
        self._due_ps = -1  # of the next update; -1: not started
        self._seen = False  # a notification since the last update

    def start(self, now_ps: int) -> None:
        """Let the clock run from now, if it does not yet."""
        if self._due_ps < 0:
            self._due_ps = now_ps + self._period_ps

    def at(self, now_ps: int) -> int:
        """Alpha after the updates due by now."""
        while 0 <= self._due_ps <= now_ps:
            self._update(self._seen)
            self._due_ps += self._period_ps
            if self._value == 0:  # nothing left to decay: skip the periods up to now
                self._due_ps += max(0, now_ps - self._due_ps) // self._period_ps * self._period_ps
        return self._value

    def on_cnp(self, now_ps: int) -> None:
        """A notification came in; without effect before `start`."""
        if self._due_ps < 0:
            return
        self.at(now_ps)
        if self._at_cnp:
            self._update(True)
            self._due_ps = now_ps + self._period_ps
        else:
            self._seen = True

    def _update(self, seen: bool) -> None:
        self._value = self._value * self._keep + (ONE * (1024 - self._keep) if seen else 0) >> 10
        self._seen = False
