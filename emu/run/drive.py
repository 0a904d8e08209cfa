"""Scenario in, result out: the data flow in one function."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emu.capture.recorder import Recorder, chosen
from emu.engine import Engine
from emu.errors import ScenarioError
from emu.fabric import Fabric, GpuWires, Wires
from emu.frame import Message
from emu.lab.interrupts import Interrupts
from emu.measure.measurement import Measurement
from emu.measure.series import INTERVAL_PS, Sample, Sampler
from emu.run import conservation, expectations, outcome, pcie
from emu.run.assembly import Assembly
from emu.run.garbage import sought_seldom
from emu.run.signals import EndingSignals
from emu.run.standstill import Standstill
from emu.scenario.model import Scenario

WIRES = ("veth", "memory")
GPU_WIRE = ("host", "pcie", "wire")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run, where that is no part of the scenario."""

    wire: str = "veth"
    accept_foreign: bool = False  # take in frames that nobody in the model sent
    receive_buffer_bytes: int | None = None  # of each veth's socket; None: as large as allowed
    on_message: Callable[[Message], object] | None = None  # each message once it has arrived and completed, or failed
    on_progress: Callable[[Engine, Measurement], object] | None = None
    on_sample: Callable[[Sample], object] | None = None  # each value of the time series that has changed
    sample_ps: int = INTERVAL_PS  # how far apart those are looked at
    captures: tuple[Path, ...] = ()  # files to record the scenario's `capture` links into; all links if it names none
    replace_captures: bool = False  # whether one that exists already may be overwritten
    on_capture_failed: Callable[[str], object] | None = None  # told, in a line, of each that ends before the run does
    before_run: Callable[[Fabric], object] | None = None  # once built, before the first event


def run(scenario: Scenario, options: Options | None = None) -> dict[str, Any]:
    """Build the fabric, run it to the end, check that nothing went missing, and return what was seen.

    Raises ScenarioError, MachineError (namespaces are not to be had), InvariantBroken. Ctrl-C, SIGTERM and SIGHUP
    while it runs end it after the present event; the result then says `"complete": false, "interrupted": true`.
    """
    options = options or Options()
    _check_wires(scenario, options)
    expectations.check(scenario)
    began = time.perf_counter()
    assembly = Assembly(scenario, options.on_message)
    engine, fabric = assembly.engine, assembly.fabric
    with closing(engine), EndingSignals(engine) as signals, ExitStack() as undo:
        recorders = _join(assembly, options, undo)
        standstill = _standstill(assembly)
        built = time.perf_counter()
        _watch(assembly, options)
        sampler = _sampler(assembly, options)
        signals.arm()
        with sought_seldom():
            engine.run(scenario.run.until_ps)
        ran = time.perf_counter()
        assembly.measurement.finish()
        if sampler is not None:
            sampler.finish()
        for wire in fabric.wires:
            wire.finish()
        for recorder in recorders:
            recorder.finish()
        count = conservation.check(assembly)
        ending = outcome.Ending(
            wire=options.wire,
            interrupted=bool(signals.came) and engine.tasks > 0,
            build_s=built - began,
            run_s=ran - built,
            warnings=(*standstill.warnings, *_failures(recorders, options)),
            events_apart=standstill.calls + (sampler.calls if sampler is not None else 0),
            deadlock=standstill.deadlock,
        )
        return outcome.build(assembly, count, ending)


def _join(assembly: Assembly, options: Options, undo: ExitStack) -> list[Recorder]:
    """Lay the wires and join the devices by them; returns what records. `undo` ends it all."""
    recorders = [undo.enter_context(Recorder(path, replace=options.replace_captures)) for path in options.captures]
    wires, gpu_wires = _lay(assembly, options, undo) if options.wire == "veth" else (None, None)
    for recorder in recorders:
        _record(recorder, assembly)
    assembly.join(wires, gpu_wires, accept_foreign=options.accept_foreign)
    if options.before_run is not None:
        options.before_run(assembly.fabric)
    return recorders


def _check_wires(scenario: Scenario, options: Options) -> None:
    """Refuse wires that are not to be had."""
    if options.wire not in WIRES:
        raise ScenarioError(f"wire {options.wire!r} is unknown; known: {', '.join(WIRES)}")
    if options.wire == "memory" and _gpus_apart(scenario):
        raise scenario.mistake("veth: a run over --wire memory has no namespaces; set it to memory", *GPU_WIRE)


def _gpus_apart(scenario: Scenario) -> bool:
    """Whether each GPU is to have a namespace of its own."""
    return scenario.host.pcie is not None and scenario.host.pcie.wire == "veth"


def _lay(assembly: Assembly, options: Options, undo: ExitStack) -> tuple[Wires, GpuWires | None]:
    """Build the namespaces and the veth pairs; `undo` takes them down."""
    with Interrupts():  # others' modules make something else of one that comes amid their loading
        from emu.lab.gpus import Gpus  # noqa: PLC0415 - a run in memory needs none of what this loads
        from emu.lab.lab import Lab  # noqa: PLC0415

    topology = assembly.topology
    gpus = Gpus(topology) if _gpus_apart(assembly.scenario) else None
    lab = Lab(gpus.topology if gpus is not None else topology, receive_buffer_bytes=options.receive_buffer_bytes)
    undo.enter_context(lab)
    return lab.wires, gpus.wires(lab) if gpus is not None else None


def _record(recorder: Recorder, assembly: Assembly) -> None:
    """Let the recorder see what the scenario wants captured."""
    scenario = assembly.scenario
    recorder.watch(
        assembly.taps,
        chosen(assembly.topology.links, scenario.capture),
        native=scenario.fabric.framing == "native",
        title=scenario.name,
        inside=pcie.interfaces(assembly.fabric, scenario.capture),
        engine=assembly.engine,
    )


def _sampler(assembly: Assembly, options: Options) -> Sampler | None:
    """Looks at queues, credits and rates while the run goes on, if somebody wants to know."""
    if options.on_sample is None:
        return None
    fabric, flows = assembly.fabric, assembly.measurement.flows

    def rates() -> Iterable[tuple[str, int]]:
        for flow in flows:
            rate = fabric.nics[flow.source].queue_pairs[flow.qp_num].rate
            if rate is not None:
                yield f"{flow.source}-{flow.destination}/{flow.qp_num}", rate.rate_bps

    ports = {name: port for name, (_, port) in fabric.links.items()}
    control = assembly.scenario.fabric.flow_control
    sampler = Sampler(
        assembly.engine, ports, rates, options.on_sample, flow_control=control, interval_ps=options.sample_ps
    )
    sampler.start()
    return sampler


def _standstill(assembly: Assembly) -> Standstill:
    """Looks for deadlocks while the run goes on, unless the forwarding tables leave none possible."""
    standstill = Standstill(assembly.engine, assembly.scenario, assembly.fabric)
    if standstill.deadlock.possible or assembly.door is not None:  # frames from outside may go any way
        standstill.watch()
    return standstill


def _failures(recorders: Iterable[Recorder], options: Options) -> tuple[str, ...]:
    """A line for each capture that had to end before the run did."""
    lines = []
    for recorder in recorders:
        if recorder.failure is not None:
            reason = str(recorder.failure).removeprefix(f"{recorder.path}: ")
            lines.append(f"capture {recorder.path.name} ends early, after {recorder.frames:,} frames: {reason}")
            if options.on_capture_failed is not None:
                options.on_capture_failed(lines[-1])
    return tuple(lines)


def _watch(assembly: Assembly, options: Options) -> None:
    """Look at idle wires for strangers, and tell who asked how far the run is, now and then."""
    watch, door = options.on_progress, assembly.door

    def look() -> None:
        if door is not None:
            door.poll()
        if watch is not None:
            watch(assembly.engine, assembly.measurement)

    if watch is not None or door is not None:
        assembly.engine.on_progress = look
