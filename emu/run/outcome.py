"""Joins what was measured, counted and resolved into a run's result."""

from __future__ import annotations

import resource
from collections import Counter
from dataclasses import dataclass
from typing import Any, cast

from emu.devices.egress import EgressPort
from emu.engine import Engine
from emu.errors import ScenarioError
from emu.fabric import Fabric
from emu.measure import result
from emu.measure.measurement import Measurement
from emu.measure.result import LinkCount
from emu.run.assembly import Assembly
from emu.run.conservation import FrameCount
from emu.scenario.model import Scenario
from emu.units import NS
from emu.verbs import QP


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a run went, besides what was measured; wall-clock figures in seconds."""

    wire: str
    interrupted: bool
    build_s: float
    run_s: float
    warnings: tuple[str, ...] = ()  # besides those of the wires and the traffic


def build(assembly: Assembly, count: FrameCount, ending: Ending) -> dict[str, Any]:
    """The result dictionary; `expect` is filled in here too, since it looks at all the rest."""
    scenario, fabric, engine = assembly.scenario, assembly.fabric, assembly.engine
    measurement, routes = assembly.measurement, assembly.routes
    ideal = {key: routes.flow_floor_ps(cast(QP, key), flow) for key, flow in measurement.flows.items()}
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
        "messages": result.messages(measurement),
        "fabric_latency_ns": measurement.fabric_ps.summary_ns(),
        **result.breakdown(measurement),
        "flows": result.flows(measurement, ideal),
        "links": result.links(_links(fabric), engine.now_ps),
        "fairness": {"jain": 0.0},
        "expect": [],
        "warnings": [*_warnings(fabric, measurement), *ending.warnings],
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


def _frames(fabric: Fabric, count: FrameCount) -> dict[str, int]:
    return {
        "sent": count.sent,
        "delivered": count.delivered,
        "lost_on_wire": count.lost_on_wire,
        "on_the_way": count.on_the_way,
        "foreign": sum(wire.foreign for wire in fabric.wires),
    }


def _run(fabric: Fabric, engine: Engine, ending: Ending) -> dict[str, Any]:
    ports = [port for _, port in fabric.links.values()]
    frame_hops = sum(port.data_frames for port in ports)
    return {
        "wall_s": round(ending.run_s, 4),
        "events": engine.events_run,
        "frame_hops": frame_hops,
        "control_frame_hops": sum(port.control_frames for port in ports),
        "frame_hops_per_s": result.rate_per_s(frame_hops, ending.run_s),
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "build_s": round(ending.build_s, 4),
    }


def _drops(fabric: Fabric) -> dict[str, Any]:
    """Frames thrown away, by reason. None for want of room: queues have no bound yet."""
    reasons: Counter[str] = Counter()
    dropped = [switch.dropped for switch in fabric.switches.values()]
    dropped += [nic.dropped for nic in fabric.nics.values()]
    for counts in dropped:
        for reason, number in counts.items():
            reasons[reason] += number
    return {"lossless": 0, "lossy": 0, "by_reason": Counter(dict(sorted(reasons.items())))}


def _links(fabric: Fabric) -> list[LinkCount]:
    return [
        LinkCount(
            name=name,
            source=link.a.node if name == link.name else link.b.node,
            destination=link.b.node if name == link.name else link.a.node,
            tx_frames=port.data_frames + port.control_frames,
            tx_bytes=port.tx_bytes,
            busy_ps=port.elapsed()[0],
            max_queue_bytes=port.max_held_bytes if isinstance(port, EgressPort) else 0,
            dropped=port.lost_frames,
        )
        for name, (link, port) in fabric.links.items()
    ]


def _warnings(fabric: Fabric, measurement: Measurement) -> list[str]:
    warnings = [warning for wire in fabric.wires for warning in wire.warnings]
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
