"""A PFC watchdog at work: looks at one egress queue, and drops or forwards its frames while a pause does not end."""

from __future__ import annotations

from emu.devices.egress import EgressPort
from emu.devices.lane import QueueLane
from emu.devices.pauses import LinkPauses
from emu.engine import Engine, Timer
from emu.linklayer.watchdog import Action, Event, Watchdog, WatchdogConfig


class PauseWatch:
    """Of one lane and its priority. Look whenever the pause or the lane may have changed."""

    __slots__ = ("_engine", "_lane", "_pauses", "_port", "_priority", "_timer", "watchdog")

    def __init__(
        self, engine: Engine, config: WatchdogConfig, port: EgressPort, lane: QueueLane, priority: int, flow: LinkPauses
    ) -> None:
        self._engine = engine
        self._port, self._lane, self._priority, self._pauses = port, lane, priority, flow
        self._timer = Timer(engine, self._timed_out)
        self.watchdog = Watchdog(config)

    @property
    def place(self) -> str:
        """The link's direction and the priority."""
        return f"{self._port.name} priority {self._priority}"

    def look(self) -> None:
        """A pause began or ended, or the lane is blocked."""
        now_ps = self._engine.now_ps
        stuck = self._pauses.is_paused(self._priority, now_ps) and (bool(self._lane.frames) or self.watchdog.acts)
        self._move(Event.PAUSED if stuck else Event.RESUMED)

    def _timed_out(self) -> None:
        self._move(Event.TIMEOUT)

    def _move(self, event: Event) -> None:
        watchdog, lane = self.watchdog, self._lane
        watchdog.on_event(event, self._engine.now_ps)
        if watchdog.deadline_ps < 0:
            self._timer.stop()
        else:
            self._timer.start(watchdog.deadline_ps)
        acts = watchdog.acts
        if acts == (lane.dropping or lane.forced):
            return
        lane.dropping = acts and watchdog.action is Action.DROP
        lane.forced = acts and watchdog.action is Action.FORWARD
        if lane.dropping:
            self._port.throw_away(lane)
        elif lane.forced:
            self._port.unblock(lane)
            self._port.kick()
