"""What makes traffic: one file a kind, each with `start(cluster, model)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from traffic.workloads import all_to_all, write
from traffic.workloads.cluster import Cluster

BY_KIND: dict[str, Callable[[Cluster, Any], None]] = {"write": write.start, "all_to_all": all_to_all.start}
