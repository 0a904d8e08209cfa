"""The result of a run as one dictionary: the keys of docs/results.md, units in their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from emu.measure import fairness
from emu.measure.flow import Flow, FlowKey
from emu.measure.measurement import Measurement
from emu.parts import PARTS, STEPS
from emu.units import NS

SCHEMA = 1
WALL_CLOCK_KEYS = ("wall_s", "frame_hops_per_s", "peak_rss_mb", "build_s")
"""Keys under `run` that may differ between two runs of one scenario; so may `wire`."""


class LinkCount(NamedTuple):
    """What one direction of a link carried."""

    name: str
    source: str
    destination: str
    tx_frames: int
    tx_bytes: int
    busy_ps: int
    max_queue_bytes: int
    dropped: int
    paused_ps: int
    credit_wait_ps: int
    pause_frames: int
    credit_frames: int
    ecn_marked: int


class FlowFacts(NamedTuple):
    """What is known of a flow besides its messages."""

    ideal_ps: int = 0  # its bytes' time with the path to itself, its frames back to back
    kind: str = ""  # of its traffic
    path: tuple[str, ...] = ()  # directions of links; none if it was never connected
    rate_bps: int | None = None  # at the end, where it is controlled


def messages(measurement: Measurement) -> dict[str, Any]:
    """The `messages` key, as docs/results.md has it."""
    return {
        "posted": measurement.posted,
        "completed": measurement.completed,
        "failed": measurement.failed,
        "bytes": measurement.completed_bytes,
        "latency_ns": measurement.latency_ps.summary_ns(),
        "completion_latency_ns": measurement.completion_ps.summary_ns(),
        "statuses": Counter(dict(sorted(measurement.statuses.items()))),
    }


def breakdown(measurement: Measurement) -> dict[str, Any]:
    """`breakdown_ns` (means a message), `breakdown_ps_total` (sums) and `breakdown_detail`."""
    total = dict(zip(PARTS, measurement.parts_ps, strict=True))
    control_ps = total.pop("control_frame_wait")
    total["queueing"] += control_ps
    whole_ps = sum(total.values())
    steps = dict(zip(STEPS, measurement.steps_ps, strict=True))
    turn_ps = steps.pop("turn")
    nic = {"pipelines": total["nic"] - turn_ps, "turn": turn_ps}
    total = {"host": total.pop("host"), **total, "total": whole_ps}
    count = max(measurement.delivered, 1)
    return {
        "breakdown_ns": {name: value / count / NS for name, value in total.items()},
        "breakdown_ps_total": total,
        "breakdown_detail": {
            "queueing_behind_control_frames_ns": control_ps / count / NS,
            "queueing_behind_control_frames_ps_total": control_ps,
            "host_ns": {name: value / count / NS for name, value in steps.items()},
            "host_ps_total": steps,
            "nic_ns": {name: value / count / NS for name, value in nic.items()},
            "nic_ps_total": nic,
        },
    }


def flows(measurement: Measurement, facts: Mapping[FlowKey, FlowFacts], now_ps: int) -> list[dict[str, Any]]:
    """The `flows` key: one entry a queue pair, in the order of their first posts."""
    window = measurement.fairness.window(now_ps)
    shares = window.delivered_bytes if window is not None else {}
    return [
        flow_entry(key.source, key.destination, key.qp_num, flow, facts.get(key, FlowFacts()), shares.get(key))
        for key, flow in measurement.flows.items()
    ]


def flow_entry(
    source: str,
    destination: str,
    qp_num: int,
    flow: Flow,
    facts: FlowFacts,
    window_bytes: int | None = None,
) -> dict[str, Any]:
    """One of `flows`."""
    fct_ps = flow.finish_ps - flow.start_ps if flow.finish_ps >= 0 else 0
    return {
        "src": source,
        "dst": destination,
        "qp": qp_num,
        "kind": facts.kind,
        "path": list(facts.path),
        "messages": flow.messages,
        "bytes": flow.bytes,
        "start_ns": flow.start_ps / NS,
        "finish_ns": max(flow.finish_ps, 0) / NS,
        "fct_ns": fct_ps / NS,
        "ideal_fct_ns": facts.ideal_ps / NS,
        "slowdown": fct_ps / facts.ideal_ps if facts.ideal_ps else 0.0,
        "rate_bps": facts.rate_bps,
        "window_bytes": window_bytes,
        "retransmitted": flow.retransmitted,
        "failed": flow.failed,
    }


def fair(measurement: Measurement, facts: Mapping[FlowKey, FlowFacts], now_ps: int) -> dict[str, Any]:
    """The `fairness` key: Jain's index, when all flows were active, and why shares differ if that can be told."""
    window = measurement.fairness.window(now_ps)
    least, largest = fairness.extremes(window)
    return {
        "jain": fairness.index(window, len(measurement.fairness.flows)),
        "window_ns": [window.start_ps / NS, window.end_ps / NS] if window is not None else [],
        "least_share": least,
        "largest_share": largest,
        "sentence": fairness.sentence(window, {key: each.path for key, each in facts.items()}),
    }


def links(counts: Iterable[LinkCount], virtual_ps: int) -> list[dict[str, Any]]:
    """The `links` key: one entry a direction. `tx_bytes` are wire bytes, gaps and framing overhead included."""
    return [
        {
            "name": link.name,
            "from": link.source,
            "to": link.destination,
            "tx_frames": link.tx_frames,
            "tx_bytes": link.tx_bytes,
            "utilization": link.busy_ps / virtual_ps if virtual_ps else 0.0,
            "paused_ns": link.paused_ps / NS,
            "credit_wait_ns": link.credit_wait_ps / NS,
            "pause_frames": link.pause_frames,
            "credit_frames": link.credit_frames,
            "max_queue_bytes": link.max_queue_bytes,
            "ecn_marked": link.ecn_marked,
            "dropped": link.dropped,
        }
        for link in counts
    ]


def rate_per_s(count: int, wall_s: float) -> float:
    """Whole units a second of wall time."""
    return round(count / wall_s) if wall_s > 0 else 0


def comparable(result: Mapping[str, Any]) -> dict[str, Any]:
    """The result without what may differ between wires and between runs."""
    rest = {key: value for key, value in result.items() if key != "wire"}
    rest["run"] = {key: value for key, value in result["run"].items() if key not in WALL_CLOCK_KEYS}
    return rest
