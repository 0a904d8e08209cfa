"""Messages of 8 bytes through the whole host path: events for each, and the time that 100,000 take."""

from __future__ import annotations

import time

from emu.run import Options, run
from emu.scenario.load import parse
from tests.bench.figure import Figure

MESSAGES = 100_000
SHORT = 10_000
EVENTS_LIMIT = {1: 30, 32: 20}  # by WQEs a doorbell
SECONDS_LIMIT = 30
WARPS = 32  # as many WQEs ask at once as a doorbell tells of; more warps find the queue full, and ring for fewer


def measure() -> list[Figure]:
    """Events by doorbell batch, then seconds."""
    figures = []
    for batch, limit in EVENTS_LIMIT.items():
        count = MESSAGES if batch > 1 else SHORT
        events, seconds = _run(batch, count)
        figures.append(
            Figure(
                f"events a message, ibgda, {batch} WQE{'s' if batch > 1 else ''} a doorbell",
                events / count,
                limit,
                f"{events} events, the network's included, {count / seconds:.0f} messages/s in memory",
            )
        )
    detail = f"{MESSAGES} RDMA WRITEs of 8 bytes, GPU to GPU by one switch, in memory"
    figures.append(Figure(f"seconds for {MESSAGES} messages by ibgda", seconds, SECONDS_LIMIT, detail))
    return figures


def _run(batch: int, count: int) -> tuple[int, float]:
    text = f"""
name: bench
fabric: {{profile: native, topology: {{kind: leaf_spine, leaves: 1, spines: 1, hosts_per_leaf: 2}}}}
host: {{path: ibgda, gpu: {{warps: {WARPS}}}, queues: {{num_requests_in_batch: {batch}}}}}
traffic: [{{kind: write, pairs: [[h0, h1]], size: 8B, count: {count // 2}, qps: 2, depth: 1024}}]
"""
    began = time.perf_counter()
    result = run(parse(text, "bench.yaml", ()), Options(wire="memory"))
    assert result["messages"]["completed"] == count
    return result["run"]["events"], time.perf_counter() - began
