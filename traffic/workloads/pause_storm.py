"""`kind: pause_storm`: a broken NIC pauses its switch, again and again, for a while."""

from __future__ import annotations

from emu.errors import ScenarioError
from emu.scenario.traffic import PauseStorm
from traffic.workloads.cluster import Cluster


def start(cluster: Cluster, model: PauseStorm) -> None:
    """Let the host's NIC storm from `start` on. No coroutine: a storm does not keep a run alive."""
    if model.priority is None:
        raise ScenarioError("a storm's priority is missing: emu.scenario.load says which")
    nic, priority, duration_ps = cluster.contexts[model.host].nic, model.priority, model.duration_ps
    cluster.engine.at(model.start_ps, lambda _: nic.storm(priority, duration_ps))
