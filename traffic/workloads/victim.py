"""`kind: victim`: one flow that a congested port elsewhere holds up, though it sends nothing there."""

from __future__ import annotations

from emu.errors import ScenarioError
from emu.scenario.traffic import Victim
from traffic.workloads.cluster import Cluster
from traffic.workloads.posting import launch


def start(cluster: Cluster, model: Victim) -> None:
    """Connect the pair, which loading the scenario has chosen where it was not given."""
    if model.pair is None:
        raise ScenarioError("a victim's pair is missing: emu.scenario.load chooses it")
    channel = cluster.connect(
        *model.pair,
        model.size_bytes,
        op=model.op,
        depth=model.depth,
        priority=model.priority,
        kind=model.kind,
        setup=model.setup,
    )
    launch(cluster, channel, count=model.count, depth=model.depth, start_ps=model.start_ps)
