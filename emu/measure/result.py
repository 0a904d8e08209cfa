"""The result of a run as one dictionary: the keys of docs/results.md, units in their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from emu.measure.measurement import Flow, FlowKey, Measurement
from emu.parts import PARTS
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
    total = {"host": 0, **total, "total": sum(total.values())}
    count = max(measurement.delivered, 1)
    return {
        "breakdown_ns": {name: value / count / NS for name, value in total.items()},
        "breakdown_ps_total": total,
        "breakdown_detail": {
            "queueing_behind_control_frames_ns": control_ps / count / NS,
            "queueing_behind_control_frames_ps_total": control_ps,
        },
    }


def flows(measurement: Measurement, ideal_ps: Mapping[FlowKey, int]) -> list[dict[str, Any]]:
    """The `flows` key: one entry a queue pair, in the order of their first posts."""
    return [
        flow_entry(key.source, key.destination, key.qp_num, flow, ideal_ps.get(key, 0))
        for key, flow in measurement.flows.items()
    ]


def flow_entry(source: str, destination: str, qp_num: int, flow: Flow, ideal_ps: int) -> dict[str, Any]:
    """One of `flows`; `ideal_fct_ns` is its bytes' time with the path to itself, its frames back to back."""
    fct_ps = flow.finish_ps - flow.start_ps if flow.finish_ps >= 0 else 0
    return {
        "src": source,
        "dst": destination,
        "qp": qp_num,
        "messages": flow.messages,
        "bytes": flow.bytes,
        "start_ns": flow.start_ps / NS,
        "finish_ns": max(flow.finish_ps, 0) / NS,
        "fct_ns": fct_ps / NS,
        "ideal_fct_ns": ideal_ps / NS,
        "slowdown": fct_ps / ideal_ps if ideal_ps else 0.0,
        "retransmitted": flow.retransmitted,
        "failed": flow.failed,
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
            "paused_ns": 0.0,
            "credit_wait_ns": 0.0,
            "pause_frames": 0,
            "credit_frames": 0,
            "max_queue_bytes": link.max_queue_bytes,
            "ecn_marked": 0,
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
