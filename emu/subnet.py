"""Addresses and forwarding tables: for every switch, which ports lead by a shortest way to each host."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from emu.addresses import Address, address_of
from emu.errors import ScenarioError
from emu.topology import Kind, Link, Topology

Table = Mapping[str, tuple[int, ...]]
"""Destination host to port numbers, in link order."""


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
        """For each switch, a Table. Hosts do not forward. Raises ScenarioError where two hosts cannot meet."""
        tables: dict[str, dict[str, tuple[int, ...]]] = {name: {} for name in self._topology.switches}
        for host in self._topology.hosts:
            distance = self._distances(host)
            for switch, table in tables.items():
                if switch in distance:
                    nearer = distance[switch] - 1
                    table[host] = tuple(port for port, node in self._neighbours[switch] if distance.get(node) == nearer)
            self._check_reach(host, distance)
        return tables

    def _distances(self, host: str) -> dict[str, int]:
        """Links from every node to `host`; a host in between ends the way."""
        distance = {host: 0}
        queue = deque([host])
        while queue:
            node = queue.popleft()
            if node != host and self._topology.kind(node) is Kind.HOST:
                continue
            for _, neighbour in self._neighbours[node]:
                if neighbour not in distance:
                    distance[neighbour] = distance[node] + 1
                    queue.append(neighbour)
        return distance

    def _check_reach(self, host: str, distance: Mapping[str, int]) -> None:
        for other in self._topology.hosts:
            if other not in distance:
                raise ScenarioError(f"host {other} cannot reach host {host}: no way of links leads there")


def access_link(topology: Topology, host: str) -> Link:
    """The one link of a host. Raises ScenarioError for none; for more than one, not yet."""
    links = [link for link in topology.links if host in (link.a.node, link.b.node)]
    if len(links) != 1:
        reason = "has no link" if not links else f"has {len(links)} links; several ports a host are not supported yet"
        raise ScenarioError(f"host {host} {reason}")
    return links[0]
