"""What the workloads draw and reckon, without a fabric: arrival times, derangements, bytes on the wire."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.addresses import address_of
from emu.engine import stream
from emu.frame import Envelope, Message
from emu.framing.native import NativeFraming
from emu.framing.roce import RoceFraming
from emu.transport.requester import Requester, RequesterConfig, SendWqe
from traffic.workloads.permutation import derangement
from traffic.workloads.poisson import arrivals, mean_gap_ps, message_wire_bytes

MTU_BYTES = 1024


def envelope(framing: RoceFraming | NativeFraming) -> Envelope:
    """From h0 to h1."""
    return framing.envelope(address_of("h0", 0), address_of("h1", 1), source_qp=1, destination_qp=2)


def test_arrivals_come_from_the_seed_and_the_purpose_alone() -> None:
    one = list(arrivals(1, "poisson/0/0", 1000, 5000))
    assert one == list(arrivals(1, "poisson/0/0", 1000, 5000))
    assert one[:10] == list(arrivals(1, "poisson/0/0", 10, 5000))
    assert one != list(arrivals(2, "poisson/0/0", 1000, 5000))
    assert one != list(arrivals(1, "poisson/0/1", 1000, 5000))
    assert all(isinstance(when_ps, int) for when_ps in one)
    assert one == sorted(one)
    assert one[0] > 0


def test_gaps_are_exponential() -> None:
    count, mean_ps = 100_000, 250_000
    times = [0, *arrivals(7, "test", count, mean_ps)]
    gaps = sorted(after - before for before, after in pairwise(times))
    assert sum(gaps) / count == pytest.approx(mean_ps, rel=5 / math.sqrt(count))  # its deviation is its mean
    variance = sum((gap - mean_ps) ** 2 for gap in gaps) / count
    assert variance == pytest.approx(mean_ps**2, rel=5 * math.sqrt(8 / count))
    distance = max(
        abs((place + 1) / count - (1 - math.exp(-gap / mean_ps))) for place, gap in enumerate(gaps)
    )  # Kolmogorov and Smirnov's
    assert distance < 1.95 / math.sqrt(count)  # exceeded once in a thousand


def test_a_mean_below_a_picosecond_is_kept() -> None:
    count = 100_000
    *_, last = arrivals(3, "test", count, Fraction(1, 2))
    assert last / count == pytest.approx(math.exp(-1) / (1 - math.exp(-2)), rel=0.05)  # of gaps rounded to whole ps


@given(st.integers(2, 40), st.integers(0, 2**32))
def test_a_derangement_moves_everyone(hosts: int, seed: int) -> None:
    names = [f"h{number}" for number in range(hosts)]
    targets = derangement(names, stream(seed, "permutation/0"))
    assert sorted(targets) == sorted(names)
    assert all(source != target for source, target in zip(names, targets, strict=True))
    assert targets == derangement(names, stream(seed, "permutation/0"))


def test_derangements_are_equally_likely() -> None:
    names = ["h0", "h1", "h2", "h3"]
    possible = [each for each in permutations(names) if all(a != b for a, b in zip(names, each, strict=True))]
    assert len(possible) == 9
    numbers, draws = stream(1, "test"), 9_000
    found = [tuple(derangement(names, numbers)) for _ in range(draws)]
    for each in possible:
        assert abs(found.count(each) - draws / 9) < 5 * math.sqrt(draws / 9)


@pytest.mark.parametrize("framing", [RoceFraming(20), NativeFraming(8)])
@pytest.mark.parametrize("size_bytes", [0, 1, 1023, 1024, 1025, 2048, 2049, 10_000])
def test_wire_bytes_are_those_of_the_frames_that_are_sent(
    framing: RoceFraming | NativeFraming, size_bytes: int
) -> None:
    config = RequesterConfig(
        path_mtu_bytes=MTU_BYTES, window_packets=100, ack_every_packets=64, ack_timeout_code=0, retry_cnt=0
    )
    requester = Requester(envelope(framing), config)
    requester.post(SendWqe(Message(None, 0, size_bytes, 0), 0, memoryview(bytes(size_bytes)), 0, 0, True))
    sent = 0
    while requester.can_send():
        sent += requester.next_frame(0).wire_bytes
    assert message_wire_bytes(envelope(framing), size_bytes, MTU_BYTES) == sent


def test_the_mean_gap_is_exact() -> None:
    gap_ps = mean_gap_ps(1250, 10 * 10**9, Fraction(70, 100))
    assert gap_ps == Fraction(1_000_000, 1) / Fraction(7, 10)  # 1,250 bytes take 1 us at 10 Gb/s
