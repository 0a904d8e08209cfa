"""Builds the devices of a topology, joins them, and checks at the end that nothing went missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from emu import lossless
from emu.addresses import Address
from emu.attachment import Attachments
from emu.devices.nic import Nic
from emu.devices.nic_config import NicTiming
from emu.devices.port import Port
from emu.devices.switch import Switch
from emu.engine import Engine
from emu.errors import ScenarioError
from emu.frame import Envelope
from emu.framing.native import NativeFraming
from emu.framing.roce import RoceFraming
from emu.host.host import Host
from emu.scenario.model import Scenario
from emu.subnet import Subnet, Table, single_path
from emu.taps import Taps
from emu.topology import Kind, Link, PortName, Topology, reverse_name
from emu.transport.received import ResponderConfig
from emu.transport.requester import RequesterConfig
from emu.verbs import Context
from emu.wire.base import Wire

Framing = RoceFraming | NativeFraming
Wires = Callable[[Link, Framing], tuple[Wire, Wire]]
"""The two directions of a link, a to b and b to a."""
GpuWires = Callable[[str], tuple[Wire, Wire]]
"""The two directions of the PCIe link of a host's GPU, from it and to it."""

ECT_0 = 0b10  # RFC 3168: what sends this understands marks


def framing_of(scenario: Scenario) -> Framing:
    """How this scenario's frames look."""
    fabric = scenario.fabric
    if fabric.framing == "native":
        return NativeFraming(fabric.framing_overhead_bytes, lossless.sl_to_vl(fabric).by_sl)
    priorities = lossless.priority_map(fabric)
    return RoceFraming(fabric.framing_overhead_bytes, priorities.by_dscp, priorities.queues)


class Fabric:
    """All devices of one run, built first and then joined: what cannot be is refused before a wire is laid."""

    def __init__(self, engine: Engine, scenario: Scenario, topology: Topology, taps: Taps) -> None:
        self.topology = topology
        self.nics: dict[str, Nic] = {}
        self.switches: dict[str, Switch] = {}
        self.links: dict[str, tuple[Link, Port]] = {}  # by name of the direction
        self.contexts: dict[str, Context] = {}
        self.hosts: dict[str, Host] = {}  # where work requests come to the NICs by PCIe
        self.wires: list[Wire] = []
        self._engine, self._scenario, self._taps = engine, scenario, taps
        self._framing = framing_of(scenario)
        lossless.check(scenario, topology, self._framing)
        self.attachments = Attachments(engine, scenario, self._framing, taps)
        self._subnet = Subnet(topology)
        self.tables = self._forwarding()  # by switch
        self._add_switches()
        self._add_nics()

    def join(self, wires: Wires | None, gpu_wires: GpuWires | None = None) -> None:
        """Join the devices by `wires`; without, frames are handed over in memory, and so are TLPs to and from GPUs."""
        if wires is not None:
            self._framing.prepare()
        for link in self.topology.links:
            self._join(link, wires(link, self._framing) if wires is not None else (None, None))
        for name, host in self.hosts.items():
            both = gpu_wires(name) if gpu_wires is not None else None
            host.tree.join(both)
            self.wires += both or ()
        for name, table in self.tables.items():
            self.switches[name].install({self._key(self._subnet.addresses[to]): ports for to, ports in table.items()})

    def _forwarding(self) -> Mapping[str, Table]:
        tables = self._subnet.tables()
        if self._scenario.fabric.multipath != "single":
            return tables
        return {name: single_path(table) for name, table in tables.items()}

    def _key(self, address: Address) -> int:
        """What frames of this framing carry as destination."""
        return address.lid if self._framing.name == "native" else address.ipv4

    def _add_switches(self) -> None:
        fabric = self._scenario.fabric
        for number, name in enumerate(self.topology.switches):
            self.switches[name] = Switch(
                self._engine,
                name,
                hop_latency_ps=fabric.hop_latency_ps,
                switching=fabric.switching,
                slow_to_fast=fabric.slow_to_fast,
                deals_from=number if fabric.multipath == "balanced" else None,
            )

    def _add_nics(self) -> None:
        nic = self._scenario.host.nic
        timing = NicTiming(
            post_ps=nic.post_ps,
            receive_ps=nic.receive_ps,
            ack_turnaround_ps=nic.ack_turnaround_ps,
            delivery_ps=nic.delivery_ps,
            cqe_ps=nic.cqe_ps,
        )
        config = RequesterConfig(
            path_mtu_bytes=self._scenario.fabric.path_mtu_bytes,
            window_packets=nic.window_packets,
            ack_every_packets=nic.ack_every_packets,
            ack_timeout_code=nic.ack_timeout_code,
            retry_cnt=nic.retry_cnt,
            selective=nic.loss_recovery == "selective_repeat",
        )
        responder = ResponderConfig(
            path_mtu_bytes=config.path_mtu_bytes, hold_packets=nic.window_packets if config.selective else 0
        )
        access = self._access_links()
        for name, address in self._subnet.addresses.items():
            link = access[name]
            direction = link.name if link.a.node == name else reverse_name(link)
            self.nics[name] = Nic(
                self._engine,
                address,
                link.rate_bps,
                direction,
                timing,
                self._taps,
                lanes=self.attachments.lanes,
                arbiter=self.attachments.arbiter(),
                cost=self.attachments.cost,
                congestion=self.attachments.congestion(link.rate_bps),
            )
            if self._scenario.host.path != "none":
                self.hosts[name] = Host(self._engine, self.nics[name], self._scenario.host, self._taps)
                self.nics[name].host = self.hosts[name]
            self.contexts[name] = Context(self._engine, self.nics[name], self._envelopes, config, self._taps, responder)

    def _access_links(self) -> dict[str, Link]:
        access: dict[str, Link] = {}
        for link in self.topology.links:
            for port in (link.a, link.b):
                if self.topology.kind(port.node) is Kind.HOST:
                    if port.node in access:
                        raise ScenarioError(f"host {port.node} has several links; one port a host is supported so far")
                    access[port.node] = link
        for host in self.topology.hosts:
            if host not in access:
                raise ScenarioError(f"host {host} has no link")
        return access

    def _envelopes(
        self, source: Address, destination: Address, source_qp: int, destination_qp: int, priority: int | None
    ) -> tuple[Envelope, Envelope | None]:
        """The headers of a queue pair's frames, and of its congestion notifications where there are such."""
        fabric, framing = self._scenario.fabric, self._framing
        level = fabric.priority if priority is None else priority
        is_roce = framing.name == "rocev2"
        make = partial(framing.envelope, source, destination, source_qp=source_qp, destination_qp=destination_qp)
        data = make(priority=level, tos=fabric.dscp_of(level) << 2 | ECT_0 if is_roce else 0)
        if fabric.congestion_control == "none":
            return data, None
        if is_roce:
            return data, make(priority=fabric.cnp.priority, tos=fabric.cnp.dscp << 2)
        return data, make(priority=level)

    def _join(self, link: Link, wires: tuple[Wire | None, Wire | None]) -> None:
        make = self.attachments
        ends = ((link.name, link.a, wires[0]), (reverse_name(link), link.b, wires[1]))
        nodes = [self._node(end) for _, end, _ in ends]
        ports = [self._egress(name, end, link) for name, end, _ in ends]
        ingresses = [
            make.ingress(node, end.number, port, link)
            for node, (_, end, _), port in zip(nodes, ends, ports, strict=True)
        ]
        for here, there in ((0, 1), (1, 0)):
            name, _, wire = ends[here]
            ports[here].join(make.far_end(nodes[there], ingresses[there]), link.propagation_ps, wire)
            make.inject(ports[here], link, nodes[there], ingresses[there])
            self.links[name] = (link, ports[here])
            if wire is not None:
                self.wires.append(wire)
        make.pair(ingresses[0], ingresses[1])

    def _node(self, end: PortName) -> Nic | Switch:
        return self.nics[end.node] if end.node in self.nics else self.switches[end.node]

    def _egress(self, name: str, here: PortName, link: Link) -> Port:
        if here.node in self.nics:
            return self.nics[here.node].port
        switch = self.switches[here.node]
        port = switch.ports[here.number] = self.attachments.egress(name, link)
        port.on_drop, port.on_abandoned = switch.give_up, switch.abandon
        return port
