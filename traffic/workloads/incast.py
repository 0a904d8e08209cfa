"""`kind: incast`: many hosts write to one."""

from __future__ import annotations

from emu.scenario.traffic import Incast
from traffic.workloads.cluster import Cluster
from traffic.workloads.posting import launch


def start(cluster: Cluster, model: Incast) -> None:
    """Connect every sender with the receiver, and start them together or `stagger` after one another."""
    for place, sender in enumerate(model.sender_names(tuple(cluster.contexts))):
        start_ps = model.start_ps + place * model.stagger_ps
        for _ in range(model.qps):
            channel = cluster.connect(
                sender,
                model.receiver,
                model.size_bytes,
                op=model.op,
                depth=model.depth,
                priority=model.priority,
                kind=model.kind,
                setup=model.setup,
            )
            launch(cluster, channel, count=model.count, depth=model.depth, start_ps=start_ps)
