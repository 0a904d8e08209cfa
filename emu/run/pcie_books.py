"""The books of hosts' PCIe trees: each link's packets and bytes, what is passed on, what is owed for reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from emu.engine import Engine
from emu.errors import InvariantBroken
from emu.fabric import Fabric
from emu.host.link import PcieLink
from emu.host.tree import Tree
from emu.pcie.tlp import Tlp, TlpKind
from emu.topology import PCIE_LEAVES

MWR = TlpKind.MWR
InFlight = Mapping[PcieLink, Sequence[Tlp]]


def check(fabric: Fabric, engine: Engine) -> None:
    """Raise InvariantBroken where packets or bytes of a link do not add up, or a read and what is under way for it."""
    if not fabric.hosts:
        return
    in_flight = _in_flight(engine)
    for host in fabric.hosts.values():
        tree = host.tree
        for link in tree.links.values():
            _check_link(link, in_flight.get(link, ()))
        _check_ends(tree)
        _check_reads(tree, in_flight)


def _in_flight(engine: Engine) -> dict[PcieLink, list[Tlp]]:
    """What is on each link, or waits to leave by it."""
    found: dict[PcieLink, list[Tlp]] = {}
    for *_, action, tlp in engine.queue:
        link = getattr(action, "__self__", None)
        if isinstance(tlp, Tlp) and isinstance(link, PcieLink):
            found.setdefault(link, []).append(tlp)
    return found


def _check_link(link: PcieLink, in_flight: Sequence[Tlp]) -> None:
    ended = link.delivered_tlps + link.lost_tlps + len(in_flight)
    if link.tlps != ended:
        raise InvariantBroken(f"{link.name}: of {link.tlps} TLPs sent, {ended} are accounted for")
    ended_bytes = link.delivered_bytes + link.lost_bytes + sum(tlp.wire_bytes for tlp in in_flight)
    if link.tx_bytes != ended_bytes:
        raise InvariantBroken(f"{link.name}: of {link.tx_bytes} bytes sent, {ended_bytes} are accounted for")
    if link.lost_tlps and (link.wire is None or not link.wire.disturbed):
        raise InvariantBroken(f"{link.name}: {link.lost_tlps} TLPs were lost, and nobody touched its wire")


def _check_ends(tree: Tree) -> None:
    """What came to an end was taken there; what came to the middle was passed on."""
    came = sum(tree.out(leaf).delivered_tlps for leaf in PCIE_LEAVES)
    went = sum(tree.to(leaf).tlps for leaf in PCIE_LEAVES)
    middle = tree.middle
    if not came == middle.received == went + middle.unsupported:
        raise InvariantBroken(
            f"{middle.name}: {came} TLPs came, {middle.received} were taken, {went} went on and"
            f" {middle.unsupported} were for nobody"
        )
    for leaf, memory in (("gpu", tree.gpu_memory), ("cpu", tree.host_memory)):
        came, dma = tree.to(leaf).delivered_tlps, tree.gpu if leaf == "gpu" else tree.cpu
        if came != memory.received:
            raise InvariantBroken(f"{memory.name}: {came} TLPs came, {memory.received} were taken")
        if memory.unexpected or dma.reads:
            raise InvariantBroken(f"{memory.name}: {memory.unexpected} completions came, for {dma.reads} reads")
    if tree.nic.unexpected or tree.nic.received > tree.to("nic").delivered_tlps:
        raise InvariantBroken(f"{tree.to('nic').name}: {tree.nic.unexpected} completions of no read came")
    if tree.out("nic").tlps != tree.nic.reads + tree.nic.writes:
        raise InvariantBroken(f"{tree.out('nic').name}: TLPs that the NIC's DMA engine did not send")


def _check_reads(tree: Tree, in_flight: InFlight) -> None:
    """For each read that is outstanding a request or completions are under way, with all bytes that are owed."""
    owed: dict[int, int] = {}
    for link in tree.links.values():
        for tlp in in_flight.get(link, ()):
            if tlp.kind is not MWR and tlp.requester == tree.nic.requester:
                owed[tlp.tag] = owed.get(tlp.tag, 0) + tlp.length
    outstanding = tree.nic.owed()
    forgiving = tree.middle.unsupported or any(link.lost_tlps for link in tree.links.values())
    if owed.keys() - outstanding.keys() or (not forgiving and outstanding.keys() - owed.keys()):
        raise InvariantBroken(
            f"{tree.host}: reads {sorted(outstanding)} are outstanding, and answers to {sorted(owed)} are under way"
        )
    for tag, left in outstanding.items():
        if left and not forgiving and owed[tag] != left:
            raise InvariantBroken(f"{tree.host}: {left} bytes of read {tag} are owed, {owed[tag]} are under way")
