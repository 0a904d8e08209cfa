"""A Mininet `Topo` that keeps its links in the order they were added, and leaves out options that say nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mininet.topo import Topo


class OrderedTopo(Topo):
    """Base of the topologies here. Ports are numbered in link order: hosts from 0, switches from 1."""

    def __init__(self, *args: Any, **params: Any) -> None:
        self._added: list[tuple[str, str, int]] = []
        self._switches = 0
        super().__init__(*args, **params)

    def add_switch(self, name: str) -> str:
        """A switch with a datapath id of its own: from the digits in its name, as Mininet does, leaf0 is spine0."""
        self._switches += 1
        return self.addSwitch(name, dpid=f"{self._switches:016x}")

    def addLink(  # noqa: N802 (Mininet's name)
        self, node1: str, node2: str, port1: int | None = None, port2: int | None = None, key: Any = None, **opts: Any
    ) -> Any:
        """As Mininet's; options that are None are left out, so that any link class takes the rest."""
        given = {name: value for name, value in opts.items() if value is not None}
        key = super().addLink(node1, node2, port1, port2, key, **given)
        self._added.append((node1, node2, key))
        return key

    def iterLinks(  # noqa: N802 (Mininet's name)
        self,
        withKeys: bool = False,  # noqa: N803 (Mininet's names)
        withInfo: bool = False,  # noqa: N803
    ) -> Iterator[tuple[Any, ...]]:
        """As Mininet's, but in the order added: its own goes by node."""
        for node1, node2, key in self._added:
            link: tuple[Any, ...] = (node1, node2)
            if withKeys:
                link += (key,)
            if withInfo:
                link += (self.linkInfo(node1, node2, key),)
            yield link
