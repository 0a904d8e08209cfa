"""Cyclic buffer dependencies: whether a topology and its forwarding tables can deadlock, and around which links.

Dally and Seitz, Deadlock-Free Message Routing, IEEE Trans. Comp. 1987: a channel is one direction of a link in one
virtual lane (or priority), and waits for the channels that a frame in its buffer may take next. Without a cycle of
waits there is no deadlock. With one there may be, if traffic fills it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import TypeVar

from emu.errors import ScenarioError
from emu.subnet import Table
from emu.topology import Kind, PortName, Topology, reverse_name

NextLane = Callable[[str, int, int, int], int]
"""Switch, port in, port out and lane in to the lane out."""

Channel = tuple[str, int]
"""A link's direction by name, and a lane."""

Item = TypeVar("Item", bound=Hashable)


def find_cycle(
    topology: Topology,
    tables: Mapping[str, Table],
    *,
    lanes: Sequence[int] = (0,),
    next_lane: NextLane | None = None,
    nics_sink: bool = True,
) -> list[str] | None:
    """The links of a shortest cycle of waits, each waiting for the next and the last for the first; None: no deadlock.

    Without `next_lane` a frame keeps its lane. With several lanes a link is named with its lane: `s0-s1 lane 1`.
    `nics_sink=False`: a NIC that takes nothing in while what it sends is stuck. Raises ScenarioError for a bad table.
    """
    waits = dependencies(topology, tables, lanes=lanes, next_lane=next_lane, nics_sink=nics_sink)
    cycle = shortest_cycle(waits)
    if cycle is None:
        return None
    several = len({lane for _, lane in waits}) > 1
    return [f"{name} lane {lane}" if several else name for name, lane in cycle]


def dependencies(
    topology: Topology,
    tables: Mapping[str, Table],
    *,
    lanes: Sequence[int] = (0,),
    next_lane: NextLane | None = None,
    nics_sink: bool = True,
) -> dict[Channel, list[Channel]]:
    """The channels that any host's frame to any host can take, and those each may wait for, in the links' order.

    What cannot be part of a cycle is left out where it saves work: with NICs that sink, one host of a switch stands for
    all that send there, and one destination for all that every switch has the same ways between switches to.
    """
    walk = _Walk(topology, tables, next_lane, whole=not nics_sink or next_lane is not None)
    seen: set[Hashable] = set()
    for host in topology.hosts:
        column = walk.column(host)
        if column not in seen:
            seen.add(column)
            walk.towards(host, lanes)
    if not nics_sink:
        walk.join_at_nics()
    names = (name for link in topology.links for name in (link.name, reverse_name(link)))
    order = {name: number for number, name in enumerate(names)}
    return {channel: list(walk.waits[channel]) for channel in sorted(walk.waits, key=lambda each: order[each[0]])}


class _Walk:
    """Follows the tables, one destination after the other, and notes which channel leads on to which."""

    def __init__(
        self, topology: Topology, tables: Mapping[str, Table], next_lane: NextLane | None, *, whole: bool
    ) -> None:
        self._topology = topology
        self._tables = tables
        self._whole = whole
        self._next_lane = next_lane
        self._out: dict[PortName, tuple[str, PortName]] = {}  # port to the direction's name and the port at its end
        for link in topology.links:
            self._out[link.a] = (link.name, link.b)
            self._out[link.b] = (reverse_name(link), link.a)
        self._first: dict[str, list[PortName]] = {host: [] for host in topology.hosts}
        for port in self._out:
            if port.node in self._first:
                self._first[port.node].append(port)
        self.waits: dict[Channel, dict[Channel, None]] = {}
        self._into: dict[str, dict[Channel, None]] = {}  # host to the channels that end there
        self._from: dict[str, dict[Channel, None]] = {}  # and those that begin there

    def column(self, destination: str) -> Hashable:
        """Destinations with the same column have the same waits between switches."""
        if self._whole:
            return destination
        ways = [
            tuple(number for number in table.get(destination, ()) if not self._ends(PortName(switch, number)))
            for switch, table in self._tables.items()
        ]
        return tuple(ways), tuple(self._out[port][1].node for port in self._starts(destination))

    def _starts(self, destination: str) -> list[PortName]:
        """The ports of the hosts that send to this one; but for `whole`, one for each switch."""
        ports = [port for host, ports in self._first.items() if host != destination for port in ports]
        if self._whole:
            return ports
        by_switch: dict[str, PortName] = {}
        for port in ports:
            by_switch.setdefault(self._out[port][1].node, port)
        return list(by_switch.values())

    def _ends(self, port: PortName) -> bool:
        """Whether a host is at the other end."""
        return port in self._out and self._topology.kind(self._out[port][1].node) is Kind.HOST

    def towards(self, destination: str, lanes: Sequence[int]) -> None:
        """Every way from every host to this one."""
        seen: set[tuple[PortName, int]] = set()
        # Channels: the port that it leaves by, and its lane.
        todo = deque((port, lane) for port in self._starts(destination) for lane in lanes)
        while todo:
            port, lane = state = todo.popleft()
            if state in seen:
                continue
            seen.add(state)
            channel, end = self._channel(port, lane)
            if self._topology.kind(end.node) is Kind.HOST:
                self._into.setdefault(end.node, {})[channel] = None
                continue
            for number in self._tables.get(end.node, {}).get(destination, ()):
                onward = PortName(end.node, number)
                lane_on = lane if self._next_lane is None else self._next_lane(end.node, end.number, number, lane)
                self.waits[channel][self._channel(onward, lane_on)[0]] = None
                todo.append((onward, lane_on))

    def join_at_nics(self) -> None:
        """What ends at a host waits for all that begins there: answers go out before requests are taken in."""
        for host, channels in self._into.items():
            for channel in channels:
                self.waits[channel].update(self._from.get(host, {}))

    def _channel(self, port: PortName, lane: int) -> tuple[Channel, PortName]:
        if port not in self._out:
            raise ScenarioError(f"the forwarding table of {port.node} names port {port.number}, which has no link")
        name, end = self._out[port]
        channel = (name, lane)
        if channel not in self.waits:
            self.waits[channel] = {}
            if port.node in self._first:
                self._from.setdefault(port.node, {})[channel] = None
        return channel, end


def shortest_cycle(waits: Mapping[Item, Iterable[Item]]) -> list[Item] | None:
    """A cycle of who waits for whom, no other being shorter through any of its members; None if there is none.

    Also for a running fabric: who waits for whom now. It begins with the member that comes first in `waits`.
    """
    graph = {item: list(after) for item, after in waits.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        members = dict.fromkeys(error.args[1])
    else:
        return None
    cycle = min((_cycle_through(member, graph) for member in members), key=len)
    order = {item: number for number, item in enumerate(graph)}
    start = min(range(len(cycle)), key=lambda index: order[cycle[index]])
    return cycle[start:] + cycle[:start]


def _cycle_through(start: Item, graph: Mapping[Item, Sequence[Item]]) -> list[Item]:
    """A shortest cycle through an item that lies on one, breadth first."""
    came_from: dict[Item, Item] = {}
    queue = deque([start])
    while start not in came_from:
        item = queue.popleft()
        for after in graph.get(item, ()):
            if after not in came_from:
                came_from[after] = item
                queue.append(after)
    cycle = [start]
    while came_from[cycle[-1]] != start:
        cycle.append(came_from[cycle[-1]])
    return cycle[:1] + cycle[:0:-1]
