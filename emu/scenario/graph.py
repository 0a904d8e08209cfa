"""Parameters of the topology kind `graph`: any hosts, switches and links, by name; checked where they were written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema, model_validator

from emu.addresses import HOST_LIMIT
from emu.errors import ScenarioError
from emu.scenario.field import Length, Model, Rate, nearest, refuse, show
from emu.topology import INTERFACE_NAME_LIMIT, PortName, check_name

LINK_LIMIT = 100_000
SWITCH_LIMIT = 10_000
PORT_LIMIT = 9_999
WHY_HOSTS = "each needs a unicast LID of its own"
WHY_LINKS = "each needs a veth pair and two sockets"
WHY_SWITCHES = "each needs a network namespace"


def check_size(hosts: int, switches: int, links: int) -> None:
    """Refuse what is too big to build, saying why."""
    for count, what, limit, why in (
        (hosts, "hosts", HOST_LIMIT, WHY_HOSTS),
        (switches, "switches", SWITCH_LIMIT, WHY_SWITCHES),
        (links, "links", LINK_LIMIT, WHY_LINKS),
    ):
        if count > limit:
            raise refuse(f"{count} {what}: at most {limit} ({why})")


class End(NamedTuple):
    """One end of a graph's link; `port` is None where the next free one is meant."""

    node: str
    port: int | None

    def __str__(self) -> str:
        return self.node if self.port is None else f"{self.node}:{self.port}"


def _read_end(value: object) -> End:
    if isinstance(value, End):
        return value
    match = re.fullmatch(r"(.*?)(?::([0-9]{1,9}))?", value) if isinstance(value, str) else None
    if match is None:
        raise refuse(f"{show(value)} is no end of a link: write node:port or node, like 'leaf0:1'")
    port = None if match[2] is None else int(match[2])
    if port is not None and port > PORT_LIMIT:
        raise refuse(f"{show(value)}: a port's number is at most {PORT_LIMIT}")
    return End(match[1], port)


def _check_node_name(value: object) -> str:
    if not isinstance(value, str):
        raise refuse(f"{show(value)} is no node name: write text, in quotes if it looks like a number")
    if len(PortName(value, 0).interface) > INTERFACE_NAME_LIMIT:
        raise refuse(f"node name {show(value)} is too long: {_too_long(value, 0)}")
    try:
        check_name(value)
    except ScenarioError as error:
        raise refuse(str(error)) from None
    return value


def _too_long(node: str, number: int) -> str:
    suffix = PortName("", number).interface
    room = INTERFACE_NAME_LIMIT - len(suffix)
    return f"an interface has at most {INTERFACE_NAME_LIMIT} characters, of which {suffix!r} leaves {room} to the node"


NodeName = Annotated[str, BeforeValidator(_check_node_name)]
EndText = Annotated[
    End,
    BeforeValidator(_read_end),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "pattern": r"^[A-Za-z0-9_][A-Za-z0-9_.-]*(:[0-9]+)?$"}),
]


class GraphLink(Model):
    """One cable: `a` and `b` are node or node:port; rate and cable length are the profile's unless given."""

    a: EndText
    b: EndText
    rate_bps: Rate | None = Field(default=None, alias="rate")
    cable_mm: Length | None = Field(default=None, alias="cable")

    @model_validator(mode="after")
    def _check_ends(self) -> Self:
        if self.a.node == self.b.node:
            raise refuse(f"both ends are on {show(self.a.node)}: a link joins two nodes")
        return self


class Graph(Model):
    """Any hosts, switches and links, by name."""

    kind: Literal["graph"]
    hosts: tuple[NodeName, ...]
    switches: tuple[NodeName, ...] = ()
    links: tuple[GraphLink, ...]

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_size(len(self.hosts), len(self.switches), len(self.links))
        if not self.hosts:
            raise refuse("no hosts: a fabric has at least one", "hosts")
        _check_nodes(self)
        for place, (_, *ports) in enumerate(self.ports()):
            for key, port in zip("ab", ports, strict=True):
                if len(port.interface) > INTERFACE_NAME_LIMIT:
                    reason = f"{port.interface!r} is too long: {_too_long(port.node, port.number)}"
                    raise refuse(reason, "links", place, key)
        _check_hosts(self)
        _check_reach(self)
        return self

    def host_names(self) -> Sequence[str]:
        """The hosts, in order."""
        return self.hosts

    def link_ends(self) -> Iterator[tuple[str, str]]:
        """The two nodes of each link, in order."""
        return ((link.a.node, link.b.node) for link in self.links)

    def ports(self) -> Iterator[tuple[GraphLink, PortName, PortName]]:
        """Each link with its two ports: as given, else the node's next free number (hosts from 0, switches from 1)."""
        given = {
            PortName(end.node, end.port) for link in self.links for end in (link.a, link.b) if end.port is not None
        }
        unused = {name: 0 for name in self.hosts} | {name: 1 for name in self.switches}
        for link in self.links:
            yield link, _port(link.a, given, unused), _port(link.b, given, unused)


def _port(end: End, given: set[PortName], unused: dict[str, int]) -> PortName:
    if end.port is not None:
        return PortName(end.node, end.port)
    while PortName(end.node, unused[end.node]) in given:
        unused[end.node] += 1
    unused[end.node] += 1
    return PortName(end.node, unused[end.node] - 1)


def _ends(graph: Graph) -> Iterable[tuple[int, str, End]]:
    for place, link in enumerate(graph.links):
        yield place, "a", link.a
        yield place, "b", link.b


def _check_nodes(graph: Graph) -> None:
    names: set[str] = set()
    for key, given in (("hosts", graph.hosts), ("switches", graph.switches)):
        for place, name in enumerate(given):
            if name in names:
                raise refuse(f"node {name!r} appears twice; each node has a name of its own", key, place)
            names.add(name)
    switches = set(graph.switches)
    used: set[End] = set()
    for place, key, end in _ends(graph):
        if end.node not in names:
            raise refuse(f"unknown node {show(end.node)}{nearest(end.node, sorted(names))}", "links", place, key)
        if end.port == 0 and end.node in switches:
            raise refuse(f"'{end}': a switch's ports count from 1", "links", place, key)
        if end.port is not None and end in used:
            raise refuse(f"'{end}' is used twice: a port takes one cable", "links", place, key)
        used.add(end)


def _check_hosts(graph: Graph) -> None:
    unlinked = dict.fromkeys(graph.hosts)
    hosts = set(graph.hosts)
    for place, key, end in _ends(graph):
        if end.node in unlinked:
            del unlinked[end.node]
        elif end.node in hosts:
            raise refuse(f"not yet: host {end.node!r} has a second link; allowed now: one each", "links", place, key)
    for name in unlinked:
        raise refuse(f"host {name!r} has no link; each host needs one", "hosts", graph.hosts.index(name))


def _check_reach(graph: Graph) -> None:
    """Refuse a host that no way leads to. Each has one link by now, so no way leads through another host."""
    neighbours: dict[str, list[str]] = {name: [] for name in (*graph.hosts, *graph.switches)}
    for link in graph.links:
        neighbours[link.a.node].append(link.b.node)
        neighbours[link.b.node].append(link.a.node)
    first = graph.hosts[0]
    reached, left = {first}, [first]
    while left:
        new = [node for node in neighbours[left.pop()] if node not in reached]
        reached.update(new)
        left += new
    for place, name in enumerate(graph.hosts):
        if name not in reached:
            raise refuse(f"host {name!r} cannot reach host {first!r}: no way of links leads there", "hosts", place)
