"""What makes traffic: one file a kind, each with `start(cluster, model)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from traffic.workloads import all_to_all, incast, pause_storm, permutation, poisson, replay, victim, write
from traffic.workloads.cluster import Cluster

BY_KIND: dict[str, Callable[[Cluster, Any], None]] = {
    "write": write.start,
    "all_to_all": all_to_all.start,
    "incast": incast.start,
    "permutation": permutation.start,
    "poisson": poisson.start,
    "victim": victim.start,
    "pause_storm": pause_storm.start,
    "replay": replay.start,
}
