"""Names of a host's parts, where there is a path through them: the GPU's own node and its interface."""

from __future__ import annotations

from emu.scenario.field import refuse, show
from emu.scenario.host import Host
from emu.scenario.topology import AnyTopology
from emu.topology import INTERFACE_NAME_LIMIT, PCIE_LEAVES, PCIE_MIDDLE, PortName, part_name


def check_parts(host: Host, topology: AnyTopology) -> None:
    """Refuse what no host's part can be called: what a node is called already, or too long for an interface."""
    if host.path == "none" or host.pcie is None:
        return
    names = topology.host_names()
    nodes = {*names, *(node for ends in topology.link_ends() for node in ends)}
    for name in names:
        for part in (*PCIE_LEAVES, PCIE_MIDDLE):
            if part_name(name, part) in nodes:
                raise refuse(
                    f"node {show(part_name(name, part))} is called as a part of host {name} is: call it otherwise",
                    *("fabric", "topology"),
                )
        if host.pcie.wire == "veth":
            _check_interface(name)


def _check_interface(host: str) -> None:
    interface = PortName(part_name(host, "gpu"), 0).interface
    if len(interface) > INTERFACE_NAME_LIMIT:
        raise refuse(
            f"the GPU of host {show(host)} would have interface {interface!r} of {len(interface)} characters: at most"
            f" {INTERFACE_NAME_LIMIT} are allowed, so shorten the host's name, or set this to memory",
            *("host", "pcie", "wire"),
        )
