"""A port's egress: starts frames on its wire, one at a time, and says when the far end has them.

The times are those of the timing model (docs/timing.md): a port that starts a frame at t is busy until t + ser;
the far end acts on it at t + propagation + its own delay, plus ser where it waits for the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from heapq import heappush
from math import gcd
from typing import NamedTuple

from emu.devices.passage import Passage
from emu.engine import Action, Engine
from emu.frame import Frame, Message
from emu.parts import SERIALIZATION, pack, spread
from emu.taps import Taps
from emu.units import SECOND
from emu.wire.base import Wire


class FarEnd(NamedTuple):
    """The other end of a link, as far as the sender's arithmetic needs it. Times in picoseconds."""

    deliver: Callable[[Frame], object]
    waits_for_last_bit: bool  # a NIC, or a store-and-forward switch
    hop_latency_ps: int  # a switch's pipeline
    receive_ps: int  # a NIC's receive pipeline


class Port:
    """One direction of one link, seen from its sender."""

    __slots__ = (
        "_arrival_offset_ps",
        "_byte_den",
        "_byte_num",
        "_engine",
        "_far_waits",
        "_idle_part",
        "_in_flight",
        "_on_wire",
        "_onward",
        "_send",
        "_taps",
        "_wake_action",
        "_wake_due",
        "busy_ps",
        "busy_until_ps",
        "control_frames",
        "control_ps",
        "data_frames",
        "deliver",
        "lost_bytes",
        "lost_frames",
        "name",
        "propagation_ps",
        "rate_bps",
        "tx_bytes",
        "wire",
    )

    propagation_ps: int
    deliver: Callable[[Frame], object]
    _send: Callable[[Frame], bool] | None
    _in_flight: Collection[Frame]

    def __init__(self, engine: Engine, name: str, rate_bps: int, taps: Taps, *, idle_part: int) -> None:
        divisor = gcd(8 * SECOND, rate_bps)
        self._byte_num, self._byte_den = 8 * SECOND // divisor, rate_bps // divisor
        self._engine = engine
        self._taps = taps
        self._wake_due = False  # whether a wake-up is scheduled for when the wire is free
        self._wake_action: Action = self.wake
        self._on_wire: Frame | None = None  # the last to start here
        self._idle_part = idle_part  # where in a message's parts its wait goes while this wire is idle
        self.name = name
        self.rate_bps = rate_bps
        self.busy_until_ps = 0
        self.busy_ps = 0  # all serialization started here
        self.control_ps = 0  # of it, control frames'
        self.tx_bytes = 0
        self.data_frames = 0
        self.control_frames = 0
        self.lost_frames = 0
        self.lost_bytes = 0
        self.wire: Wire | None = None

    def join(self, far: FarEnd, propagation_ps: int, wire: Wire | None) -> None:
        """Connect the far end; without a wire the frame object itself is handed over."""
        self.deliver = far.deliver
        self.propagation_ps = propagation_ps
        self.wire = wire
        self._far_waits = far.waits_for_last_bit
        self._onward = pack(far.receive_ps, 0, propagation_ps, far.hop_latency_ps)
        self._arrival_offset_ps = propagation_ps + far.hop_latency_ps + far.receive_ps
        self._send = wire.send if wire is not None else None
        self._in_flight = wire.in_flight if wire is not None else ()

    def serialization_ps(self, wire_bytes: int) -> int:
        """`wire_bytes` x the time of one byte, rounded up to a whole picosecond."""
        return -(-wire_bytes * self._byte_num // self._byte_den)

    def wake(self, _: None) -> None:
        """The wire is free, and something waits for it."""
        raise NotImplementedError

    def start(self, frame: Frame) -> None:
        """The frame's first bit leaves now."""
        engine = self._engine
        now_ps = engine.now_ps
        wire_bytes = frame.wire_bytes
        ser_ps = frame.ser_ps = -(-wire_bytes * self._byte_num // self._byte_den)
        if frame.message is not None:
            self._account(frame, frame.message, now_ps)
        self.busy_until_ps = now_ps + ser_ps
        self.busy_ps += ser_ps
        self.tx_bytes += wire_bytes
        self._on_wire = frame
        if frame.carries_data:
            self.data_frames += 1
        else:
            self.control_frames += 1
            self.control_ps += ser_ps
        if self._taps.frame_sent:
            self._taps.frame_sent(now_ps, self.name, frame)
        send = self._send
        if send is None or send(frame):
            arrive = self._receive if self._in_flight else self.deliver
            offset_ps = self._arrival_offset_ps + (ser_ps if self._far_waits else 0)
            heappush(engine.queue, (now_ps + offset_ps, engine.tick(), arrive, frame))
        else:
            self._lose(frame)

    def _account(self, frame: Frame, message: Message, now_ps: int) -> None:
        """Book where the frame's age comes from, up to its first bit leaving now: see devices/passage.py."""
        hops, hop, ser_ps = message.hops, frame.hop, frame.ser_ps
        busy_ps, control_ps = self.busy_ps, self.control_ps
        if hop == len(hops):
            hops.append(Passage())
        passage: Passage = hops[hop]
        if passage.port is self and frame.eligible_ps <= passage.end_ps:
            parts, gap_ps = passage.parts, now_ps - passage.end_ps
            if gap_ps:
                busy_mark_ps, control_mark_ps = passage.busy_ps, passage.control_ps
                parts += spread(gap_ps, busy_ps - busy_mark_ps, control_ps - control_mark_ps, self._idle_part)
        else:
            parts, gap_ps = frame.parts, now_ps - frame.eligible_ps
            if gap_ps:
                busy_mark_ps, control_mark_ps = frame.busy_mark_ps, frame.control_mark_ps
                parts += spread(gap_ps, busy_ps - busy_mark_ps, control_ps - control_mark_ps, self._idle_part)
            passage.port = self
        at_end = passage.parts = parts + (ser_ps << SERIALIZATION)
        passage.end_ps, passage.busy_ps, passage.control_ps = now_ps + ser_ps, busy_ps + ser_ps, control_ps
        frame.hop = hop + 1
        frame.parts = (at_end if self._far_waits else parts) + self._onward

    def _receive(self, frame: Frame) -> None:
        arrived = self.wire.receive(frame) if self.wire is not None else frame
        if arrived is None:
            self._lose(frame)
        else:
            self.deliver(arrived)

    def _lose(self, frame: Frame) -> None:
        self.lost_frames += 1
        self.lost_bytes += frame.wire_bytes

    def elapsed(self) -> tuple[int, int]:
        """What has been serialized here by now and, of it, control frames, in picoseconds."""
        rest_ps = self.busy_until_ps - self._engine.now_ps
        if rest_ps <= 0 or self._on_wire is None:
            return self.busy_ps, self.control_ps
        if self._on_wire.carries_data:
            return self.busy_ps - rest_ps, self.control_ps
        return self.busy_ps - rest_ps, self.control_ps - rest_ps

    def begin(self, parts: int) -> Passage:
        """The books for a message that may leave from now on, and whose age so far is `parts`."""
        passage = Passage()
        passage.port, passage.parts, passage.end_ps = self, parts, self._engine.now_ps
        passage.busy_ps, passage.control_ps = self.elapsed()
        return passage
