"""One direction of a link: what is on it now, what the far end is told and when, what was lost.

The times are those of the timing model (docs/timing.md): what starts at t takes the wire until t + ser; the far end
acts on it at t + propagation + its own delay, plus ser where it waits for the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum
from heapq import heappush
from math import gcd
from typing import NamedTuple

from emu.devices.ingress import Ingress
from emu.engine import URGENT, Action, Engine
from emu.frame import ControlFrame, Frame
from emu.parts import CONTROL, QUEUEING, pack, weight
from emu.taps import Taps
from emu.units import SECOND
from emu.wire.base import Wire


class Called(Enum):
    """When a far end is called; what is left of its delay then, it waits itself."""

    FIRST_BIT = "as the first bit is in"
    LAST_BIT = "as the last bit is in"
    READY = "as it can act"


class FarEnd(NamedTuple):
    """The other end of a link, as far as the sender's arithmetic needs it. Times in picoseconds."""

    deliver: Callable[[Frame], object]
    waits_for_last_bit: bool  # a NIC, or a store-and-forward switch
    hop_latency_ps: int  # a switch's pipeline
    receive_ps: int  # a NIC's receive pipeline
    ingress: Ingress | None = None  # which buffer it goes into there
    called: Called = Called.READY


class Line:
    """Seen from its sender. Ports derive from it and say what starts next."""

    __slots__ = (
        "_arrival_offset_ps",
        "_arrives_whole",
        "_byte_den",
        "_byte_num",
        "_control_weight",
        "_data_weight",
        "_engine",
        "_far_waits",
        "_idle_part",
        "_in_flight",
        "_leaving",
        "_on_wire",
        "_onward",
        "_send",
        "_taps",
        "_wake_action",
        "_wake_due",
        "_weight",
        "busy_ps",
        "busy_until_ps",
        "control_frames",
        "credit_frames",
        "data_frames",
        "deliver",
        "far_ingress",
        "flow",
        "hear",
        "heard_link_frames",
        "link_bytes",
        "link_frames",
        "lost_bytes",
        "lost_frames",
        "lost_link_frames",
        "name",
        "pause_frames",
        "propagation_ps",
        "rate_bps",
        "tx_bytes",
        "waits",
        "wire",
    )

    propagation_ps: int
    deliver: Callable[[Frame], object]
    hear: Callable[[ControlFrame], object]
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
        self._leaving: Ingress | None = None  # which buffer it leaves, if any
        self._idle_part = idle_part  # where in a message's parts its wait goes while this wire is idle
        self._data_weight, self._control_weight = weight(QUEUEING, idle_part), weight(CONTROL, idle_part)
        self._weight = 0  # of what is on the wire
        self.flow: Ingress | None = None  # what the peer's flow control says, and ours to it; None: there is none
        self.far_ingress: Ingress | None = None
        self.name = name
        self.rate_bps = rate_bps
        self.busy_until_ps = 0
        self.busy_ps = 0  # all serialization started here
        self.waits = 0  # the same, as what it is to those who wait: emu/parts.py
        self.tx_bytes = 0
        self.data_frames = 0
        self.control_frames = 0  # all others, the link's own included
        self.link_frames = 0  # of them the link's own: pauses and credits
        self.link_bytes = 0
        self.heard_link_frames = 0  # of the link's own, those that the peer understood
        self.pause_frames = 0
        self.credit_frames = 0
        self.lost_frames = 0
        self.lost_bytes = 0
        self.lost_link_frames = 0
        self.wire: Wire | None = None

    def join(self, far: FarEnd, propagation_ps: int, wire: Wire | None) -> None:
        """Connect the far end; without a wire the frame object itself is handed over."""
        self.deliver = far.deliver
        self.hear = self._hear
        self.far_ingress = far.ingress
        self.propagation_ps = propagation_ps
        self.wire = wire
        self._far_waits = far.waits_for_last_bit
        self._onward = pack(far.receive_ps, 0, propagation_ps, far.hop_latency_ps)
        delay_ps = far.hop_latency_ps + far.receive_ps if far.called is Called.READY else 0
        self._arrival_offset_ps = propagation_ps + delay_ps
        self._arrives_whole = far.called is Called.LAST_BIT or (far.called is Called.READY and far.waits_for_last_bit)
        self._send = wire.send if wire is not None else None
        self._in_flight = wire.in_flight if wire is not None else ()

    def serialization_ps(self, wire_bytes: int) -> int:
        """`wire_bytes` x the time of one byte, rounded up to a whole picosecond."""
        return -(-wire_bytes * self._byte_num // self._byte_den)

    def wake(self, _: None) -> None:
        """The wire is free, and something waits for it."""
        raise NotImplementedError

    def kick(self) -> None:
        """There is something new to start: now if the wire is free, else when it will be."""
        raise NotImplementedError

    def start_control(self, frame: ControlFrame) -> None:
        """A frame of the link's own leaves now; the wire is asked again once it is out."""
        engine = self._engine
        now_ps = engine.now_ps
        ser_ps = frame.ser_ps = self.serialization_ps(frame.wire_bytes)
        self.busy_until_ps = now_ps + ser_ps
        self.busy_ps += ser_ps
        self.tx_bytes += frame.wire_bytes
        self.link_bytes += frame.wire_bytes
        self._on_wire, self._leaving, self._weight = frame, None, self._control_weight
        self.waits += ser_ps * self._weight
        self._wake_due = True
        heappush(engine.queue, (self.busy_until_ps, engine.tick(), self._wake_action, None))
        self.hand_over(frame, self.propagation_ps + ser_ps)

    def hand_over(self, frame: ControlFrame, delay_ps: int) -> None:
        """Put a frame of the link's own on the wire; the peer hears it `delay_ps` from now."""
        engine = self._engine
        self.control_frames += 1
        self.link_frames += 1
        if self._taps.frame_sent:
            self._taps.frame_sent(engine.now_ps, self.name, frame)
        if self._send is None or self._send(frame):
            hear = self._receive_control if self._in_flight else self.hear
            heappush(engine.queue, (engine.now_ps + delay_ps, engine.tick() + URGENT, hear, frame))
        else:
            self.lose_control(frame)

    def _receive(self, frame: Frame) -> None:
        arrived = self.wire.receive(frame) if self.wire is not None else frame
        if arrived is None:
            self.lose(frame)
        else:
            self.deliver(arrived)

    def _receive_control(self, frame: ControlFrame) -> None:
        arrived = self.wire.receive(frame) if self.wire is not None else frame
        if not isinstance(arrived, ControlFrame) or arrived.bad:
            self.lose_control(frame)
        else:
            self.hear(arrived)

    def _hear(self, frame: ControlFrame) -> None:
        self.heard_link_frames += 1
        if self.far_ingress is not None:
            self.far_ingress.on_control(frame.control)

    def take_in(self, frame: Frame) -> None:
        """A frame that nobody in the model sent comes out of the far end now."""
        ingress = self.far_ingress
        if isinstance(frame, ControlFrame):
            if ingress is not None:
                ingress.on_stranger(frame.control)
        elif ingress is not None:
            ingress.take_in(frame, self.deliver)
        else:
            self.deliver(frame)

    def lose(self, frame: Frame) -> None:
        """A frame that left here does not come in at the far end."""
        self.lost_frames += 1
        self.lost_bytes += frame.wire_bytes
        if self.flow is not None:
            self.flow.lost(frame)

    def lose_control(self, frame: ControlFrame) -> None:
        """A frame of the link's own is not heard at the far end."""
        self.lost_link_frames += 1
        if self.flow is not None:
            self.flow.lost(frame)

    @property
    def leaving(self) -> Frame | None:
        """A frame on the wire that still takes room in the buffer it came from."""
        return self._on_wire if self._leaving is not None else None

    @property
    def leaves(self) -> Ingress | None:
        """Which buffer that is."""
        return self._leaving

    @property
    def sent_frames(self) -> int:
        """All but the link's own."""
        return self.data_frames + self.control_frames - self.link_frames

    def waits_now(self) -> int:
        """What has been waited for here by now: of a frame on the wire, the part that is out."""
        rest_ps = self.busy_until_ps - self._engine.now_ps
        return self.waits if rest_ps <= 0 else self.waits - rest_ps * self._weight

    def elapsed_ps(self) -> int:
        """What has been serialized here by now."""
        return self.busy_ps - max(0, self.busy_until_ps - self._engine.now_ps)
