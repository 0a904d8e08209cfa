"""A line: two hosts with switches in a row between them, or back to back."""

from __future__ import annotations

from itertools import pairwise

from topologies.base import OrderedTopo


class LineTopo(OrderedTopo):
    """h0 s0 s1 .. h1; links in that order."""

    def build(self, switches: int = 1, host_rate_bps: int | None = None, fabric_rate_bps: int | None = None) -> None:
        """Called by Mininet with the arguments of the constructor."""
        first, last = self.addHost("h0"), self.addHost("h1")
        between = [self.add_switch(f"s{number}") for number in range(switches)]
        for a, b in pairwise([first, *between, last]):
            at_host = a == first or b == last
            self.addLink(a, b, rate_bps=host_rate_bps if at_host else fabric_rate_bps)
