"""One lane of an egress, a queue or a VL: its frames, and how long flow control has kept them waiting."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from emu.frame import Frame
from emu.linklayer.arbiter import RoundRobinQueue
from emu.linklayer.ecn import Marker
from emu.parts import FLOW_CONTROL, weight


class Watch(Protocol):
    """Told that a lane is blocked: a watchdog, or what looks for deadlocks."""

    def look(self) -> object:
        """The lane is blocked now, or no longer."""


class Lane:
    """What a port knows of one lane, whatever fills it. Blocked: a frame could leave but for flow control."""

    __slots__ = (
        "_blocked_mark",
        "_flow_weight",
        "abandoned",
        "bit",
        "blocked_ps",
        "blocked_since_ps",
        "first_mark_ps",
        "held_bytes",
        "marker",
        "max_held_bytes",
        "number",
        "waits",
    )

    def __init__(self, number: int, idle_part: int) -> None:
        self.number = number
        self.bit = 1 << number
        self.held_bytes = 0
        self.max_held_bytes = 0
        self.marker: Marker | None = None
        self.first_mark_ps = -1  # when a frame was first marked here
        self.blocked_ps = 0  # by blocks that are over
        self.blocked_since_ps = -1
        self._blocked_mark = 0  # the port's waits then
        self._flow_weight = weight(FLOW_CONTROL, idle_part)
        self.abandoned = False  # the credits that its frames wait for cannot come: devices/starvation.py
        self.waits = 0  # to add to the port's: what waits there were flow control's while this lane was blocked

    @property
    def marked(self) -> int:
        """Frames that were marked here."""
        return self.marker.marked if self.marker is not None else 0

    def first(self) -> Frame:
        """The frame that leaves next."""
        raise NotImplementedError

    def block(self, now_ps: int, port_waits: int) -> None:
        """Its first frame may not leave from now on."""
        self.blocked_since_ps = now_ps
        self._blocked_mark = port_waits

    def unblock(self, now_ps: int, port_waits: int) -> None:
        """It may again."""
        gap_ps = now_ps - self.blocked_since_ps
        self.blocked_ps += gap_ps
        # All of the block is flow control's, also where other lanes used the wire meanwhile.
        self.waits += gap_ps * self._flow_weight - (port_waits - self._blocked_mark)
        self.blocked_since_ps = -1

    def waits_at(self, now_ps: int, port_waits: int) -> int:
        """The waits of this lane's frames up to now: the port's, and what of them is flow control's."""
        if self.blocked_since_ps < 0:
            return port_waits + self.waits
        gap_ps = now_ps - self.blocked_since_ps
        return self._blocked_mark + self.waits + gap_ps * self._flow_weight

    def blocked_ps_at(self, now_ps: int) -> int:
        """For how long it was blocked, up to now."""
        return self.blocked_ps + (now_ps - self.blocked_since_ps if self.blocked_since_ps >= 0 else 0)


class Turns(Enum):
    """Who takes turns within a queue, one frame each."""

    PORT = "per_port"
    SOURCE = "per_source"
    NOBODY = "fifo"


class QueueLane(Lane):
    """A switch's: its port puts frames in and takes them out, in the turns of their ingress ports or sources."""

    __slots__ = ("dropping", "forced", "frames")

    def __init__(self, number: int, idle_part: int) -> None:
        super().__init__(number, idle_part)
        self.frames: RoundRobinQueue[Frame] = RoundRobinQueue()
        self.forced = False  # a watchdog lets it send whatever its pause
        self.dropping = False  # a watchdog throws away what comes

    def first(self) -> Frame:
        return self.frames.first()
