"""GPUs in namespaces of their own: a node beside each host, and a veth pair that stands for the GPU's PCIe link."""

from __future__ import annotations

from collections.abc import Callable

from emu.lab.lab import Lab
from emu.pcie.framing import TlpFraming
from emu.topology import PCIE_LEAVES, Kind, Link, Node, PortName, Topology, part_name, pcie_link_names
from emu.wire.veth import VethWire

GPU_PORT = 0


class Gpus:
    """`topology` is the fabric's with a GPU at each host, `h0.gpu` at `h0`. Raises ScenarioError for bad names."""

    def __init__(self, fabric: Topology) -> None:
        following = dict.fromkeys(fabric.hosts, 0)  # each host's next port
        for link in fabric.links:
            for port in (link.a, link.b):
                if port.node in following:
                    following[port.node] = max(following[port.node], port.number + 1)
        self._links = {
            host: Link(_names(host)[0], PortName(part_name(host, "gpu"), GPU_PORT), PortName(host, number), 0, 0)
            for host, number in following.items()
        }
        nodes = tuple(Node(link.a.node, Kind.HOST) for link in self._links.values())
        self.topology = Topology(fabric.nodes + nodes, (*fabric.links, *self._links.values()))

    def wires(self, lab: Lab) -> Callable[[str], tuple[VethWire, VethWire]]:
        """What gives the two wires of a host's GPU, from it and to it."""
        return lambda host: lab.wires(self._links[host], TlpFraming(), _names(host))


def _names(host: str) -> tuple[str, str]:
    """Of the two directions of the GPU's link."""
    return pcie_link_names(host)[PCIE_LEAVES.index("gpu")]
