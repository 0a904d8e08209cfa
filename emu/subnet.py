"""Addresses and forwarding tables: for every switch, which ports lead by a shortest way to each host."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from emu.addresses import Address, address_of
from emu.errors import ScenarioError
from emu.topology import Kind, Topology

Table = Mapping[str, tuple[int, ...]]
"""Destination host to port numbers, in link order."""


def single_path(table: Table) -> Table:
    """One way to each destination, the destinations dealt out over the ways as a subnet manager would."""
    return {to: (ports[number % len(ports)],) for number, (to, ports) in enumerate(table.items()) if ports}


class Subnet:
    """What an InfiniBand subnet manager or a routing protocol would have worked out for this topology."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self.addresses: dict[str, Address] = {
            name: address_of(name, number) for number, name in enumerate(topology.hosts)
        }
        self._neighbours: dict[str, list[tuple[int, str]]] = {node.name: [] for node in topology.nodes}
        for link in topology.links:
            self._neighbours[link.a.node].append((link.a.number, link.b.node))
            self._neighbours[link.b.node].append((link.b.number, link.a.node))

    def tables(self) -> dict[str, dict[str, tuple[int, ...]]]:
        """For each switch, a Table. Hosts do not forward. Raises ScenarioError where two hosts cannot meet.

        The ways to a host are the ways to a switch it is on, so they are worked out once for all hosts of that switch.
        """
        tables: dict[str, dict[str, tuple[int, ...]]] = {name: {} for name in self._topology.switches}
        for switch, hosts in self._hosts_by_switch().items():
            distance = self._distances(switch)
            self._check_reach(hosts[0], distance)
            for name, table in tables.items():
                if name == switch or name not in distance:
                    continue
                nearer = distance[name] - 1
                ways = tuple(port for port, node in self._neighbours[name] if distance.get(node) == nearer)
                table.update(dict.fromkeys(hosts, ways))
            local = set(hosts)
            for port, node in self._neighbours[switch]:
                if node in local:
                    tables[switch][node] = (port,)
        for host in self._topology.hosts:
            ends = [node for _, node in self._neighbours[host]]
            if not any(self._topology.kind(node) is Kind.SWITCH for node in ends):
                self._check_reach(host, dict.fromkeys([host, *ends], 0))
        return tables

    def _hosts_by_switch(self) -> dict[str, list[str]]:
        """The hosts on each switch that has any; a host back to back with another is on none."""
        on: dict[str, list[str]] = {}
        for host in self._topology.hosts:
            for _, node in self._neighbours[host]:
                if self._topology.kind(node) is Kind.SWITCH:
                    on.setdefault(node, []).append(host)
        return on

    def _distances(self, start: str) -> dict[str, int]:
        """Links from every node to switch `start`; a host in between ends the way."""
        distance = {start: 0}
        queue = deque([start])
        while queue:
            node = queue.popleft()
            for _, neighbour in self._neighbours[node]:
                if neighbour not in distance:
                    distance[neighbour] = distance[node] + 1
                    if self._topology.kind(neighbour) is Kind.SWITCH:
                        queue.append(neighbour)
        return distance

    def _check_reach(self, host: str, distance: Mapping[str, int]) -> None:
        for other in self._topology.hosts:
            if other not in distance:
                raise ScenarioError(f"host {other} cannot reach host {host}: no way of links leads there")
