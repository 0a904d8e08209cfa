"""The timing model to the picosecond: measured latencies equal closed forms worked out here, from the rules alone."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil
from textwrap import indent
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emu.run import Options, run
from emu.scenario.load import parse

FRAME_BYTES = {  # around the payload: up to the last CRC, then what else takes wire time
    "native": (8 + 12 + 4 + 2, 8, 0),  # LRH, BTH, ICRC, VCRC; framing overhead; no least size
    "roce": (14 + 20 + 8 + 12 + 4 + 4, 20, 64),  # Ethernet, IPv4, UDP, BTH, ICRC, FCS; preamble and gap; 64 at least
}
RETH, AETH = 16, 4
RATES_GBPS = (
    Fraction(10),
    Fraction(25),
    Fraction(40),
    Fraction(100),
    Fraction(400),
    Fraction(800),
    Fraction(33),
    Fraction("2.7"),
)
LEGS_PS = {"post": 311_111, "receive": 201_003, "ack_turnaround": 97_001, "delivery": 303_007, "cqe": 250_000}


@dataclass(frozen=True)
class Line:
    """A line of switches between two hosts, link by link, and one message."""

    profile: str
    rates_gbps: tuple[Fraction, ...]
    cables_mm: tuple[int, ...]
    hop_ps: int
    mtu: int
    size: int
    switching: str = "cut_through"
    slow_to_fast: str = "cut_through"
    count: int = 2
    control: str = "flow_control: none"  # and more values of the fabric, a line each

    def text(self) -> str:
        switches = [f"s{number}" for number in range(len(self.rates_gbps) - 1)]
        nodes = ["h0", *switches, "h1"]
        links = ", ".join(
            f"{{a: {a}, b: {b}, rate: {float(rate)}Gbps, cable: {cable}mm}}"
            for (a, b), rate, cable in zip(pairwise(nodes), self.rates_gbps, self.cables_mm, strict=True)
        )
        nic = ", ".join(f"{leg}: {value}ps" for leg, value in LEGS_PS.items())
        return f"""
name: line
fabric:
  profile: {self.profile}
  topology: {{kind: graph, hosts: [h0, h1], switches: [{", ".join(switches)}], links: [{links}]}}
  hop_latency: {self.hop_ps}ps
  path_mtu: {self.mtu}B
  switching: {self.switching}
  slow_to_fast: {self.slow_to_fast}
{indent(self.control, "  ")}
host: {{nic: {{{nic}}}}}
traffic: [{{kind: write, pairs: [[h0, h1]], size: {self.size}B, count: {self.count}}}]
"""

    def frames(self) -> list[int]:
        """Wire bytes of each frame of the message."""
        packets = max(1, ceil(self.size / self.mtu))
        payloads = [self.mtu] * (packets - 1) + [self.size - self.mtu * (packets - 1)]
        return [
            wire_bytes(self.profile, payload, RETH if number == 0 else 0) for number, payload in enumerate(payloads)
        ]

    def transit_ps(self, frames: list[int], *, back: bool = False) -> int:
        """docs/timing.md, link by link: F and L of every frame at every egress."""
        step = -1 if back else 1
        rates, cables = self.rates_gbps[::step], self.cables_mm[::step]
        previous = [0] * len(rates)  # L of the frame before, at each egress
        for size in frames:
            sers = [ceil(Fraction(size * 8 * 1000) / rate) for rate in rates]
            first = previous[0]
            last = first + sers[0]
            previous[0] = last
            for k in range(1, len(rates)):
                lag = cables[k - 1] * 5 + self.hop_ps
                if (
                    self.switching == "store_and_forward"
                    or self.slow_to_fast == "store_and_forward"
                    and sers[k - 1] > sers[k]
                ):
                    start = last + lag
                else:
                    start = max(first, last - sers[k]) + lag
                first = max(start, previous[k])
                last = first + sers[k]
                previous[k] = last
        return previous[-1] + cables[-1] * 5


def wire_bytes(profile: str, payload: int, extension: int) -> int:
    around, gap, least = FRAME_BYTES[profile]
    return max(least, around + extension + payload + -payload % 4) + gap


def check(line: Line, wire: str) -> dict[str, Any]:
    result = run(parse(line.text(), "line.yaml", ()), Options(wire=wire))
    there = line.transit_ps(line.frames())
    back = line.transit_ps([wire_bytes(line.profile, 0, AETH)], back=True)
    message = LEGS_PS["post"] + there + LEGS_PS["receive"] + LEGS_PS["delivery"]
    completion = LEGS_PS["post"] + there + 2 * LEGS_PS["receive"] + LEGS_PS["ack_turnaround"] + back + LEGS_PS["cqe"]
    assert result["messages"]["completed"] == line.count
    for name, summary, expected_ps in (
        ("fabric", result["fabric_latency_ns"], there),
        ("message", result["messages"]["latency_ns"], message),
        ("completion", result["messages"]["completion_latency_ns"], completion),
    ):
        assert summary["min"] == summary["max"] == expected_ps / 1000, name
    assert result["breakdown_ps_total"]["total"] == message * line.count
    assert sum(result["breakdown_ps_total"].values()) == 2 * message * line.count
    assert result["breakdown_ps_total"]["queueing"] == 0
    hops = len(line.rates_gbps) - 1
    assert result["breakdown_ps_total"]["switching"] == hops * line.hop_ps * line.count
    assert result["breakdown_ps_total"]["propagation"] == sum(line.cables_mm) * 5 * line.count
    return result


@st.composite
def lines(draw: st.DrawFn, mixed: bool = True) -> Line:
    links = draw(st.integers(1, 6))
    rate = st.sampled_from(RATES_GBPS)
    rates = tuple(draw(rate) for _ in range(links)) if mixed else (draw(rate),) * links
    mtu = draw(st.sampled_from((256, 512, 1024, 2048, 4096)))
    return Line(
        profile=draw(st.sampled_from(sorted(FRAME_BYTES))),
        rates_gbps=rates,
        cables_mm=tuple(draw(st.integers(0, 2_000_000)) for _ in range(links)),
        hop_ps=draw(st.integers(0, 2_000_000)),
        mtu=mtu,
        size=draw(st.one_of(st.integers(0, 40_000), st.sampled_from((0, 1, 3, mtu - 1, mtu, mtu + 1, 2 * mtu + 1)))),
        switching=draw(st.sampled_from(("cut_through", "store_and_forward"))),
        slow_to_fast=draw(st.sampled_from(("cut_through", "store_and_forward"))),
    )


@settings(max_examples=250, deadline=None)
@given(lines())
def test_latencies_equal_the_closed_form_in_memory(line: Line) -> None:
    check(line, "memory")


@pytest.mark.lab
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(lines())
def test_latencies_equal_the_closed_form_over_veth(line: Line) -> None:
    check(line, "veth")


@settings(max_examples=100, deadline=None)
@given(lines(mixed=False))
def test_equal_rates_have_the_short_forms(line: Line) -> None:
    """T = sum(prop) + n x hop + ser, and what more frames and storing add (a message fits its frames' order)."""
    sers = [ceil(Fraction(size * 8 * 1000) / line.rates_gbps[0]) for size in line.frames()]
    hops = len(line.rates_gbps) - 1
    expected = sum(line.cables_mm) * 5 + hops * line.hop_ps + sum(sers)
    if line.switching == "store_and_forward":
        expected += hops * max(sers)
    result = check(line, "memory")
    assert result["fabric_latency_ns"]["max"] == expected / 1000


@pytest.mark.parametrize(
    ("profile", "expected_ns"), [("native", 942.92), ("roce", 1963.88), ("roce-63", 2548.88), ("ndr", 762.92)]
)
def test_the_profiles_four_kib_over_three_hops(profile: str, expected_ns: float) -> None:
    """docs/timing.md: 15 + 25 + 25 + 15 ns of cable, three hops, one 4 KiB WRITE."""
    text = f"""
name: three-hops
fabric: {{profile: {profile}, topology: {{kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 2}}}}
traffic: [{{kind: write, pairs: [[h0, h3]], size: 4KiB}}]
"""
    result = run(parse(text, "three-hops.yaml", ()), Options(wire="memory"))
    assert result["fabric_latency_ns"]["p50"] == expected_ns
