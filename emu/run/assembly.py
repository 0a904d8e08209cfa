"""One run, built and ready: the devices of a scenario, its traffic, and what watches it."""

from __future__ import annotations

from collections.abc import Callable

import topologies
from emu.engine import Engine
from emu.errors import ScenarioError
from emu.fabric import Fabric, GpuWires, Wires
from emu.frame import Message
from emu.measure.measurement import Measurement
from emu.run.foreign import ForeignDoor
from emu.run.route import Routes
from emu.scenario.model import Scenario
from emu.scenario.replay import Replay
from emu.taps import Taps
from emu.topology import Topology
from emu.verbs.cm import CmConfig
from traffic.workloads import BY_KIND, replay
from traffic.workloads.cluster import Cluster


def topology_of(scenario: Scenario) -> Topology:
    """The fabric that the scenario describes."""
    return topologies.build(scenario.fabric.topology, scenario.fabric.link_defaults)


def _prepare(scenario: Scenario) -> None:
    """Refuse captures that cannot be replayed here."""
    hosts = scenario.fabric.topology.host_names()
    for place, traffic in enumerate(scenario.traffic):
        if isinstance(traffic, Replay):
            try:
                replay.prepare(traffic, hosts, scenario.fabric.path_mtu_bytes)
            except ScenarioError as error:
                raise scenario.mistake(str(error), "traffic", place) from None


class Assembly:
    """Devices first, without wires, so that what cannot be is refused before anything is laid; then `join`."""

    def __init__(self, scenario: Scenario, on_message: Callable[[Message], object] | None = None) -> None:
        self.scenario = scenario
        _prepare(scenario)
        self.engine = Engine()
        self.taps = Taps()
        self.topology = topology_of(scenario)
        self.fabric = Fabric(self.engine, scenario, self.topology, self.taps)
        self.routes = Routes(self.fabric, scenario)
        self.measurement = Measurement(self.taps, self.routes.message_floor_ps, on_message)
        self.door: ForeignDoor | None = None

    def join(self, wires: Wires | None, gpu_wires: GpuWires | None = None, *, accept_foreign: bool = False) -> None:
        """Join the devices by `wires` (None: in memory) and start the traffic's coroutines at time 0."""
        self.fabric.join(wires, gpu_wires)
        if accept_foreign:
            self.door = ForeignDoor(self.fabric)
        nic = self.scenario.host.nic
        cm = CmConfig(timeout_code=nic.cm_timeout_code, retries=nic.cm_retries)
        cluster = Cluster(self.engine, self.fabric.contexts, self.scenario.run.seed, cm=cm)
        for traffic in self.scenario.traffic:
            BY_KIND[traffic.kind](cluster, traffic)
        for when_ps in self.scenario.run.fairness_window_ps or ():
            self.engine.at(when_ps, self.measurement.fairness.read, when_ps)
