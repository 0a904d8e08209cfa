"""A NIC's egress: a port that pulls the next frame from its source whenever its wire is free."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from emu.devices.lane import Lane
from emu.devices.port import Port
from emu.engine import Engine
from emu.frame import Frame
from emu.parts import NIC
from emu.taps import Taps


class FrameSource(Protocol):
    """The port pulls: it asks for the next frame each time its wire is free."""

    def pop(self) -> Frame | None:
        """The frame to start now, or None where nothing may start."""

    def waiting(self) -> bool:
        """Whether asking again when the wire is free could give a frame."""

    def abandon(self, lane_number: int) -> None:
        """Throw away the frame of a blocked lane, which was made already."""


class PullPort(Port):
    """Pacing, windows, turns and flow control meet in the source: the protocol never pushes."""

    __slots__ = ("_source",)

    def __init__(
        self, engine: Engine, name: str, rate_bps: int, source: FrameSource, taps: Taps, lanes: Sequence[Lane]
    ) -> None:
        super().__init__(engine, name, rate_bps, taps, idle_part=NIC)
        self.lanes = lanes
        self._source = source

    def abandon(self, lane: Lane) -> None:
        if lane.abandoned and self._blocked & lane.bit:
            self.unblock(lane)
            self.abandoned_frames += 1
            self._source.abandon(lane.number)
            self.kick()

    def kick(self) -> None:
        if self._wake_due:
            return
        if self._engine.now_ps >= self.busy_until_ps:
            self.wake(None)
        else:
            self._wake_due = True
            self._engine.at(self.busy_until_ps, self._wake_action)

    def wake(self, _: None) -> None:
        """The wire is free: say what flow control has to say, else start what the source has."""
        self._wake_due = False
        flow = self.flow
        if flow is not None and flow.due:
            self.start_control(flow.control_frame())
            return
        frame = self._source.pop()
        if frame is not None:
            self.start(frame, self.lanes[frame.envelope.lane])
            if self._source.waiting():
                self._wake_due = True
                self._engine.at(self.busy_until_ps, self._wake_action)
