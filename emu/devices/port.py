"""A port's egress: pulls a frame whenever its wire is free, and says when the far end has it.

The times are those of the timing model (docs/timing.md): a port that starts a frame at t is busy until t + ser;
the far end acts on it at t + propagation + its own delay, plus ser where it waits for the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import NamedTuple, Protocol

from emu.devices.passage import Passage, spread
from emu.engine import Engine
from emu.frame import NO_PARTS, Frame, Message
from emu.taps import Taps
from emu.units import SECOND
from emu.wire.base import Wire


class FrameSource(Protocol):
    """The port pulls: it asks for the next frame each time its wire is free."""

    def pop(self) -> Frame | None:
        """The frame to start now, or None where nothing may start."""

    def waiting(self) -> bool:
        """Whether asking again when the wire is free could give a frame."""


class FarEnd(NamedTuple):
    """The other end of a link, as far as the sender's arithmetic needs it. Times in picoseconds."""

    deliver: Callable[[Frame], object]
    waits_for_last_bit: bool  # a NIC, or a store-and-forward switch
    hop_latency_ps: int  # a switch's pipeline
    receive_ps: int  # a NIC's receive pipeline


class Port:
    """One direction of one link, seen from its sender."""

    __slots__ = (
        "_byte_den",
        "_byte_num",
        "_control_on_wire",
        "_engine",
        "_idle_part",
        "_taps",
        "_wake_due",
        "arrival_offset_ps",
        "arrive",
        "busy_ps",
        "busy_until_ps",
        "control_frames",
        "control_ps",
        "data_frames",
        "far",
        "lost_bytes",
        "lost_frames",
        "name",
        "propagation_ps",
        "rate_bps",
        "source",
        "tx_bytes",
        "wire",
    )

    far: FarEnd
    propagation_ps: int
    arrival_offset_ps: int
    arrive: Callable[[Frame], object]

    def __init__(
        self, engine: Engine, name: str, rate_bps: int, source: FrameSource, taps: Taps, *, idle_part: int
    ) -> None:
        divisor = gcd(8 * SECOND, rate_bps)
        self._byte_num, self._byte_den = 8 * SECOND // divisor, rate_bps // divisor
        self._engine = engine
        self._taps = taps
        self._wake_due = False
        self._control_on_wire = False
        self._idle_part = idle_part  # where in `Parts` a message's wait goes while this wire is idle
        self.name = name
        self.rate_bps = rate_bps
        self.source = source
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
        self.far = far
        self.propagation_ps = propagation_ps
        self.wire = wire
        self.arrival_offset_ps = propagation_ps + far.hop_latency_ps + far.receive_ps
        self.arrive = far.deliver if wire is None else self._receive

    def serialization_ps(self, wire_bytes: int) -> int:
        """`wire_bytes` x the time of one byte, rounded up to a whole picosecond."""
        return -(-wire_bytes * self._byte_num // self._byte_den)

    def kick(self) -> None:
        """The source has something new: start it if the wire is free, else when it will be."""
        if self._wake_due:
            return
        if self._engine.now_ps >= self.busy_until_ps:
            frame = self.source.pop()
            if frame is not None:
                self.start(frame)
        else:
            self._wake_due = True
            self._engine.at(self.busy_until_ps, self._wake)

    def _wake(self, _: None) -> None:
        self._wake_due = False
        frame = self.source.pop()
        if frame is not None:
            self.start(frame)

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
        if frame.carries_data:
            self.data_frames += 1
            self._control_on_wire = False
        else:
            self.control_frames += 1
            self.control_ps += ser_ps
            self._control_on_wire = True
        if self._taps.frame_sent:
            self._taps.frame_sent(now_ps, self.name, frame)
        if self.wire is None or self.wire.send(frame):
            offset_ps = self.arrival_offset_ps + (ser_ps if self.far.waits_for_last_bit else 0)
            engine.at(now_ps + offset_ps, self.arrive, frame)
        else:
            self._lose(frame)
        if self.source.waiting():
            self._wake_due = True
            engine.at(self.busy_until_ps, self._wake)

    def _account(self, frame: Frame, message: Message, now_ps: int) -> None:
        """Book where the frame's age comes from, up to its first bit leaving now: see devices/passage.py."""
        hops, hop, ser_ps = message.hops, frame.hop, frame.ser_ps
        last: Passage | None = hops[hop] if hop < len(hops) else None
        busy_ps, control_ps = self.busy_ps, self.control_ps
        if last is not None and last.port is self and frame.eligible_ps <= last.end_ps:
            nic, serial, prop, switch, queue, control, flow = last.parts
            parts = (nic, serial + last.ser_ps, prop, switch, queue, control, flow)
            gap_ps, since = now_ps - last.end_ps, last
        else:
            parts, gap_ps, since = frame.parts, now_ps - frame.eligible_ps, frame.marks
        if gap_ps:
            parts = spread(parts, gap_ps, busy_ps - since.busy_ps, control_ps - since.control_ps, self._idle_part)
        passage = Passage(self, parts, ser_ps, now_ps + ser_ps, busy_ps + ser_ps, control_ps)
        if hop < len(hops):
            hops[hop] = passage
        else:
            hops.append(passage)
        frame.hop = hop + 1
        nic, serial, prop, switch, queue, control, flow = parts
        far = self.far
        if far.waits_for_last_bit:
            serial += ser_ps
        frame.parts = (
            nic + far.receive_ps,
            serial,
            prop + self.propagation_ps,
            switch + far.hop_latency_ps,
            queue,
            control,
            flow,
        )

    def _receive(self, frame: Frame) -> None:
        arrived = self.wire.receive(frame) if self.wire is not None else frame
        if arrived is None:
            self._lose(frame)
        else:
            self.far.deliver(arrived)

    def _lose(self, frame: Frame) -> None:
        self.lost_frames += 1
        self.lost_bytes += frame.wire_bytes

    def mark(self) -> Passage:
        """The books as they stand now, for something that begins to wait here."""
        now_ps = self._engine.now_ps
        rest_ps = max(0, self.busy_until_ps - now_ps)
        control_ps = self.control_ps - (rest_ps if self._control_on_wire else 0)
        return Passage(self, NO_PARTS, 0, now_ps, self.busy_ps - rest_ps, control_ps)
