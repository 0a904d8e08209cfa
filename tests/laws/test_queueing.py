"""Random posts to one NIC's egress: every wait is the one that Lindley's recursion gives for the same arrivals."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.laws.stage import Stage
from traffic.workloads.poisson import arrivals, mean_gap_ps

G = 10**9
WIRE_BYTES = 8 + 12 + 16 + 1024 + 4 + 2 + 8  # LRH, BTH, RETH, payload, ICRC, VCRC, overhead: one frame a message
SER_PS = WIRE_BYTES * 80  # at 100 Gb/s
LOADS = ("0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9")


def waits_ps(load: str, count: int, flow_control: str) -> list[tuple[int, int]]:
    """When each message was posted, and how long its frame then waited for the wire."""
    text = f"""
name: queueing
fabric:
  profile: native
  rate: 100Gbps
  flow_control: {flow_control}
  credit_blocks: 2048
  credits: {{refresh: never}}
  topology: {{kind: line, switches: 1}}
host: {{nic: {{post: 0ns, window_packets: 8388607}}}}
traffic: [{{kind: poisson, pairs: [[h0, h1]], size: 1KiB, load: {load}, count: {count}}}]
"""
    return sorted(
        (message.posted_ps, message.first_bit_ps - message.posted_ps) for message in Stage(text).run().messages
    )


def lindley(times_ps: list[int], service_ps: int) -> list[int]:
    """W(n+1) = max(0, W(n) + S - (A(n+1) - A(n)))."""
    waits = [0]
    for before_ps, now_ps in zip(times_ps, times_ps[1:], strict=False):
        waits.append(max(0, waits[-1] + service_ps - (now_ps - before_ps)))
    return waits


def check(load: str, count: int, flow_control: str = "none") -> float:
    """The mean wait, in service times."""
    gap_ps = mean_gap_ps(WIRE_BYTES, 100 * G, Fraction(load))
    times_ps = list(arrivals(1, "poisson/0/0", count, gap_ps))
    measured = waits_ps(load, count, flow_control)
    assert [posted_ps for posted_ps, _ in measured] == times_ps
    waits = lindley(times_ps, SER_PS)
    assert [wait_ps for _, wait_ps in measured] == waits
    return sum(waits) / count / SER_PS


@pytest.mark.parametrize(
    "load", [each if each in ("0.3", "0.6", "0.9") else pytest.param(each, marks=pytest.mark.long) for each in LOADS]
)
def test_every_wait_of_100_000_frames_is_lindleys(load: str) -> None:
    """Shared out over the loads; the mean is not far from M/D/1's, to which `make bench` holds it with more frames."""
    rho = float(load)
    assert check(load, 14_286) == pytest.approx(rho / (2 * (1 - rho)), rel=0.15)


def test_credits_that_suffice_change_no_wait() -> None:
    check("0.7", 1_000, "credits")
