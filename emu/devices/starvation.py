"""What becomes of frames that wait for credits which cannot come, since the link loses all that tells of them.

InfiniBand's links have a watchdog for it: without a flow-control packet for 400,000 symbol times, six times the regular
interval, the link is down (IBTA vol. 1, 7.9.4), and what was to leave by it is gone. So here, but after longer, since a
fault that ends is to heal at the next FCP: frames that wait are thrown away, and those that come, until an FCP is heard
again. The transports' timers tell of it.
"""

from __future__ import annotations

from collections.abc import Callable

from emu.devices.lane import Lane
from emu.devices.port import Port
from emu.engine import Engine, Timer
from emu.units import US

PATIENCE = 32  # FCPs lost in a row, and regular intervals
UNREFRESHED_PS = 32 * US  # instead of those intervals, on links that refresh nothing
ATTEMPTS = 64  # FCPs lost in a row before no more leave unless somebody waits: or a run with such a link never ended


class Starvation:
    """Looks at one direction of a link that has lost something, whenever a lane there is blocked."""

    __slots__ = ("_attempts", "_engine", "_need", "_port", "_tell", "_timer", "_unhealed", "_unheard", "patience_ps")

    def __init__(
        self,
        engine: Engine,
        port: Port,
        vls: int,
        *,
        refresh_ps: int | None,
        flight_ps: int,
        unhealed: Callable[[int], int],
        tell: Callable[[], object],
    ) -> None:
        """`flight_ps`: from an FCP being asked for to another that answers it; `port` is the sender.

        `unhealed`: blocks of a VL that left it, were lost, and are not granted again; `tell`: let both ends say
        what they have to say once more, at the next regular moment.
        """
        self._engine, self._port, self._unhealed, self._tell = engine, port, unhealed, tell
        self._timer = Timer(engine, self._judge)
        self._unheard = [0] * vls  # FCPs lost since one was heard
        self._need = 1 if refresh_ps is None else PATIENCE
        self._attempts = ATTEMPTS
        self.patience_ps = (UNREFRESHED_PS if refresh_ps is None else PATIENCE * refresh_ps) + flight_ps
        port.watches += (self,)
        self._await()

    def look(self) -> None:
        """A lane is blocked."""
        self._attempts = ATTEMPTS
        self._tell()
        self._await()

    def lost(self, vl: int) -> bool:
        """An FCP that was to be heard here was lost; returns whether another should follow."""
        self._unheard[vl] += 1
        self._attempts -= 1
        self._await()
        return self._attempts > 0

    def heard(self, vl: int) -> None:
        """One was heard: who waits does so for what it says."""
        self._unheard[vl] = 0
        self._attempts = ATTEMPTS
        self._port.lanes[vl].abandoned = False

    def _await(self) -> None:
        if not self._timer.running and self._port.blocked_lanes():
            self._timer.start(self._engine.now_ps + self.patience_ps)

    def _judge(self) -> None:
        """A lane was blocked so long ago that credits would have come, were there any and were they not lost."""
        since_ps = self._engine.now_ps - self.patience_ps
        young = [lane for lane in self._port.blocked_lanes() if lane.blocked_since_ps > since_ps]
        for lane in self._port.blocked_lanes():
            if lane.blocked_since_ps <= since_ps and self._starves(lane):
                lane.abandoned = True
                self._port.abandon(lane)
        if young:
            self._timer.start(min(lane.blocked_since_ps for lane in young) + self.patience_ps)

    def _starves(self, lane: Lane) -> bool:
        return self._unheard[lane.number] >= self._need or self._unhealed(lane.number) > 0
