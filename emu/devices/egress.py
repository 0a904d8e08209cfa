"""A switch's egress: a port fed from a first-in first-out queue."""

from __future__ import annotations

from collections import deque

from emu.devices.passage import FLOW_CONTROL
from emu.devices.port import Port
from emu.engine import Engine
from emu.frame import Frame
from emu.taps import Taps


class EgressQueue:
    """Unbounded, first in first out; counts the wire bytes it holds and the most it ever held."""

    __slots__ = ("_frames", "held_bytes", "max_held_bytes")

    def __init__(self) -> None:
        self._frames: deque[Frame] = deque()
        self.held_bytes = 0
        self.max_held_bytes = 0

    def push(self, frame: Frame) -> None:
        """Add a frame behind all others."""
        self._frames.append(frame)
        self.held_bytes += frame.wire_bytes
        if self.held_bytes > self.max_held_bytes:
            self.max_held_bytes = self.held_bytes

    def pop(self) -> Frame | None:
        """Take the oldest frame."""
        if not self._frames:
            return None
        frame = self._frames.popleft()
        self.held_bytes -= frame.wire_bytes
        return frame

    def waiting(self) -> bool:
        """Whether a frame is held."""
        return bool(self._frames)

    def __len__(self) -> int:
        return len(self._frames)


class EgressPort(Port):
    """A port that frames are put into; those that find it idle never see the queue."""

    __slots__ = ("queue",)

    def __init__(self, engine: Engine, name: str, rate_bps: int, taps: Taps) -> None:
        self.queue = EgressQueue()
        super().__init__(engine, name, rate_bps, self.queue, taps, idle_part=FLOW_CONTROL)

    def enqueue(self, frame: Frame) -> None:
        """The frame may leave from now on."""
        engine = self._engine
        frame.eligible_ps = engine.now_ps
        if not self._wake_due:
            if engine.now_ps >= self.busy_until_ps:
                self.start(frame)
                return
            self._wake_due = True
            engine.at(self.busy_until_ps, self._wake)
        frame.busy_mark_ps, frame.control_mark_ps = self.elapsed()
        self.queue.push(frame)
