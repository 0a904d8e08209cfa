"""`kind: write`: each pair's first host writes to its second."""

from __future__ import annotations

from emu.scenario.traffic import Write
from traffic.workloads.cluster import Cluster
from traffic.workloads.posting import launch


def start(cluster: Cluster, model: Write) -> None:
    """Connect every pair and start its coroutine, one a queue pair."""
    for place, (source, destination) in enumerate(model.pairs):
        start_ps = model.start_ps + place * model.stagger_ps
        for _ in range(model.qps):
            channel = cluster.connect(
                source,
                destination,
                model.size_bytes,
                op=model.op,
                depth=model.depth,
                priority=model.priority,
                kind=model.kind,
                setup=model.setup,
            )
            launch(cluster, channel, count=model.count, depth=model.depth, start_ps=start_ps)
