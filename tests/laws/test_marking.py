"""Marks at a real egress follow the curve: never up to Kmin, by chance rising to Pmax at Kmax, always beyond."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from math import sqrt
from random import Random

import pytest

from emu.engine import Engine
from emu.linklayer.ecn import EcnConfig, Marker
from tests.devices.bench import control_frame, data_frame, egress, message

KB = 1000
SIGMAS = 5  # one in 1.7 million would be further off by chance; the numbers are the same in every run
BIN_BYTES = 5 * KB
FRAMES = 20_000


class Bench:
    """One port under random load; notes of each data frame how long it made its queue, and whether it was marked."""

    def __init__(self, config: EcnConfig, seed: int) -> None:
        self.engine = Engine()
        self.port, self.sink = egress(self.engine, rate_gbps=100)
        self.lane = self.port.queues[0]
        self.lane.marker = Marker(config, Random(seed))
        self.numbers = Random(f"{seed}/arrivals")
        self.seen: list[tuple[int, bool]] = []
        self.left = FRAMES
        self.rising = True
        self.most_bytes = config.kmax_bytes + 10 * KB
        self.engine.at(0, self._arrive)

    def _arrive(self, _: None) -> None:
        """Load above and below the line rate in turn, so that the queue goes up beyond Kmax and down to nothing."""
        held = self.lane.held_bytes
        self.rising = held < self.most_bytes if self.rising else held == 0
        frame = data_frame(message(), self.numbers.randint(500, 1500))
        self.port.enqueue(frame)
        if self.lane.held_bytes > held:
            self.seen.append((self.lane.held_bytes, frame.fecn))
        self.left -= 1
        if self.left:
            gap_ps = 80_000 * (0.7 if self.rising else 1.4)
            self.engine.at(self.engine.now_ps + round(self.numbers.expovariate(1 / gap_ps)), self._arrive)


@pytest.mark.parametrize(
    ("kmin", "kmax", "pmax"),
    [(10, 60, Fraction(1, 5)), (5, 80, Fraction(1)), (20, 40, Fraction(1, 100)), (0, 50, Fraction(1, 2))],
)
def test_the_share_marked_follows_the_curve(kmin: int, kmax: int, pmax: Fraction) -> None:
    config = EcnConfig(kmin_bytes=kmin * KB, kmax_bytes=kmax * KB, pmax=pmax)
    bench = Bench(config, seed=1)
    bench.engine.run()
    assert len(bench.seen) > FRAMES // 2
    assert not any(marked for held, marked in bench.seen if held <= config.kmin_bytes)
    above = [marked for held, marked in bench.seen if held > config.kmax_bytes]
    assert len(above) > 100
    assert all(above)
    marked_in: Counter[int] = Counter()
    expected: dict[int, float] = defaultdict(float)
    variance: dict[int, float] = defaultdict(float)
    for held, marked in bench.seen:
        if config.kmin_bytes < held <= config.kmax_bytes:
            chance = float(config.pmax) * (held - config.kmin_bytes) / (config.kmax_bytes - config.kmin_bytes)
            place = held // BIN_BYTES
            marked_in[place] += marked
            expected[place] += chance
            variance[place] += chance * (1 - chance)
    assert len(expected) >= (kmax - kmin) // 5
    for place, mean in expected.items():
        assert abs(marked_in[place] - mean) <= SIGMAS * sqrt(variance[place]) + 1
    assert bench.lane.marked == sum(marked for _, marked in bench.seen)


def test_without_a_step_it_is_never_and_then_always() -> None:
    bench = Bench(EcnConfig(kmin_bytes=30 * KB, kmax_bytes=30 * KB, pmax=Fraction(0)), seed=1)
    bench.engine.run()
    assert {(held > 30 * KB) == marked for held, marked in bench.seen} == {True}


def test_an_idle_port_never_marks() -> None:
    """A frame that starts at once was in no queue."""
    engine = Engine()
    port, sink = egress(engine)
    port.queues[0].marker = Marker(EcnConfig(kmin_bytes=0, kmax_bytes=0, pmax=Fraction(1)), Random(1))
    for number in range(10):
        engine.at(number * 100_000, port.enqueue, data_frame(message()))
    engine.run()
    assert [frame.fecn for _, frame in sink.arrived] == [False] * 10
    assert port.queues[0].marked == 0


def test_only_data_is_marked_and_once() -> None:
    engine = Engine()
    port, sink = egress(engine)
    port.queues[0].marker = marker = Marker(EcnConfig(kmin_bytes=0, kmax_bytes=0, pmax=Fraction(1)), Random(1))
    marked_before = data_frame(message())
    marked_before.fecn = True
    for frame in (data_frame(message()), data_frame(message()), control_frame(), marked_before):
        port.enqueue(frame)
    engine.run()
    assert [frame.fecn for _, frame in sink.arrived] == [False, True, False, True]
    assert marker.marked == 1
