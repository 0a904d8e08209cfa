"""A graph: hosts, switches and links by name, as a scenario lists them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from emu.topology import PortName
from topologies.base import OrderedTopo


class Cable(NamedTuple):
    """A link between two ports; the rate and the length are the profile's where None."""

    a: PortName
    b: PortName
    rate_bps: int | None = None
    cable_mm: int | None = None


class GraphTopo(OrderedTopo):
    """Nodes and cables in the order given, ports numbered as given."""

    def build(self, hosts: Sequence[str] = (), switches: Sequence[str] = (), cables: Iterable[Cable] = ()) -> None:
        """Called by Mininet with the arguments of the constructor."""
        for name in hosts:
            self.addHost(name)
        for name in switches:
            self.add_switch(name)
        for cable in cables:
            self.addLink(
                cable.a.node,
                cable.b.node,
                cable.a.number,
                cable.b.number,
                rate_bps=cable.rate_bps,
                cable_mm=cable.cable_mm,
            )
