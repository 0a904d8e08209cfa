"""Leaf-spine: every leaf joined to every spine, the hosts on the leaves."""

from __future__ import annotations

from topologies.base import OrderedTopo


class LeafSpineTopo(OrderedTopo):
    """leaf0 .. spine0 .. h0 ..; a leaf's first ports go to its hosts, the others to the spines, in order."""

    def build(
        self,
        leaves: int = 2,
        spines: int = 2,
        hosts_per_leaf: int = 2,
        host_rate_bps: int | None = None,
        fabric_rate_bps: int | None = None,
    ) -> None:
        """Called by Mininet with the arguments of the constructor."""
        leaf_names = [self.add_switch(f"leaf{number}") for number in range(leaves)]
        spine_names = [self.add_switch(f"spine{number}") for number in range(spines)]
        for number, leaf in enumerate(leaf_names):
            for host in range(number * hosts_per_leaf, (number + 1) * hosts_per_leaf):
                self.addLink(leaf, self.addHost(f"h{host}"), rate_bps=host_rate_bps)
        for leaf in leaf_names:
            for spine in spine_names:
                self.addLink(leaf, spine, rate_bps=fabric_rate_bps)
