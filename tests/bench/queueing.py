"""The mean wait at a NIC's egress under random arrivals, against M/D/1's: rho / (2 (1 - rho)) service times."""

from __future__ import annotations

import time
from fractions import Fraction

from emu.devices.ingress import Ingress
from emu.devices.port import FarEnd
from emu.devices.pull import PullPort
from emu.devices.transmit import Transmit
from emu.engine import Engine
from emu.frame import Frame
from emu.opcodes import CNP
from emu.taps import Taps
from tests.bench.figure import Figure
from tests.devices.bench import envelope
from traffic.workloads.poisson import arrivals, mean_gap_ps

LIMIT = 0.02
LOADS = ("0.3", "0.5", "0.7")
FRAMES = 1_000_000
RATE_BPS = 100 * 10**9
ENVELOPE = envelope()


def measure() -> list[Figure]:
    """One figure a load."""
    return [_figure(load) for load in LOADS]


def _figure(load: str) -> Figure:
    began = time.perf_counter()
    waited = Egress().mean_wait(load)
    theory = float(Fraction(load) / (2 * (1 - Fraction(load))))
    return Figure(
        f"mean wait at load {load} off M/D/1's, as a share",
        abs(waited / theory - 1),
        LIMIT,
        f"{waited:.4f} service times against {theory:.4f}, {FRAMES} frames in {time.perf_counter() - began:.1f} s",
    )


class Egress:
    """A NIC's port and what it pulls from, with frames put straight into its one lane."""

    def __init__(self) -> None:
        self._engine = Engine()
        self._waited_ps = 0
        self._due_ps = 0
        taps = Taps()
        taps.frame_sent = self._sent
        self._source = Transmit(self._engine, lambda _: None, lambda _: None, lanes=1)
        port = PullPort(self._engine, "h0-s0", RATE_BPS, self._source, taps, self._source.lanes)
        self._source.port = self._port = port
        port.join(FarEnd(lambda _: None, True, 0, 0, Ingress(self._engine, 1, port)), 0, None)

    def mean_wait(self, load: str) -> float:
        """In service times."""
        wire_bytes = Frame(ENVELOPE, CNP, 0).wire_bytes
        gap_ps = mean_gap_ps(wire_bytes, RATE_BPS, Fraction(load))
        self._times = arrivals(1, f"bench/{load}", FRAMES, gap_ps)
        self._next()
        self._engine.run()
        return self._waited_ps / FRAMES / self._port.serialization_ps(wire_bytes)

    def _next(self) -> None:
        for when_ps in self._times:
            self._engine.at(when_ps, self._arrive)
            return

    def _arrive(self, _: None) -> None:
        frame = Frame(ENVELOPE, CNP, 0)
        frame.eligible_ps = self._engine.now_ps
        self._source.notify(frame)
        self._next()

    def _sent(self, when_ps: int, _: str, frame: Frame) -> None:
        self._waited_ps += when_ps - frame.eligible_ps
