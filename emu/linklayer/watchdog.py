"""The PFC watchdog of one egress queue: a pause that does not end is a storm; acts on it until it is over.

Without it, one broken adapter that pauses for ever stops a whole lossless fabric.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from emu.errors import InvariantBroken, ScenarioError


class Action(Enum):
    """What becomes of a stormed queue's frames."""

    DROP = "drop"  # those that wait and those that come
    FORWARD = "forward"  # sent, as if there were no pause


class State(Enum):
    """How the watchdog sees its queue."""

    OPERATIONAL = "operational"
    SUSPECT = "suspect"  # paused with frames waiting, for less than the detection time
    STORM = "storm"  # acted upon
    RESTORING = "restoring"  # acted upon still, but no longer paused


class Event(Enum):
    """What happens to the queue."""

    PAUSED = "paused"  # a pause is in force and a frame waits; said again as often as one likes
    RESUMED = "resumed"  # XON, the pause ran out, or nothing waits any more
    TIMEOUT = "timeout"  # the deadline has come


MOVES = {
    (State.OPERATIONAL, Event.PAUSED): State.SUSPECT,
    (State.OPERATIONAL, Event.RESUMED): State.OPERATIONAL,
    (State.SUSPECT, Event.PAUSED): State.SUSPECT,
    (State.SUSPECT, Event.RESUMED): State.OPERATIONAL,
    (State.SUSPECT, Event.TIMEOUT): State.STORM,
    (State.STORM, Event.PAUSED): State.STORM,
    (State.STORM, Event.RESUMED): State.RESTORING,
    (State.RESTORING, Event.PAUSED): State.STORM,
    (State.RESTORING, Event.RESUMED): State.RESTORING,
    (State.RESTORING, Event.TIMEOUT): State.OPERATIONAL,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchdogConfig:
    """How long a pause may last, how long it must be gone, in picoseconds; what to do in between."""

    detection_ps: int
    restoration_ps: int
    action: Action = Action.DROP

    def __post_init__(self) -> None:
        if min(self.detection_ps, self.restoration_ps) <= 0:
            raise ScenarioError(f"a watchdog's times are above 0: {self.detection_ps} ps, {self.restoration_ps} ps")


class Watchdog:
    """One queue's. Call `on_event` with TIMEOUT when `deadline_ps` has come; -1: it never does."""

    __slots__ = ("_waits_ps", "action", "deadline_ps", "state", "storms")

    def __init__(self, config: WatchdogConfig) -> None:
        self._waits_ps = {State.SUSPECT: config.detection_ps, State.RESTORING: config.restoration_ps}
        self.action = config.action
        self.state = State.OPERATIONAL
        self.deadline_ps = -1
        self.storms = 0

    @property
    def acts(self) -> bool:
        """Whether the queue's frames are dropped or forwarded now, whatever its pause."""
        return self.state is State.STORM or self.state is State.RESTORING

    def on_event(self, event: Event, now_ps: int) -> State:
        """Move; returns the state then. Raises InvariantBroken for a move that there is not."""
        state = MOVES.get((self.state, event))
        if state is None or (event is Event.TIMEOUT and now_ps < self.deadline_ps):
            raise InvariantBroken(f"a watchdog that is {self.state.value} has no {event.value} at {now_ps} ps")
        if state is not self.state:
            if event is Event.TIMEOUT and state is State.STORM:
                self.storms += 1
            wait_ps = self._waits_ps.get(state)
            self.deadline_ps = -1 if wait_ps is None else now_ps + wait_ps
            self.state = state
        return state
