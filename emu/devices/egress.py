"""A switch's egress: a port with a queue for each lane before it, and an arbiter among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heappush
from typing import Protocol

from emu.devices.lane import Lane, QueueLane, Turns
from emu.devices.port import Port
from emu.engine import Engine
from emu.frame import Frame
from emu.parts import FLOW_CONTROL
from emu.taps import Taps


class Arbiter(Protocol):
    """Who sends next among several lanes (emu/linklayer/arbiter.py)."""

    def pick(self, ready: int, costs: Sequence[int], /) -> int:
        """The lane of those in `ready` (bit n: lane n) whose first frame is sent now."""


class Highest:
    """The lane of the highest number first."""

    def pick(self, ready: int, costs: Sequence[int], /) -> int:
        """The highest of those that are ready."""
        return ready.bit_length() - 1


def wire_bytes_of(frame: Frame) -> int:
    """What a frame costs where bytes are shared out."""
    return frame.wire_bytes


class EgressPort(Port):
    """A port that frames are put into. Its queues have no bound: what may come in is limited at the ingress."""

    __slots__ = (
        "_arbiter",
        "_by_port",
        "_by_source",
        "_cost",
        "_costs",
        "_waiting",
        "on_abandoned",
        "on_drop",
        "queues",
    )

    def __init__(
        self,
        engine: Engine,
        name: str,
        rate_bps: int,
        taps: Taps,
        *,
        lanes: int = 1,
        turns: Turns = Turns.NOBODY,
        arbiter: Arbiter | None = None,
        cost: Callable[[Frame], int] = wire_bytes_of,
    ) -> None:
        super().__init__(engine, name, rate_bps, taps, idle_part=FLOW_CONTROL)
        self.lanes = self.queues = tuple(QueueLane(number, FLOW_CONTROL) for number in range(lanes))
        self._by_port, self._by_source = turns is Turns.PORT, turns is Turns.SOURCE
        self._arbiter = arbiter or Highest()
        self._cost = cost
        self._costs = [0] * lanes
        self._waiting = 0  # bit n: lane n has frames
        self.on_drop: Callable[[Frame], object] | None = None  # the switch's books
        self.on_abandoned: Callable[[Frame], object] | None = None

    def enqueue(self, frame: Frame) -> None:
        """The frame may leave from now on."""
        now_ps = frame.eligible_ps = self._engine.now_ps
        lane = self.queues[frame.envelope.lane]
        if lane.dropping:
            self._throw_away(frame)
            return
        if not self._wake_due:
            if now_ps < self.busy_until_ps:
                self._wake_at_end()
            elif not self._waiting & lane.bit:
                if self.flow is None or lane.forced or self.flow.may_start(frame):
                    self.start(frame, lane)
                    if self.flow is not None or self._waiting:
                        self._wake_at_end()
                else:
                    self._push(frame, lane)
                    self.block(lane)
                return
        self._push(frame, lane)

    def wake(self, _: None) -> None:
        """The wire is free: say what flow control has to say, else start the next frame."""
        self._wake_due = False
        flow = self.flow
        if flow is not None:
            leaving, frame = self._leaving, self._on_wire
            if leaving is not None and frame is not None:
                self._leaving = None
                leaving.release(frame)
                if self._wake_due:
                    return
            if flow.due:
                self.start_control(flow.control_frame())
                return
        if not self._waiting:
            return
        lane = self._next()
        if lane is not None:
            self.start(self._pop(lane), lane)
            if flow is not None or self._waiting:  # with flow control, its buffer is to be told that it has left
                self._wake_at_end()

    def kick(self) -> None:
        if not self._wake_due:
            self.wake(None)

    def empty(self, lane: QueueLane) -> list[Frame]:
        """Take all frames out of a lane."""
        self.unblock(lane)
        frames = []
        while lane.frames:
            frames.append(self._pop(lane))
        return frames

    def abandon(self, lane: Lane) -> None:
        if lane.abandoned and self._blocked & lane.bit:
            for frame in self.empty(self.queues[lane.number]):
                self.abandoned_frames += 1
                if self.on_abandoned is not None:
                    self.on_abandoned(frame)

    def throw_away(self, lane: QueueLane) -> None:
        """Drop what waits in a lane: its watchdog gave it up."""
        for frame in self.empty(lane):
            self._throw_away(frame)

    def queued(self) -> Iterator[Frame]:
        """Every frame that waits here."""
        for lane in self.queues:
            yield from lane.frames

    @property
    def queued_frames(self) -> int:
        """How many they are."""
        return sum(len(lane.frames) for lane in self.queues)

    def _wake_at_end(self) -> None:
        self._wake_due = True
        engine = self._engine
        heappush(engine.queue, (self.busy_until_ps, engine.tick(), self._wake_action, None))

    def _push(self, frame: Frame, lane: QueueLane) -> None:
        rest_ps = self.busy_until_ps - frame.eligible_ps
        waits = self.waits if rest_ps <= 0 else self.waits - rest_ps * self._weight  # as waits_now()
        blocked = lane.blocked_since_ps >= 0
        frame.waits_mark = lane.waits_at(frame.eligible_ps, waits) if blocked else waits + lane.waits
        if self._by_port:
            lane.frames.push(frame.ingress.number, frame)
        else:
            lane.frames.push(frame.envelope.source if self._by_source else 0, frame)
        lane.held_bytes += frame.wire_bytes
        if lane.held_bytes > lane.max_held_bytes:
            lane.max_held_bytes = lane.held_bytes
        self._waiting |= lane.bit
        held_bytes = self.held_bytes = self.held_bytes + frame.wire_bytes
        if held_bytes > self.max_held_bytes:
            self.max_held_bytes = held_bytes
        if lane.marker is not None and frame.carries_data and not frame.fecn and lane.marker.marks(lane.held_bytes):
            frame.fecn = True
            frame.data = None  # its bytes are others now
            if lane.first_mark_ps < 0:
                lane.first_mark_ps = self._engine.now_ps

    def _pop(self, lane: QueueLane) -> Frame:
        frame = lane.frames.pop()
        lane.held_bytes -= frame.wire_bytes
        self.held_bytes -= frame.wire_bytes
        if not lane.frames:
            self._waiting &= ~lane.bit
        return frame

    def _next(self) -> QueueLane | None:
        """Whose first frame starts now."""
        waiting, flow, ready = self._waiting, self.flow, 0
        alone = not waiting & waiting - 1
        if alone and flow is None:
            return self.queues[waiting.bit_length() - 1]
        while waiting:
            lane = self.queues[waiting.bit_length() - 1]
            waiting &= ~lane.bit
            frame = lane.first()
            if flow is None or lane.forced or flow.may_start(frame):
                if self._blocked & lane.bit:
                    self.unblock(lane)
                if alone:
                    return lane
                ready |= lane.bit
                self._costs[lane.number] = self._cost(frame)
            else:
                self.block(lane)
        return self.queues[self._arbiter.pick(ready, self._costs)] if ready else None

    def _throw_away(self, frame: Frame) -> None:
        if self.on_drop is not None:
            self.on_drop(frame)
        if frame.ingress is not None:
            frame.ingress.release(frame)
