"""Who waits for whom in a fabric at this instant, and who of them waits for good.

A lane that flow control blocks goes on as soon as enough has left the buffer that it waits for, at the far end of its
link, and any frame there may be the one to leave. So it waits for good only where all that this buffer holds is queued
in lanes that wait for good: a knot in the graph of who waits for whom (Holt, Some Deadlock Properties of Computer
Systems, ACM Computing Surveys 1972). NICs take in what comes and so are in none; those that wait in front of one are
not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from emu.devices.credits import LinkCredits
from emu.devices.egress import EgressPort
from emu.devices.ingress import Ingress
from emu.devices.lane import QueueLane
from emu.devices.pauses import LinkPauses
from emu.devices.switch import Switch
from emu.engine import Engine
from emu.fabric import Fabric
from emu.frame import ControlFrame, Frame


class Place(NamedTuple):
    """A lane before a link; equal only to itself."""

    port: EgressPort
    lane: QueueLane


class Room(NamedTuple):
    """A part of a buffer: an ingress, and a VL or priority; equal only to itself."""

    ingress: Ingress
    level: int


Waits = dict[Place, list[Place]]
"""Each place, and those one of which must go on before it can."""


class Knots:
    """Looks for knots among the switches' lanes."""

    def __init__(self, engine: Engine, fabric: Fabric) -> None:
        self._engine = engine
        self.ports = tuple(port for _, port in fabric.links.values() if isinstance(port, EgressPort))
        self._switches = {port: switch for switch in fabric.switches.values() for port in switch.ports.values()}

    def find(self, since_ps: int) -> Waits:
        """The lanes that have been blocked since then or longer and will be for good, in the links' order."""
        needs = {
            Place(port, lane): room
            for port in self.ports
            for lane in port.queues
            if 0 <= lane.blocked_since_ps <= since_ps and (room := _room_ahead(port, lane)) is not None
        }
        if not needs:
            return {}
        owners = dict.fromkeys(self._owner(room) for room in needs.values())
        holders = self._holders(switch for switch in owners if switch is not None)
        moving = self._moving()
        waits = {place: list(holders[room]) for place, room in needs.items() if room in holders and room not in moving}
        return _for_good(waits)

    def _owner(self, room: Room) -> Switch | None:
        """Whose buffer it is; None: a NIC's."""
        beside = room.ingress.port
        return self._switches.get(beside) if isinstance(beside, EgressPort) else None

    def _holders(self, switches: Iterable[Switch]) -> dict[Room, dict[Place, None]]:
        """The lanes in which what a buffer holds is queued."""
        holders: dict[Room, dict[Place, None]] = {}
        for switch in switches:
            for port in switch.ports.values():
                for lane in port.queues:
                    for frame in lane.frames:
                        holders.setdefault(_room_of(frame.ingress, frame), {})[Place(port, lane)] = None
        return holders

    def _moving(self) -> set[Room]:
        """The rooms of frames on a wire, in a pipeline, or on their way out."""
        pending: Iterator[Frame] = (frame for *_, frame in self._engine.queue if isinstance(frame, Frame))
        moving = {
            _room_of(frame.ingress, frame)
            for frame in pending
            if not isinstance(frame, ControlFrame) and frame.ingress is not None
        }
        for port in self.ports:
            if port.leaving is not None and port.leaves is not None:
                moving.add(_room_of(port.leaves, port.leaving))
        return moving


def _room_of(ingress: Ingress, frame: Frame) -> Room:
    envelope = frame.envelope
    return Room(ingress, envelope.lane if ingress.grants_credits else envelope.priority)


def _room_ahead(port: EgressPort, lane: QueueLane) -> Room | None:
    """The room that the lane's first frame cannot have before something leaves it; None: it will have it."""
    flow, ahead = port.flow, port.far_ingress
    if flow is None or ahead is None or lane.forced or not lane.frames:
        return None
    frame = lane.first()
    if flow.may_start(frame) or not _is_full(ahead, frame):
        return None
    return _room_of(ahead, frame)


def _is_full(ingress: Ingress, frame: Frame) -> bool:
    """Whether a frame must wait until something leaves: if not, credits or XON are on their way to its sender."""
    if isinstance(ingress, LinkCredits):
        return not ingress.receivers[frame.envelope.lane].has_room(ingress.blocks_of(frame))
    if isinstance(ingress, LinkPauses):
        return bool(ingress.accounts) and ingress.accounts[frame.envelope.priority].paused
    return False


def _for_good(waits: Waits) -> Waits:
    """Without those that one can go on for: what is left, only waits for what is left."""
    left = dict(waits)
    while True:
        free = [place for place, others in left.items() if any(other not in left for other in others)]
        if not free:
            return left
        for place in free:
            del left[place]
