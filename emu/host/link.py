"""One direction of a PCI Express link: packets leave in the order they are sent in, and arrive in it.

Its queue has no bound: what PCI Express's own flow control takes of the bandwidth is in the link's rate
(emu/pcie/bandwidth.py). So when a packet leaves is known as it is sent, and it costs one event, its arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from heapq import heappush
from math import gcd
from typing import NamedTuple

from emu.engine import Engine
from emu.frame import Frame
from emu.pcie.tlp import Tlp, TlpKind
from emu.taps import Taps
from emu.units import SECOND
from emu.wire.base import Wire

MRD = TlpKind.MRD


class FarEnd(NamedTuple):
    """The other end of a link, as far as the sender's arithmetic needs it. Times in picoseconds."""

    deliver: Callable[[Tlp], object]
    forwards: bool = False  # it acts when the header is there; an endpoint acts on whole packets
    delay_ps: int = 0  # from there to when it acts: a forwarder's latency
    read_ps: int = 0  # a memory's: from a read's arrival to its data being there


class PcieLink:
    """Seen from its sender. `join` it before the first `send`.

    What starts at t takes the link until t + ser; an endpoint is called at t + latency + ser + its delay (reads:
    + `read_ps`), a forwarder at t + latency + its delay: cut-through, as docs/timing.md has it.
    """

    __slots__ = (
        "_byte_den",
        "_byte_num",
        "_deliver",
        "_engine",
        "_in_flight",
        "_offset_ps",
        "_read_ps",
        "_taps",
        "_wire_send",
        "_whole",
        "busy_ps",
        "busy_until_ps",
        "delivered_bytes",
        "delivered_tlps",
        "latency_ps",
        "lost_bytes",
        "lost_tlps",
        "name",
        "payload_bytes",
        "rate_bps",
        "tlps",
        "tx_bytes",
        "wire",
    )

    _deliver: Callable[[Tlp], object]
    _wire_send: Callable[[Frame], bool] | None
    _in_flight: Collection[Frame]

    def __init__(self, engine: Engine, name: str, rate_bps: int, latency_ps: int, taps: Taps) -> None:
        divisor = gcd(8 * SECOND, rate_bps)
        self._byte_num, self._byte_den = 8 * SECOND // divisor, rate_bps // divisor
        self._engine = engine
        self._taps = taps
        self.name = name
        self.rate_bps = rate_bps
        self.latency_ps = latency_ps  # both ends' PHYs and the way between them
        self.busy_until_ps = 0  # when the last packet that was sent will be out
        self.busy_ps = 0  # all serialization of what was sent
        self.tlps = 0
        self.tx_bytes = 0  # headers and framing included
        self.payload_bytes = 0
        self.delivered_tlps = 0
        self.delivered_bytes = 0
        self.lost_tlps = 0  # sent, but never delivered: a machine that is broken
        self.lost_bytes = 0
        self.wire: Wire | None = None

    def join(self, far: FarEnd, wire: Wire | None = None) -> None:
        """Connect the far end; without a wire the packet itself is handed over."""
        self._deliver = far.deliver
        self._whole = not far.forwards
        self._offset_ps = self.latency_ps + far.delay_ps
        self._read_ps = far.read_ps
        self.wire = wire
        self._wire_send = wire.send if wire is not None else None
        self._in_flight = wire.in_flight if wire is not None else ()

    def serialization_ps(self, wire_bytes: int) -> int:
        """`wire_bytes` x the time of one byte, rounded up to a whole picosecond."""
        return -(-wire_bytes * self._byte_num // self._byte_den)

    def send(self, tlp: Tlp) -> None:
        """The packet leaves as soon as all that was sent before it is out; its arrival is scheduled now.

        On a wire its bytes cross at once: the tap's time is when they start, which may be later than now.
        """
        engine = self._engine
        start_ps = self.busy_until_ps
        if start_ps < engine.now_ps:
            start_ps = engine.now_ps
        wire_bytes = tlp.wire_bytes
        ser_ps = -(-wire_bytes * self._byte_num // self._byte_den)
        if tlp.ser_ps > ser_ps and start_ps < engine.now_ps + tlp.ser_ps - ser_ps:
            start_ps = engine.now_ps + tlp.ser_ps - ser_ps  # forwarded from a slower link: not out before it is in
        tlp.ser_ps = ser_ps
        self.busy_until_ps = start_ps + ser_ps
        self.busy_ps += ser_ps
        self.tlps += 1
        self.tx_bytes += wire_bytes
        self.payload_bytes += len(tlp.payload)
        if self._taps.frame_sent:
            self._taps.frame_sent(start_ps, self.name, tlp)
        due_ps = start_ps + self._offset_ps
        if self._whole:
            due_ps += ser_ps
            if self._read_ps and tlp.kind is MRD:
                due_ps += self._read_ps
        if self._wire_send is None:
            heappush(engine.queue, (due_ps, engine.tick(), self._arrive, tlp))
        elif self._wire_send(tlp):
            # As emu/devices/line.py: what is not in flight any more has come out as it went in.
            arrive = self._receive if self._in_flight else self._arrive
            heappush(engine.queue, (due_ps, engine.tick(), arrive, tlp))
        else:
            self._lose(tlp)

    def elapsed_ps(self) -> int:
        """What has been serialized here by now."""
        return self.busy_ps - max(0, self.busy_until_ps - self._engine.now_ps)

    def _arrive(self, tlp: Tlp) -> None:
        self.delivered_tlps += 1
        self.delivered_bytes += tlp.wire_bytes
        self._deliver(tlp)

    def _receive(self, tlp: Tlp) -> None:
        # Nothing may change a packet inside a machine: there is no retransmission here that would repair it.
        if self.wire is not None and self.wire.receive(tlp) is not tlp:
            self._lose(tlp)
        else:
            self._arrive(tlp)

    def _lose(self, tlp: Tlp) -> None:
        self.lost_tlps += 1
        self.lost_bytes += tlp.wire_bytes
