"""Counts frames and bytes at the end of a run: what NICs sent was delivered, lost, dropped, or is still on its way."""

from __future__ import annotations

from dataclasses import dataclass

from emu.errors import InvariantBroken
from emu.fabric import Fabric
from emu.frame import ControlFrame, Frame
from emu.pcie.tlp import Tlp
from emu.run import books, pcie_books
from emu.run.assembly import Assembly


@dataclass(frozen=True, slots=True)
class FrameCount:
    """All frames of a run, by where they ended."""

    sent: int
    delivered: int
    lost_on_wire: int
    dropped_in_switches: int
    on_the_way: int  # queued in switches or in flight when the run ended


def check(assembly: Assembly) -> FrameCount:
    """Count, and raise InvariantBroken where the sums do not agree: frames and bytes, for each switch and in all.

    TLPs have books of their own, link by link.
    """
    fabric, engine, door = assembly.fabric, assembly.engine, assembly.door
    pending: list[Frame] = [frame for frame in engine.pending(Frame) if not isinstance(frame, (ControlFrame, Tlp))]
    ports = [port for _, port in fabric.links.values()]
    nics, switches = fabric.nics.values(), fabric.switches.values()
    queued = sum(port.queued_frames for switch in switches for port in switch.ports.values())
    count = FrameCount(
        sent=sum(nic.port.sent_frames for nic in nics),
        delivered=sum(nic.received for nic in nics),
        lost_on_wire=sum(port.lost_frames for port in ports),
        dropped_in_switches=sum(sum(switch.dropped.values()) for switch in switches),
        on_the_way=queued + len(pending),
    )
    ended = count.delivered + count.lost_on_wire + count.dropped_in_switches + count.on_the_way
    injections = fabric.attachments.injections
    entered = count.sent + (door.frames if door else 0) + sum(each.copies for each in injections)
    if entered != ended:
        raise InvariantBroken(f"of {entered} frames sent, {ended} are accounted for: {count}")
    _check_switches(fabric, len(pending))
    _check_bytes(fabric, pending, (door.bytes if door else 0) + sum(each.copied_bytes for each in injections))
    books.check(fabric, engine)
    pcie_books.check(fabric, engine)
    return count


def _check_switches(fabric: Fabric, pending: int) -> None:
    held = 0  # received, but neither sent, queued nor dropped: waiting for bits from a slower link
    for switch in fabric.switches.values():
        sent = sum(port.sent_frames for port in switch.ports.values())
        queued = sum(port.queued_frames for port in switch.ports.values())
        rest = switch.received - sent - queued - sum(switch.dropped.values())
        if rest < 0:
            raise InvariantBroken(f"switch {switch.name} sent {-rest} frames more than it received")
        held += rest
    if held > pending:
        raise InvariantBroken(f"switches hold {held} frames, but only {pending} are pending")


def _check_bytes(fabric: Fabric, pending: list[Frame], other_bytes: int) -> None:
    sent = other_bytes + sum(nic.port.tx_bytes - nic.port.link_bytes for nic in fabric.nics.values())
    ended = sum(nic.received_bytes for nic in fabric.nics.values()) + sum(frame.wire_bytes for frame in pending)
    ended += sum(port.lost_bytes for _, port in fabric.links.values())
    for switch in fabric.switches.values():
        ended += switch.dropped_bytes + sum(port.held_bytes for port in switch.ports.values())
    if sent != ended:
        raise InvariantBroken(f"of {sent} bytes sent, {ended} are accounted for")
