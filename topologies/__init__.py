"""The topologies, as Mininet `Topo` classes, and how each is made from a scenario's parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from emu.scenario.graph import Graph
from emu.scenario.topology import LeafSpine, Line
from emu.topology import LinkDefaults, Topology, from_mininet
from topologies.base import OrderedTopo
from topologies.graph import Cable, GraphTopo
from topologies.leaf_spine import LeafSpineTopo
from topologies.line import LineTopo

__all__ = ["BY_KIND", "GraphTopo", "LeafSpineTopo", "LineTopo", "build", "topo"]


def _leaf_spine(model: LeafSpine) -> LeafSpineTopo:
    return LeafSpineTopo(
        leaves=model.leaves,
        spines=model.spines,
        hosts_per_leaf=model.hosts_per_leaf,
        host_rate_bps=model.host_rate_bps,
        fabric_rate_bps=model.fabric_rate_bps,
    )


def _line(model: Line) -> LineTopo:
    return LineTopo(switches=model.switches, host_rate_bps=model.host_rate_bps, fabric_rate_bps=model.fabric_rate_bps)


def _graph(model: Graph) -> GraphTopo:
    cables = [Cable(a, b, link.rate_bps, link.cable_mm) for link, a, b in model.ports()]
    return GraphTopo(hosts=model.hosts, switches=model.switches, cables=cables)


BY_KIND: Mapping[str, Callable[[Any], OrderedTopo]] = {"leaf_spine": _leaf_spine, "line": _line, "graph": _graph}


def topo(model: LeafSpine | Line | Graph) -> OrderedTopo:
    """The Mininet `Topo` of a scenario's topology."""
    return BY_KIND[model.kind](model)


def build(model: LeafSpine | Line | Graph, defaults: LinkDefaults) -> Topology:
    """The frozen topology of a scenario's; links take the defaults where it says nothing. Raises ScenarioError."""
    return from_mininet(topo(model), defaults)
