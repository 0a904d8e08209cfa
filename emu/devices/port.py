"""A port's egress: starts frames on its line, one at a time, and books what those waited for that had to wait."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappush

from emu.devices.lane import Lane, Watch
from emu.devices.line import Called, FarEnd, Line
from emu.devices.passage import Passage
from emu.engine import Engine
from emu.frame import Frame, Message
from emu.parts import FIELD_MASK, SERIALIZATION
from emu.taps import Taps

__all__ = ["Called", "FarEnd", "Port"]


class Port(Line):
    """Its lanes are blocked while flow control keeps their first frames from starting."""

    __slots__ = ("_blocked", "abandoned_frames", "held_bytes", "lanes", "max_held_bytes", "watches")

    lanes: Sequence[Lane]

    def __init__(self, engine: Engine, name: str, rate_bps: int, taps: Taps, *, idle_part: int) -> None:
        super().__init__(engine, name, rate_bps, taps, idle_part=idle_part)
        self._blocked = 0  # bit n: flow control keeps lane n from sending
        self.abandoned_frames = 0  # thrown away here, as the credits that they waited for cannot come
        self.watches: tuple[Watch, ...] = ()  # told when a lane is blocked
        self.lanes = ()
        self.held_bytes = 0  # of frames that wait here, in all lanes
        self.max_held_bytes = 0

    def start(self, frame: Frame, lane: Lane) -> None:
        """The frame's first bit leaves now."""
        engine = self._engine
        now_ps = engine.now_ps
        wire_bytes = frame.wire_bytes
        ser_ps = frame.ser_ps = -(-wire_bytes * self._byte_num // self._byte_den)
        self.busy_until_ps = now_ps + ser_ps
        self.busy_ps += ser_ps
        self.tx_bytes += wire_bytes
        self._on_wire = frame
        if frame.carries_data:
            self.data_frames += 1
            self._weight = self._data_weight
        else:
            self.control_frames += 1
            self._weight = self._control_weight
        if frame.message is not None:
            self._account(frame, frame.message, lane, now_ps)
        self.waits += ser_ps * self._weight
        if self.flow is not None:
            self.flow.started(frame)
        self._leaving, frame.ingress = frame.ingress, self.far_ingress
        if self._taps.frame_sent:
            self._taps.frame_sent(now_ps, self.name, frame)
        send = self._send
        if send is None or send(frame):
            arrive = self._receive if self._in_flight else self.deliver
            offset_ps = self._arrival_offset_ps + (ser_ps if self._arrives_whole else 0)
            heappush(engine.queue, (now_ps + offset_ps, engine.tick(), arrive, frame))
        else:
            self.lose(frame)

    def _account(self, frame: Frame, message: Message, lane: Lane, now_ps: int) -> None:
        """Book where the frame's age comes from, up to its first bit leaving now: see devices/passage.py."""
        hops, hop, ser_ps = message.hops, frame.hop, frame.ser_ps
        waits = self.waits + lane.waits  # it is not blocked: its first frame leaves
        if hop == len(hops):
            hops.append(Passage())
        passage: Passage = hops[hop]
        if passage.port is self and frame.eligible_ps <= passage.end_ps:
            parts, gap_ps = passage.parts, now_ps - passage.end_ps
            if gap_ps:
                parts += (gap_ps << self._idle_part) + waits - passage.waits
        else:
            parts, gap_ps = frame.parts, now_ps - frame.eligible_ps
            if gap_ps:
                parts += (gap_ps << self._idle_part) + waits - frame.waits_mark
            passage.port = self
        at_end = passage.parts = parts + (ser_ps << SERIALIZATION)
        passage.end_ps, passage.waits = now_ps + ser_ps, waits + ser_ps * self._weight
        frame.hop = hop + 1
        frame.parts = (at_end if self._far_waits else parts) + self._onward

    def begin(self, parts: int, lane: Lane) -> Passage:
        """The books for a message that may leave by that lane from now on, and whose age so far is `parts`."""
        passage = Passage()
        passage.port, passage.parts, passage.end_ps = self, parts, self._engine.now_ps
        passage.waits = self.waits_of(lane)
        return passage

    def waits_of(self, lane: Lane) -> int:
        """What waiting there would have been so far, by cause."""
        return lane.waits_at(self._engine.now_ps, self.waits_now())

    def idle_ps(self, since_ps: int, waits: int, lane: Lane) -> int:
        """For how long there has been no other cause to wait since then, when `waits_of` the lane was that."""
        parts = (self._engine.now_ps - since_ps << self._idle_part) + self.waits_of(lane) - waits
        return parts >> self._idle_part & FIELD_MASK

    def block(self, lane: Lane) -> None:
        """Flow control does not let the lane's first frame go."""
        if not self._blocked & lane.bit:
            self._blocked |= lane.bit
            lane.block(self._engine.now_ps, self.waits_now())
            for watch in self.watches:
                watch.look()
            if lane.abandoned:
                self._engine.at(self._engine.now_ps, self.abandon, lane)

    def abandon(self, lane: Lane) -> None:
        """If it is abandoned still, throw away what waits there."""
        raise NotImplementedError

    def unblock(self, lane: Lane) -> None:
        """It does again, or there is none any more."""
        if self._blocked & lane.bit:
            self._blocked &= ~lane.bit
            lane.unblock(self._engine.now_ps, self.waits_now())

    def recheck(self) -> None:
        """The peer said something, or a pause ran out: who was blocked may go on."""
        flow, blocked = self.flow, self._blocked
        while blocked and flow is not None:
            lane = self.lanes[blocked.bit_length() - 1]
            blocked &= ~lane.bit
            if flow.may_start(lane.first()):
                self.unblock(lane)
        self.kick()

    def blocked_lanes(self) -> list[Lane]:
        """The lanes that flow control keeps from sending now."""
        return [lane for lane in self.lanes if self._blocked & lane.bit]

    def credit_wait_ps(self) -> int:
        """For how long lanes had frames but no credit so far, those at once added up."""
        if self.flow is None or not self.flow.grants_credits:
            return 0
        return sum(lane.blocked_ps_at(self._engine.now_ps) for lane in self.lanes)

    def paused_ps(self) -> int:
        """For how long pauses of the peer were in force so far, the priorities' added up."""
        return self.flow.paused_ps() if self.flow is not None else 0
