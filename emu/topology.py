"""Frozen nodes, ports and links: what a fabric is made of, checked once; read off a Mininet `Topo`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from emu.errors import ScenarioError

INTERFACE_NAME_LIMIT = 15  # the kernel's IFNAMSIZ less its terminating NUL
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


PCIE_LEAVES = ("gpu", "nic", "cpu")
PCIE_MIDDLE = "pcie"


class Kind(Enum):
    """What a node does with frames: a host ends them, a switch forwards them."""

    HOST = "host"
    SWITCH = "switch"


@dataclass(frozen=True, slots=True)
class Node:
    """A host or a switch."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class PortName:
    """A port by its place; hosts count from 0, switches from 1, as Mininet does."""

    node: str
    number: int

    @property
    def interface(self) -> str:
        """The name of its network interface, as Mininet derives it: `leaf0-eth1`."""
        return f"{self.node}-eth{self.number}"


@dataclass(frozen=True, slots=True)
class Link:
    """A full-duplex cable between two ports: `rate_bps` each way, `propagation_ps` from end to end."""

    name: str
    a: PortName
    b: PortName
    rate_bps: int
    propagation_ps: int


class MininetTopo(Protocol):
    """The few calls of `mininet.topo.Topo` that are read here."""

    def hosts(self, sort: bool = ...) -> list[str]: ...
    def switches(self, sort: bool = ...) -> list[str]: ...
    def links(self, sort: bool = ..., withKeys: bool = ..., withInfo: bool = ...) -> list[Any]: ...  # noqa: N803


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkDefaults:
    """What a link is where the topology does not say: from the profile."""

    rate_bps: int
    host_cable_mm: int
    fabric_cable_mm: int
    propagation_ps_per_m: int

    def propagation_ps(self, length_mm: int) -> int:
        """Time for one bit over `length_mm` of cable, rounded up to a whole picosecond."""
        return -(-length_mm * self.propagation_ps_per_m // 1000)


@dataclass(frozen=True)
class Topology:
    """Nodes in order, links in order. Raises ScenarioError for anything that is no fabric."""

    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    _kinds: Mapping[str, Kind] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        kinds: dict[str, Kind] = {}
        for node in self.nodes:
            check_name(node.name)
            if node.name in kinds:
                raise ScenarioError(f"node {node.name!r} appears twice")
            kinds[node.name] = node.kind
        object.__setattr__(self, "_kinds", kinds)
        self._check_links()

    def _check_links(self) -> None:
        used: dict[PortName, str] = {}
        for link in self.links:
            if link.a.node == link.b.node:
                raise ScenarioError(f"link {link.name}: both ends are on {link.a.node}; a link joins two nodes")
            for port in (link.a, link.b):
                if port.node not in self._kinds:
                    known = ", ".join(list(self._kinds)[:8])
                    raise ScenarioError(f"link {link.name}: node {port.node!r} is unknown; known: {known}")
                if port in used:
                    raise ScenarioError(f"port {port.interface} is used by {used[port]} and by {link.name}")
                if len(port.interface) > INTERFACE_NAME_LIMIT:
                    raise ScenarioError(
                        f"interface {port.interface!r} has {len(port.interface)} characters: at most"
                        f" {INTERFACE_NAME_LIMIT} are allowed, so shorten the node's name"
                    )
                used[port] = link.name
        self._check_link_names()

    def _check_link_names(self) -> None:
        # Names hold dashes and so do links' names: `a-b` to `c` and `a` to `b-c` would both be a-b-c.
        taken: dict[str, str] = {}
        for link in self.links:
            for name in (link.name, reverse_name(link)):
                if name in taken:
                    raise ScenarioError(
                        f"links {taken[name]} and {link.name} would share the name {name!r} in one direction:"
                        " call a node otherwise, without a dash"
                    )
                taken[name] = link.name

    def kind(self, node: str) -> Kind:
        """What `node` is. Raises ScenarioError if there is none of that name."""
        if node not in self._kinds:
            raise ScenarioError(f"node {node!r} is unknown; known: {', '.join(list(self._kinds)[:8])}")
        return self._kinds[node]

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts' names, in order."""
        return tuple(node.name for node in self.nodes if node.kind is Kind.HOST)

    @property
    def switches(self) -> tuple[str, ...]:
        """The switches' names, in order."""
        return tuple(node.name for node in self.nodes if node.kind is Kind.SWITCH)


def check_name(name: str) -> None:
    """Raise ScenarioError unless `name` may be a node's: letters, digits, `_ . -`, no leading dash."""
    if not _NAME.fullmatch(name):
        raise ScenarioError(f"node name {name!r}: use letters, digits, '_', '.' and '-', not beginning with '-' or '.'")


def from_mininet(topo: MininetTopo, defaults: LinkDefaults) -> Topology:
    """The fabric a Mininet `Topo` describes.

    A link's options `rate_bps` and `cable_mm` (integers) win over the profile's defaults.
    """
    hosts, switches = topo.hosts(sort=False), topo.switches(sort=False)
    nodes = tuple(Node(name, Kind.HOST) for name in hosts) + tuple(Node(name, Kind.SWITCH) for name in switches)
    is_host = set(hosts)
    raw = [info for *_, info in topo.links(sort=False, withKeys=True, withInfo=True)]
    names = link_names((info["node1"], info["node2"]) for info in raw)
    links = []
    for name, info in zip(names, raw, strict=True):
        a, b = PortName(info["node1"], info["port1"]), PortName(info["node2"], info["port2"])
        ends_at_host = a.node in is_host or b.node in is_host
        usual_mm = defaults.host_cable_mm if ends_at_host else defaults.fabric_cable_mm
        length_mm = usual_mm if info.get("cable_mm") is None else info["cable_mm"]
        rate_bps = info.get("rate_bps") or defaults.rate_bps
        links.append(Link(name, a, b, rate_bps, defaults.propagation_ps(length_mm)))
    return Topology(nodes, tuple(links))


def reverse_name(link: Link) -> str:
    """The name of a link's other direction: `b-a` for `a-b`, `b-a#2` for `a-b#2`."""
    _, mark, parallel = link.name.partition("#")
    return f"{link.b.node}-{link.a.node}{mark}{parallel}"


def link_names(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """`a-b` for each pair, with `#2`, `#3` ... for further links between the same two nodes."""
    seen: dict[frozenset[str], int] = {}
    names = []
    for a, b in pairs:
        count = seen[frozenset((a, b))] = seen.get(frozenset((a, b)), 0) + 1
        names.append(f"{a}-{b}" if count == 1 else f"{a}-{b}#{count}")
    return names


def part_name(host: str, part: str) -> str:
    """What a part of a host is called: `h0.gpu`; the middle of its PCIe tree is `h0.pcie`."""
    return f"{host}.{part}"


def pcie_link_names(host: str) -> list[tuple[str, str]]:
    """Both directions of each PCIe link of a host: `h0.gpu-h0.pcie`, `h0.pcie-h0.gpu`."""
    middle = part_name(host, PCIE_MIDDLE)
    leaves = [part_name(host, leaf) for leaf in PCIE_LEAVES]
    return [(f"{leaf}-{middle}", f"{middle}-{leaf}") for leaf in leaves]
