"""`kind: permutation`: every host writes to one other, and is written to by one other."""

from __future__ import annotations

import random
from collections.abc import Sequence

from emu.engine import stream
from emu.scenario.traffic import Permutation
from traffic.workloads.cluster import Cluster
from traffic.workloads.posting import launch


def start(cluster: Cluster, model: Permutation) -> None:
    """Draw who writes to whom and start everyone, one coroutine a queue pair."""
    hosts = list(cluster.contexts)
    targets = derangement(hosts, stream(cluster.seed, cluster.numbers(model.kind)))
    for place, (source, destination) in enumerate(zip(hosts, targets, strict=True)):
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


def derangement(hosts: Sequence[str], numbers: random.Random) -> list[str]:
    """The hosts in an order in which none keeps its place, all such orders equally likely; two hosts at least."""
    targets = list(hosts)
    while any(source == target for source, target in zip(hosts, targets, strict=True)):
        numbers.shuffle(targets)  # one in e shuffles will do, however many hosts there are
    return targets
