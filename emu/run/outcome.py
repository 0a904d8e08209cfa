"""Joins what was measured, counted and resolved into a run's result."""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from emu.devices.pauses import LinkPauses
from emu.devices.switch import NO_CREDITS
from emu.engine import Engine
from emu.errors import ScenarioError
from emu.fabric import Fabric
from emu.linklayer.watchdog import Action
from emu.measure import result, slowest
from emu.measure.flow import Flow, FlowKey
from emu.measure.measurement import Measurement
from emu.measure.result import FlowFacts, LinkCount
from emu.run import pcie
from emu.run.assembly import Assembly
from emu.run.conservation import FrameCount
from emu.scenario.model import Scenario
from emu.units import NS
from emu.verbs import QP
from emu.wire.inject import EFFECTS

Cycles = Sequence[Sequence[str]]
"""Links, each waiting for the next and the last for the first."""


class Deadlock(NamedTuple):
    """What could lock up for good, what did, and when, in picoseconds."""

    possible: Cycles = ()
    detected: Cycles = ()
    at_ps: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a run went, besides what was measured; wall-clock figures in seconds."""

    wire: str
    interrupted: bool
    build_s: float
    run_s: float
    warnings: tuple[str, ...] = ()  # besides those of the wires and the traffic
    events_apart: int = 0  # of those that ran: the sampler's, which are no part of the run
    deadlock: Deadlock = Deadlock()


def build(assembly: Assembly, count: FrameCount, ending: Ending) -> dict[str, Any]:
    """The result dictionary; `expect` is filled in here too, since it looks at all the rest."""
    scenario, fabric, engine = assembly.scenario, assembly.fabric, assembly.engine
    measurement = assembly.measurement
    facts = {key: _facts(assembly, key, flow) for key, flow in measurement.flows.items()}
    outcome: dict[str, Any] = {
        "schema": result.SCHEMA,
        "complete": engine.tasks == 0,
        "interrupted": ending.interrupted,
        "scenario": scenario.resolved(),
        "seed": scenario.run.seed,
        "wire": ending.wire,
        "virtual_ns": engine.now_ps / NS,
        "deterministic": assembly.door is None,
        "disturbed": any(wire.disturbed for wire in fabric.wires),
        "run": _run(fabric, engine, ending),
        "frames": _frames(fabric, count),
        "drops": _drops(fabric),
        "injected": _injected(fabric),
        "messages": result.messages(measurement),
        "connections": measurement.connections.entry(),
        "fabric_latency_ns": measurement.fabric_ps.summary_ns(),
        **result.breakdown(measurement),
        "p99": slowest.entry(measurement.slowest, scenario.fabric.flow_control, scenario.fabric.congestion_control),
        "flows": result.flows(measurement, facts, engine.now_ps),
        "links": result.links(_links(fabric), engine.now_ps),
        **pcie.entry(fabric, engine.now_ps),
        "fairness": result.fair(measurement, facts, engine.now_ps),
        "congestion": _congestion(fabric),
        "deadlock": _deadlock(ending.deadlock),
        "expect": [],
        "warnings": [*_warnings(fabric, measurement), *pcie.warnings(fabric), *ending.warnings],
        "provenance": provenance(scenario),
    }
    outcome["expect"] = [_expectation(each, outcome) for each in scenario.expect]
    return outcome


def provenance(scenario: Scenario) -> dict[str, list[str]]:
    """What the figures rest on: `path = value` for each input that is calibrated or assumed, and for the rest too."""
    kinds: dict[str, list[str]] = {"calibrated": [], "assumed": []}
    for path, origin in sorted(scenario.provenance.items()):
        kinds.setdefault(origin.kind, []).append(f"{path} = {origin.value}")
    return kinds


def _facts(assembly: Assembly, key: FlowKey, flow: Flow) -> FlowFacts:
    qp = cast(QP, key)
    routes, rate = assembly.routes, assembly.fabric.nics[key.source].queue_pairs[key.qp_num].rate
    return FlowFacts(
        ideal_ps=routes.flow_floor_ps(qp, flow),
        kind=key.kind,
        path=tuple(name for name, _ in routes.path(qp)),
        rate_bps=rate.rate_bps if rate is not None else None,
    )


def _deadlock(found: Deadlock) -> dict[str, Any]:
    return {
        "possible": [list(cycle) for cycle in found.possible],
        "detected": [list(cycle) for cycle in found.detected],
        "at_ns": found.at_ps / NS if found.at_ps is not None else None,
    }


def _congestion(fabric: Fabric) -> dict[str, float | None]:
    """When frames were first marked and a port first paused its peer: which of the two acted first."""
    ports = [port for _, port in fabric.links.values()]
    marks = [lane.first_mark_ps for port in ports for lane in port.lanes if lane.first_mark_ps >= 0]
    pauses = [port.flow.first_pause_ps for port in ports if isinstance(port.flow, LinkPauses)]
    pauses = [first_ps for first_ps in pauses if first_ps >= 0]
    return {
        "first_mark_ns": min(marks) / NS if marks else None,
        "first_pause_ns": min(pauses) / NS if pauses else None,
        "watchdog_storms": sum(watch.watchdog.storms for watch in fabric.attachments.watches),
    }


def _frames(fabric: Fabric, count: FrameCount) -> dict[str, int]:
    return {
        "sent": count.sent,
        "delivered": count.delivered,
        "lost_on_wire": count.lost_on_wire,
        "lost_link_control": sum(port.lost_link_frames for _, port in fabric.links.values()),
        "on_the_way": count.on_the_way,
        "foreign": sum(wire.foreign for wire in fabric.wires),
        "cnps": sum(nic.notices_taken for nic in fabric.nics.values()),
    }


def _run(fabric: Fabric, engine: Engine, ending: Ending) -> dict[str, Any]:
    ports = [port for _, port in fabric.links.values()]
    frame_hops = sum(port.data_frames for port in ports)
    return {
        "wall_s": round(ending.run_s, 4),
        "events": engine.events_run - ending.events_apart,
        "frame_hops": frame_hops,
        "control_frame_hops": sum(port.control_frames for port in ports),
        "tlp_hops": pcie.tlp_hops(fabric),
        "frame_hops_per_s": result.rate_per_s(frame_hops, ending.run_s),
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "build_s": round(ending.build_s, 4),
    }


def _drops(fabric: Fabric) -> dict[str, Any]:
    """Frames thrown away, by reason; those of lossless and of lossy classes for want of room, or by a watchdog."""
    reasons: Counter[str] = Counter()
    dropped = [switch.dropped for switch in fabric.switches.values()]
    dropped += [nic.dropped for nic in fabric.nics.values()]
    dropped += [{NO_CREDITS: nic.port.abandoned_frames} for nic in fabric.nics.values() if nic.port.abandoned_frames]
    for counts in dropped:
        for reason, number in counts.items():
            reasons[reason] += number
    return {
        "lossless": sum(switch.lossless_drops for switch in fabric.switches.values()),
        "lossy": sum(switch.lossy_drops for switch in fabric.switches.values()),
        "by_reason": Counter(dict(sorted(reasons.items()))),
    }


def _injected(fabric: Fabric) -> dict[str, int]:
    """What injections did, the links' own frames included."""
    return {effect: sum(each.counts[effect] for each in fabric.attachments.injections) for effect in EFFECTS}


def _links(fabric: Fabric) -> list[LinkCount]:
    return [
        LinkCount(
            name=name,
            source=link.a.node if name == link.name else link.b.node,
            destination=link.b.node if name == link.name else link.a.node,
            tx_frames=port.data_frames + port.control_frames,
            tx_bytes=port.tx_bytes,
            busy_ps=port.elapsed_ps(),
            max_queue_bytes=port.max_held_bytes,
            dropped=port.lost_frames + port.lost_link_frames,
            paused_ps=port.paused_ps(),
            credit_wait_ps=port.credit_wait_ps(),
            pause_frames=port.pause_frames,
            credit_frames=port.credit_frames,
            ecn_marked=sum(lane.marked for lane in port.lanes),
        )
        for name, (link, port) in fabric.links.items()
    ]


def _warnings(fabric: Fabric, measurement: Measurement) -> list[str]:
    warnings = [
        f"LOSSLESS DROP: {number} frame{'s' if number > 1 else ''} of a lossless class"
        f" {'were' if number > 1 else 'was'} dropped at {switch.name} (ingress {place.replace(' ', ', ', 1)})"
        for switch in fabric.switches.values()
        for place, number in switch.lossless_drop_places.items()
    ]
    warnings += [warning for wire in fabric.wires for warning in wire.warnings]
    lossy = sum(switch.lossy_drops for switch in fabric.switches.values())
    if lossy:
        warnings.append(f"{lossy:,} frame{'' if lossy == 1 else 's'} of lossy classes dropped for want of room")
    warnings += [
        f"PFC watchdog at {watch.place}: {watch.watchdog.storms} storm{'' if watch.watchdog.storms == 1 else 's'};"
        f" its frames were {'dropped' if watch.watchdog.action is Action.DROP else 'sent in spite of the pause'}"
        for watch in fabric.attachments.watches
        if watch.watchdog.storms
    ]
    for name, (_, port) in fabric.links.items():
        if port.abandoned_frames:
            plural = "s were" if port.abandoned_frames > 1 else " was"
            warnings.append(
                f"{name}: no credits came for long, as what tells of them was lost;"
                f" {port.abandoned_frames:,} frame{plural} thrown away that waited for them"
            )
    if measurement.failed:
        statuses = ", ".join(f"{number} {name}" for name, number in sorted(measurement.statuses.items()))
        plural = "" if measurement.failed == 1 else "s"
        warnings.append(f"{measurement.failed} message{plural} failed: {statuses}")
    return warnings


def _expectation(expectation: Any, outcome: dict[str, Any]) -> dict[str, Any]:
    try:
        holds, value = expectation.evaluate(outcome)
    except ScenarioError:  # it led somewhere in an empty result, and does not in this one: no flow began, say
        holds, value = False, None
    return {"text": expectation.text, "holds": holds, "value": value}
