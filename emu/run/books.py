"""The books of the links' flow control at the end of a run: credits, switch memory, and the links' own frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from emu.devices.credits import LinkCredits
from emu.devices.egress import EgressPort
from emu.devices.inject import Injection
from emu.devices.pauses import LinkPauses
from emu.devices.switch import Switch
from emu.engine import Engine
from emu.errors import InvariantBroken
from emu.fabric import Fabric
from emu.frame import ControlFrame, Frame
from emu.linklayer.buffer import check_memory

_INSIDE = (Switch.receive, EgressPort.enqueue, Injection.receive, Injection.overdue)
"""What is called with a frame that is in a switch, and not on a port's wire."""


def check(fabric: Fabric, engine: Engine) -> None:
    """Raise InvariantBroken where credits, bytes in memory or frames of the links do not add up."""
    for pair in fabric.attachments.pairs:
        for end in pair:
            if isinstance(end, LinkCredits):
                end.settle()
    _check_occupied(fabric, engine)
    _check_link_frames(fabric, engine)
    if fabric.attachments.memories:
        _check_memories(fabric, engine)


def _check_occupied(fabric: Fabric, engine: Engine) -> None:
    """What credit receivers count as held, against the frames that are in their buffers."""
    held: Counter[tuple[object, int]] = Counter()  # blocks, by the end of a link and VL

    def hold(end: object, frame: Frame) -> None:
        if isinstance(end, LinkCredits):
            held[end, frame.envelope.lane] += end.blocks_of(frame)

    for _, frame in _put_off(fabric, engine):
        hold(frame.ingress, frame)
    for switch in fabric.switches.values():
        for port in switch.ports.values():
            for frame in port.queued():
                hold(frame.ingress, frame)
            if port.leaving is not None:
                hold(port.leaves, port.leaving)
    for pair in fabric.attachments.pairs:
        for end in pair:
            for vl, receiver in enumerate(end.receivers if isinstance(end, LinkCredits) else ()):
                if receiver.occupied != held[end, vl]:
                    raise InvariantBroken(
                        f"{end.port.name}, VL {vl}: {receiver.occupied} blocks are booked, {held[end, vl]} are held"
                    )


def _check_link_frames(fabric: Fabric, engine: Engine) -> None:
    ports = [port for _, port in fabric.links.values()]
    sent = sum(port.link_frames for port in ports)
    on_the_way = len(engine.pending(ControlFrame))
    ended = sum(port.heard_link_frames + port.lost_link_frames for port in ports) + on_the_way
    if sent != ended:
        raise InvariantBroken(f"of {sent} frames of links' own, {ended} are accounted for")


def _switch_of(fabric: Fabric) -> dict[int, Switch]:
    """Whose port it is, by the port's identity."""
    return {id(port): switch for switch in fabric.switches.values() for port in switch.ports.values()}


def _put_off(fabric: Fabric, engine: Engine) -> Iterator[tuple[Switch, Frame]]:
    """Frames in switches for which something is scheduled: in a pipeline, short of bits, or kept by an injection."""
    of_port = _switch_of(fabric)
    for *_, action, frame in engine.queue:
        if getattr(action, "__func__", None) in _INSIDE:
            device = getattr(action, "__self__", None)
            device = device.forwarder if isinstance(device, Injection) else of_port.get(id(device), device)
            if isinstance(device, Switch):
                yield device, frame


def _check_memories(fabric: Fabric, engine: Engine) -> None:
    """Each switch's accounts against the frames that are in it: in its pipeline, in its queues, on their way out."""
    inside: Counter[str] = Counter()  # bytes as the buffer counts them, by switch
    of_port = _switch_of(fabric)
    overhead_bytes = fabric.attachments.overhead_bytes

    def hold(switch: Switch, frame: Frame) -> None:
        inside[switch.name] += frame.wire_bytes - overhead_bytes

    for switch, frame in _put_off(fabric, engine):
        hold(switch, frame)
    for switch in fabric.switches.values():
        for port in switch.ports.values():
            for frame in port.queued():
                hold(switch, frame)
            if port.leaving is not None:
                hold(switch, port.leaving)
        accounts = [
            account
            for pair in fabric.attachments.pairs
            for end in pair
            if isinstance(end, LinkPauses) and of_port.get(id(end.port)) is switch
            for account in end.accounts
        ]
        check_memory(fabric.attachments.memories[switch.name], accounts, inside[switch.name])
