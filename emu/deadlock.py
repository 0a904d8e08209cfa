"""Cyclic buffer dependencies: whether a topology and its forwarding tables can deadlock, and around which links.

Dally and Seitz, Deadlock-Free Message Routing, IEEE Trans. Comp. 1987: a channel is one direction of a link in one
virtual lane (or priority), and waits for the channels that a frame in its buffer may take next. Without a cycle of
waits there is no deadlock. With one there may be, if traffic fills it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import TypeVar

from emu.errors import ScenarioError
from emu.subnet import Table
from emu.topology import PortName, Topology, reverse_name

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
    reach = _Reach(topology, tables, lanes, next_lane)
    cycle = shortest_cycle(reach.waits_between_switches() if nics_sink else reach.waits(nics_sink=False))
    if cycle is None:
        return None
    several = len({lane for _, lane in reach.carried}) > 1
    return [f"{name} lane {lane}" if several else name for name, lane in cycle]


def dependencies(
    topology: Topology,
    tables: Mapping[str, Table],
    *,
    lanes: Sequence[int] = (0,),
    next_lane: NextLane | None = None,
    nics_sink: bool = True,
) -> dict[Channel, list[Channel]]:
    """The channels that any host's frame to any host can take, and those each may wait for, in the links' order."""
    return _Reach(topology, tables, lanes, next_lane).waits(nics_sink=nics_sink)


class _Reach:
    """For each channel, the hosts that a frame in it may be going to: a set, as the bits of one integer."""

    def __init__(
        self, topology: Topology, tables: Mapping[str, Table], lanes: Sequence[int], next_lane: NextLane | None
    ) -> None:
        self._next_lane = next_lane
        self._hosts = {host: 1 << number for number, host in enumerate(topology.hosts)}
        self._out: dict[PortName, tuple[str, PortName]] = {}  # port to the direction's name and the port at its end
        for link in topology.links:
            self._out[link.a] = (link.name, link.b)
            self._out[link.b] = (reverse_name(link), link.a)
        self._ends = dict(self._out.values())  # a direction's name to the port that it ends at
        self._starts = {name: port for port, (name, _) in self._out.items()}
        self._ways = {switch: self._ways_from(switch, table) for switch, table in tables.items()}
        self.carried: dict[Channel, int] = {}
        self._spread(lanes)

    def _ways_from(self, switch: str, table: Table) -> list[tuple[PortName, int]]:
        """A switch's ports, and the hosts that each leads to."""
        by_ports: dict[tuple[int, ...], int] = {}  # many hosts have the same ways
        for host, numbers in table.items():
            by_ports[numbers] = by_ports.get(numbers, 0) | self._hosts.get(host, 0)
        ways: dict[PortName, int] = {}
        for numbers, hosts in by_ports.items():
            for number in numbers:
                port = PortName(switch, number)
                if port not in self._out:
                    raise ScenarioError(f"the forwarding table of {switch} names port {number}, which has no link")
                ways[port] = ways.get(port, 0) | hosts
        return list(ways.items())

    def _spread(self, lanes: Sequence[int]) -> None:
        """From every host to all others, as far as the tables lead."""
        everywhere = (1 << len(self._hosts)) - 1
        news: dict[Channel, int] = {}  # what else a channel may carry, not looked at beyond it so far
        for port, (name, _) in self._out.items():
            if port.node in self._hosts:
                news.update(((name, lane), everywhere & ~self._hosts[port.node]) for lane in lanes)
        # Where lanes do not depend on it, it does not matter by which port frames came in to a switch.
        seen: dict[tuple[str, int, int], int] = {}
        while news:
            channel = next(iter(news))  # the oldest: far fewer are looked at twice than with the newest first
            hosts = news.pop(channel)
            self.carried[channel] = self.carried.get(channel, 0) | hosts
            end = self._ends[channel[0]]
            place = (end.node, 0 if self._next_lane is None else end.number, channel[1])
            hosts &= ~seen.get(place, 0)
            seen[place] = seen.get(place, 0) | hosts
            for onward, to in self._onward(channel, hosts):
                if to & ~self.carried.get(onward, 0):
                    news[onward] = news.get(onward, 0) | to

    def _onward(self, channel: Channel, hosts: int) -> Iterator[tuple[Channel, int]]:
        """The channels that frames to those hosts take next, and to which of them by each."""
        name, lane = channel
        end = self._ends[name]
        for port, leads_to in self._ways.get(end.node, ()):
            to = hosts & leads_to
            if to:
                lane_on = lane if self._next_lane is None else self._next_lane(end.node, end.number, port.number, lane)
                yield (self._out[port][0], lane_on), to

    def waits(self, *, nics_sink: bool) -> dict[Channel, list[Channel]]:
        """Each channel and those it may wait for, in the links' order."""
        waits = {
            channel: [on for on, _ in self._onward(channel, self.carried[channel])] for channel in self._channels()
        }
        if not nics_sink:  # what ends at a host waits for all that begins there: answers leave before requests come in
            begin: dict[str, list[Channel]] = {}
            for channel in waits:
                begin.setdefault(self._starts[channel[0]].node, []).append(channel)
            for (name, _), after in waits.items():
                if self._ends[name].node in self._hosts:
                    after += begin.get(self._ends[name].node, ())
        return waits

    def waits_between_switches(self) -> dict[Channel, list[Channel]]:
        """The same where NICs sink: nobody waits for what leaves a host, and what ends at one waits for nobody."""
        inner = [
            channel
            for channel in self._channels()
            if not {self._starts[channel[0]].node, self._ends[channel[0]].node} & self._hosts.keys()
        ]
        known = set(inner)
        return {
            channel: [on for on, _ in self._onward(channel, self.carried[channel]) if on in known] for channel in inner
        }

    def _channels(self) -> list[Channel]:
        order = {name: number for number, name in enumerate(self._ends)}
        return sorted(self.carried, key=lambda channel: order[channel[0]])


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
