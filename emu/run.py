"""Scenario in, result out: the data flow in one function."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import topologies
from emu import conservation, outcome
from emu.engine import Engine
from emu.errors import ScenarioError
from emu.fabric import Fabric, Wires
from emu.foreign import ForeignDoor
from emu.frame import Message
from emu.measure.measurement import Measurement
from emu.route import Routes
from emu.scenario.model import Scenario
from emu.taps import Taps
from emu.topology import Topology
from traffic.workloads import BY_KIND
from traffic.workloads.cluster import Cluster

WIRES = ("veth", "memory")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run, where that is no part of the scenario."""

    wire: str = "veth"
    accept_foreign: bool = False  # take in frames that nobody in the model sent
    receive_buffer_bytes: int | None = None  # of each veth's socket; None: as large as allowed
    on_message: Callable[[Message], object] | None = None  # each finished message, in order
    on_progress: Callable[[Engine, Measurement], object] | None = None
    before_run: Callable[[Fabric], object] | None = None  # once built, before the first event


def topology_of(scenario: Scenario) -> Topology:
    """The fabric that the scenario describes."""
    return topologies.build(scenario.fabric.topology, scenario.fabric.link_defaults)


def run(scenario: Scenario, options: Options | None = None) -> dict[str, Any]:
    """Build the fabric, run it to the end, check that nothing went missing, and return what was seen.

    Raises ScenarioError, MachineError (namespaces are not to be had), InvariantBroken. Ctrl-C, SIGTERM and SIGHUP
    while it runs end it after the present event; the result then says `"complete": false, "interrupted": true`.
    """
    options = options or Options()
    if options.wire not in WIRES:
        raise ScenarioError(f"wire {options.wire!r} is unknown; known: {', '.join(WIRES)}")
    began = time.perf_counter()
    topology = topology_of(scenario)
    engine, taps = Engine(), Taps()
    with ExitStack() as undo:
        fabric = Fabric(engine, scenario, topology, taps)
        fabric.join(_lay(topology, options, undo) if options.wire == "veth" else None)
        door = ForeignDoor(fabric) if options.accept_foreign else None
        routes = Routes(fabric, scenario)
        measurement = Measurement(taps, routes.message_floor_ps, options.on_message)
        cluster = Cluster(engine, fabric.contexts, scenario.run.seed)
        for traffic in scenario.traffic:
            BY_KIND[traffic.kind](cluster, traffic)
        if options.before_run is not None:
            options.before_run(fabric)
        built = time.perf_counter()
        _watch(engine, measurement, options, door)
        with _stopped_by_signals(engine) as signals:
            engine.run(scenario.run.until_ps)
        wall = outcome.Wall(build_s=built - began, run_s=time.perf_counter() - built)
        for wire in fabric.wires:
            wire.finish()
        count = conservation.check(fabric, engine, *((door.frames, door.bytes) if door else ()))
        return outcome.build(
            scenario,
            fabric,
            routes,
            measurement,
            engine,
            count,
            wire=options.wire,
            complete=engine.tasks == 0,
            interrupted=bool(signals) and engine.tasks > 0,
            deterministic=door is None,
            wall=wall,
        )


def _lay(topology: Topology, options: Options, undo: ExitStack) -> Wires:
    """Build the namespaces and the veth pairs; `undo` takes them down."""
    from emu.lab.lab import Lab  # noqa: PLC0415 - a run in memory needs none of what this loads

    lab = undo.enter_context(Lab(topology, receive_buffer_bytes=options.receive_buffer_bytes))
    return lab.wires


def _watch(engine: Engine, measurement: Measurement, options: Options, door: ForeignDoor | None) -> None:
    watch = options.on_progress

    def look() -> None:
        if door is not None:
            door.poll()
        if watch is not None:
            watch(engine, measurement)

    if watch is not None or door is not None:
        engine.on_progress = look


@contextmanager
def _stopped_by_signals(engine: Engine) -> Iterator[list[int]]:
    """Let the first Ctrl-C, SIGTERM or SIGHUP end the run between two events, the books in order; a second interrupts.

    Gives the list of signals that came.
    """
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    before = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}

    def stop(number: int, _: FrameType | None) -> None:
        came.append(number)
        engine.stop()
        signal.signal(number, before[signal.Signals(number)])

    try:
        for number in before:
            signal.signal(number, stop)
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
