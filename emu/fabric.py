"""Builds the devices of a topology, joins them, and checks at the end that nothing went missing."""

from __future__ import annotations

from collections.abc import Callable

from emu.addresses import Address
from emu.devices.egress import EgressPort
from emu.devices.nic import Nic, NicTiming
from emu.devices.port import FarEnd, Port
from emu.devices.switch import Switch
from emu.engine import Engine
from emu.errors import ScenarioError
from emu.frame import Envelope
from emu.framing.native import NativeFraming
from emu.framing.roce import RoceFraming
from emu.scenario.model import Scenario
from emu.subnet import Subnet
from emu.taps import Taps
from emu.topology import Kind, Link, PortName, Topology, reverse_name
from emu.transport.requester import RequesterConfig
from emu.verbs import Context
from emu.wire.base import Wire

Framing = RoceFraming | NativeFraming
Wires = Callable[[Link, Framing], tuple[Wire, Wire]]
"""The two directions of a link, a to b and b to a."""


def framing_of(scenario: Scenario) -> Framing:
    """How this scenario's frames look."""
    fabric = scenario.fabric
    framing = NativeFraming if fabric.framing == "native" else RoceFraming
    return framing(fabric.framing_overhead_bytes)


class Fabric:
    """All devices of one run, built first and then joined: what cannot be is refused before a wire is laid."""

    def __init__(self, engine: Engine, scenario: Scenario, topology: Topology, taps: Taps) -> None:
        self.topology = topology
        self.nics: dict[str, Nic] = {}
        self.switches: dict[str, Switch] = {}
        self.links: dict[str, tuple[Link, Port]] = {}  # by name of the direction
        self.contexts: dict[str, Context] = {}
        self.wires: list[Wire] = []
        self._engine, self._scenario, self._taps = engine, scenario, taps
        self._framing = framing_of(scenario)
        self._subnet = Subnet(topology)
        self._tables = self._subnet.tables()
        self._add_switches()
        self._add_nics()

    def join(self, wires: Wires | None) -> None:
        """Join the devices by `wires`; without, frames are handed over in memory."""
        if wires is not None:
            self._framing.prepare()
        for link in self.topology.links:
            self._join(link, wires(link, self._framing) if wires is not None else (None, None))
        for name, table in self._tables.items():
            chosen = self._single(table) if self._scenario.fabric.multipath == "single" else table
            self.switches[name].install({self._key(self._subnet.addresses[to]): ports for to, ports in chosen.items()})

    def _key(self, address: Address) -> int:
        """What frames of this framing carry as destination."""
        return address.lid if self._framing.name == "native" else address.ipv4

    @staticmethod
    def _single(table: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
        """One way to each destination, the destinations dealt out over the ways as a subnet manager would."""
        return {to: (ports[number % len(ports)],) for number, (to, ports) in enumerate(table.items()) if ports}

    def _add_switches(self) -> None:
        fabric = self._scenario.fabric
        for name in self.topology.switches:
            self.switches[name] = Switch(
                self._engine,
                name,
                hop_latency_ps=fabric.hop_latency_ps,
                switching=fabric.switching,
                slow_to_fast=fabric.slow_to_fast,
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
        )
        access = self._access_links()
        for name, address in self._subnet.addresses.items():
            link = access[name]
            direction = link.name if link.a.node == name else reverse_name(link)
            self.nics[name] = Nic(self._engine, address, link.rate_bps, direction, timing, self._taps)
            self.contexts[name] = Context(self._engine, self.nics[name], self._envelope, config, self._taps)

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

    def _envelope(self, source: Address, destination: Address, source_qp: int, destination_qp: int) -> Envelope:
        fabric = self._scenario.fabric
        return self._framing.envelope(
            source,
            destination,
            source_qp=source_qp,
            destination_qp=destination_qp,
            priority=fabric.priority,
            tos=(fabric.dscp << 2) | 0b10 if self._framing.name == "rocev2" else 0,  # ECT(0)
        )

    def _join(self, link: Link, wires: tuple[Wire | None, Wire | None]) -> None:
        for name, here, there, wire in (
            (link.name, link.a, link.b, wires[0]),
            (reverse_name(link), link.b, link.a, wires[1]),
        ):
            port = self._egress(name, here, link)
            port.join(self._far_end(there), link.propagation_ps, wire)
            self.links[name] = (link, port)
            if wire is not None:
                self.wires.append(wire)

    def _egress(self, name: str, here: PortName, link: Link) -> Port:
        if here.node in self.nics:
            return self.nics[here.node].port
        port = EgressPort(self._engine, name, link.rate_bps, self._taps)
        self.switches[here.node].ports[here.number] = port
        return port

    def _far_end(self, there: PortName) -> FarEnd:
        if there.node in self.nics:
            nic = self.nics[there.node]
            return FarEnd(nic.receive, True, 0, nic.timing.receive_ps)
        switch = self.switches[there.node]
        return FarEnd(switch.receive, switch.waits_for_last_bit, switch.hop_latency_ps, 0)
