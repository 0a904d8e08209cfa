"""Deadlocks: which are possible, and whether one has come while a run goes on."""

from __future__ import annotations

from collections.abc import Sequence

from emu import lossless
from emu.background import Background
from emu.deadlock import find_cycle, shortest_cycle
from emu.engine import Engine
from emu.fabric import Fabric
from emu.run.knot import Knots, Waits
from emu.run.outcome import Cycles, Deadlock
from emu.scenario.model import Scenario
from emu.units import US

CHECK_PS = 20 * US
"""Lanes blocked for so long are looked at. While frames flow, blocks are shorter: 64 KiB leave in 5.2 us at 100 Gb/s.
What notices a deadlock otherwise takes longer: a pause runs out after 84 us at 400 Gb/s, ACK timeouts are milliseconds.
"""


def possible(scenario: Scenario, fabric: Fabric) -> Cycles:
    """A shortest circle of links that could wait for each other, with the forwarding tables as they are; or none."""
    if not _lanes(scenario):
        return ()
    cycle = find_cycle(fabric.topology, fabric.tables)
    return (cycle,) if cycle else ()


def _lanes(scenario: Scenario) -> int:
    """How many lanes of a link may have to wait for its far end."""
    fabric = scenario.fabric
    return fabric.vls if fabric.flow_control == "credits" else len(lossless.lossless_priorities(fabric))


class Standstill:
    """Looks on from when a lane is blocked, and stops the engine at a deadlock; where watchdogs break it, warns."""

    def __init__(self, engine: Engine, scenario: Scenario, fabric: Fabric) -> None:
        self._engine = engine
        self._watchdogs = scenario.fabric.watchdog is not None  # with PFC only
        self._several = _lanes(scenario) > 1
        self._background = Background(engine, self._check)
        self._knots = Knots(engine, fabric)
        self._is_over = False  # one knot is enough
        cycles = possible(scenario, fabric)
        self.deadlock = Deadlock(cycles)
        self.warnings = [f"a deadlock is possible: {_chain(cycle, 'may wait for')}" for cycle in cycles]

    def watch(self) -> None:
        """From now on. Where none is possible, this need not be."""
        for port in self._knots.ports:
            port.watches += (self,)

    @property
    def calls(self) -> int:
        """Events of ours that the engine has run."""
        return self._background.calls

    def look(self) -> None:
        """A lane is blocked."""
        self._background.after(CHECK_PS)

    def _check(self) -> None:
        if self._is_over:
            return
        self._judge(self._knots.find(self._engine.now_ps - CHECK_PS))
        if not self._is_over and any(port.blocked_lanes() for port in self._knots.ports):
            self._background.after(CHECK_PS)

    def _judge(self, waits: Waits) -> None:
        cycle = shortest_cycle(waits)
        if cycle is None:
            return
        self._is_over = True
        names = [f"{port.name} lane {lane.number}" if self._several else port.name for port, lane in cycle]
        now_ps, frames = self._engine.now_ps, sum(len(place.lane.frames) for place in waits)
        since_ps = max(place.lane.blocked_since_ps for place in cycle)
        when = f"at {now_ps / US:.2f} us"
        if self._watchdogs:
            self.warnings.append(f"{when} {_chain(names, 'waited for')}: a deadlock, were there no watchdogs")
            return
        self.deadlock = self.deadlock._replace(detected=(names,), at_ps=now_ps)
        self.warnings.append(
            f"DEADLOCK {when}: {_chain(names, 'waits for')}, and has since {since_ps / US:.2f} us;"
            f" {frames:,} frames stand still"
        )
        self._engine.stop()


def _chain(cycle: Sequence[str], verb: str) -> str:
    return f" {verb} ".join([*cycle, cycle[0]])
