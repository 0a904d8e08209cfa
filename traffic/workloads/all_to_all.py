"""`kind: all_to_all`: every host writes a part of its own to every other host, nearest number first."""

from __future__ import annotations

from emu.scenario.traffic import AllToAll
from traffic.workloads.channel import SHIFT_BYTES, SHIFTS
from traffic.workloads.cluster import Cluster
from traffic.workloads.posting import launch

PART_STEP_BYTES = 64  # parts start this far apart, so that each peer gets other bytes


def start(cluster: Cluster, model: AllToAll) -> None:
    """Connect all pairs and start them together; host i begins with host i + 1, so no receiver is everyone's first."""
    hosts = list(cluster.contexts)
    for place, source in enumerate(hosts):
        cluster.source(source, model.size_bytes + len(hosts) * PART_STEP_BYTES + SHIFTS * SHIFT_BYTES)
        start_ps = model.start_ps + place * model.stagger_ps
        for step in range(1, len(hosts)):
            destination = hosts[(place + step) % len(hosts)]
            for _ in range(model.qps):
                channel = cluster.connect(
                    source,
                    destination,
                    model.size_bytes,
                    op=model.op,
                    offset=step * PART_STEP_BYTES,
                    priority=model.priority,
                    kind=model.kind,
                    setup=model.setup,
                )
                launch(cluster, channel, count=model.count, depth=1, start_ps=start_ps)
