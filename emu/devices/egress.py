"""A switch's egress: a port with a first-in first-out queue before it."""

from __future__ import annotations

from collections import deque
from heapq import heappush

from emu.devices.port import Port
from emu.engine import Engine
from emu.frame import Frame
from emu.parts import FLOW_CONTROL
from emu.taps import Taps


class EgressPort(Port):
    """A port that frames are put into. Its queue has no bound; it counts the wire bytes that wait, and their most."""

    __slots__ = ("frames", "held_bytes", "max_held_bytes")

    def __init__(self, engine: Engine, name: str, rate_bps: int, taps: Taps) -> None:
        super().__init__(engine, name, rate_bps, taps, idle_part=FLOW_CONTROL)
        self.frames: deque[Frame] = deque()  # those that found the wire busy
        self.held_bytes = 0
        self.max_held_bytes = 0

    def enqueue(self, frame: Frame) -> None:
        """The frame may leave from now on."""
        engine = self._engine
        now_ps = frame.eligible_ps = engine.now_ps
        if not self._wake_due:
            if now_ps >= self.busy_until_ps:
                self.start(frame)
                return
            self._wake_due = True
            heappush(engine.queue, (self.busy_until_ps, engine.tick(), self._wake_action, None))
        frame.busy_mark_ps, frame.control_mark_ps = self.elapsed()
        self.frames.append(frame)
        held_bytes = self.held_bytes = self.held_bytes + frame.wire_bytes
        if held_bytes > self.max_held_bytes:
            self.max_held_bytes = held_bytes

    def wake(self, _: None) -> None:
        """The wire is free, and frames wait for it."""
        frames = self.frames
        frame = frames.popleft()
        self.held_bytes -= frame.wire_bytes
        self.start(frame)
        if frames:
            engine = self._engine
            heappush(engine.queue, (self.busy_until_ps, engine.tick(), self._wake_action, None))
        else:
            self._wake_due = False
