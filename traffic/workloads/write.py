"""`kind: write`: each pair's first host writes to its second."""

from __future__ import annotations

from emu.scenario.traffic import Write
from traffic.workloads.cluster import Cluster, write_all


def start(cluster: Cluster, model: Write) -> None:
    """Connect every pair and start its coroutine, one a queue pair."""
    for source, destination in model.pairs:
        for _ in range(model.qps):
            channel = cluster.connect(source, destination, model.size_bytes, depth=model.depth)
            cluster.engine.spawn(
                write_all(cluster.engine, channel, count=model.count, depth=model.depth, start_ps=model.start_ps)
            )
