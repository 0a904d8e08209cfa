"""What a run tells of the PCIe links inside its hosts: what of them is captured, the result's `pcie` key, warnings."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from emu.capture.writer import InterfaceBlock
from emu.fabric import Fabric
from emu.framing.dissect import LINK_ETHERNET
from emu.host.host import Host
from emu.host.link import PcieLink
from emu.scenario.capture import EVERY_LINK
from emu.topology import PCIE_LEAVES, part_name


class Direction(NamedTuple):
    """One direction of a PCIe link, and the two parts that it joins."""

    link: PcieLink
    here: str
    there: str


def directions(host: Host) -> Iterator[tuple[Direction, Direction]]:
    """Both directions of each of its links, the one towards the middle first."""
    tree = host.tree
    for leaf in PCIE_LEAVES:
        part, middle = part_name(tree.host, leaf), tree.middle.name
        yield Direction(tree.out(leaf), part, middle), Direction(tree.to(leaf), middle, part)


def interfaces(fabric: Fabric, names: str | Collection[str]) -> list[InterfaceBlock]:
    """A capture's interfaces for the links that are named by either direction; all of them for `all` or nothing."""
    every = not names or names == EVERY_LINK
    return [
        InterfaceBlock(each.link.name, f"{each.here} to {each.there}", LINK_ETHERNET, each.link.rate_bps)
        for host in fabric.hosts.values()
        for both in directions(host)
        if every or any(each.link.name in names for each in both)
        for each in both
    ]


def tlp_hops(fabric: Fabric) -> int:
    """TLPs sent, counted once a link."""
    return sum(link.tlps for host in fabric.hosts.values() for link in host.tree.links.values())


def entry(fabric: Fabric, now_ps: int) -> dict[str, Any]:
    """The `pcie` key, where hosts have a path to their NICs; else nothing."""
    if not fabric.hosts:
        return {}
    hosts = fabric.hosts.values()
    links = [_link(each, now_ps) for host in hosts for both in directions(host) for each in both]
    return {"pcie": {"links": links, "hosts": [_host(host) for host in hosts]}}


def warnings(fabric: Fabric) -> Iterator[str]:
    """What should not be, by host and link."""
    for host in fabric.hosts.values():
        found = _host(host)
        for key, one in (("unsupported_requests", "PCIe request"), ("bad_doorbells", "bad doorbell")):
            count = found[key]
            if count:
                what = " for what is not there" if key == "unsupported_requests" else ""
                yield f"host {host.tree.host}: {count:,} {one}{'' if count == 1 else 's'}{what}"
        for link in host.tree.links.values():
            if link.lost_tlps:
                what = (
                    "TLP was lost, and nothing sends it"
                    if link.lost_tlps == 1
                    else "TLPs were lost, and nothing sends them"
                )
                yield f"PCIe link {link.name}: {link.lost_tlps:,} {what} again"


def _link(each: Direction, now_ps: int) -> dict[str, Any]:
    link = each.link
    return {
        "name": link.name,
        "from": each.here,
        "to": each.there,
        "tlps": link.tlps,
        "tx_bytes": link.tx_bytes,
        "payload_bytes": link.payload_bytes,
        "utilization": link.elapsed_ps() / now_ps if now_ps else 0.0,
        "on_the_way": link.tlps - link.delivered_tlps - link.lost_tlps,
        "lost": link.lost_tlps,
    }


def _host(host: Host) -> dict[str, Any]:
    tree, front_end = host.tree, host.front_end
    return {
        "host": tree.host,
        "reads": tree.nic.reads,
        "max_outstanding_reads": tree.nic.max_outstanding,
        "context_misses": front_end.context_misses,
        "doorbells": tree.to("nic").delivered_tlps - tree.nic.received,  # all that comes to a NIC but completions
        "bad_doorbells": front_end.bad_doorbells,
        "unsupported_requests": tree.middle.unsupported + tree.gpu_memory.unsupported + tree.host_memory.unsupported,
    }
