"""Headroom at the end of a real link: `tight` never drops; a byte less does in the worst case, and says so."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.linklayer.headroom import (
    HeadroomConfig,
    VendorConfig,
    mixed_bytes,
    response_limit_ps,
    tight_bytes,
    vendor_bytes,
)
from emu.linklayer.pfc import IngressConfig
from emu.run import Options, run
from emu.scenario.load import parse
from tests.devices.pause_link import OVERHEAD, Pair, frame

G = 10**9
LEAST_PAYLOAD = 64


@dataclass(frozen=True)
class Link:
    """A link, its frames' payload, and after how many of them its end pauses."""

    rate_gbps: int
    metres: int
    mtu: int
    response_ps: int
    frames_before: int
    bytes_before: int  # that make no whole frame

    @property
    def config(self) -> HeadroomConfig:
        """What headroom depends on."""
        wire_bytes = frame(self.mtu).wire_bytes
        return HeadroomConfig(
            rate_bps=self.rate_gbps * G,
            propagation_ps=self.metres * 5000,
            frame_bytes=wire_bytes - OVERHEAD,
            wire_bytes=wire_bytes,
            reverse_wire_bytes=wire_bytes,
            response_ps=self.response_ps,
        )

    @property
    def ser_ps(self) -> int:
        """Of a largest frame."""
        return self.config.serialization_ps(self.config.wire_bytes)

    def pair(self, headroom_bytes: int) -> Pair:
        """Its end's buffer is never emptied."""
        xoff_bytes = self.frames_before * self.config.frame_bytes + self.bytes_before
        account = IngressConfig(
            alpha=Fraction(1), xoff_bytes=xoff_bytes, xon_bytes=xoff_bytes, headroom_bytes=headroom_bytes
        )
        return Pair(
            rate_gbps=self.rate_gbps,
            propagation_ps=self.config.propagation_ps,
            response_ps=self.response_ps,
            guard_ps=2 * self.ser_ps,
            account=account,
        )

    @property
    def frames(self) -> int:
        """More than can come in however late the pause is."""
        return self.frames_before + 2 * (self.config.delay_ps // self.ser_ps) + 10


links = st.builds(
    lambda rate, metres, mtu, response, frames, rest: Link(
        rate, metres, mtu, response * response_limit_ps(rate * G) // 100, frames, rest
    ),
    st.sampled_from([100, 200, 400, 800]),
    st.integers(1, 300),
    st.integers(1024, 9000),
    st.integers(0, 100),
    st.integers(0, 5),
    st.integers(1, 1000),
)


def flood(link: Link, headroom_bytes: int, early_ps: int | None, numbers: Random | None = None) -> Pair:
    """Frames back to back; the first too many comes in `early_ps` after a largest one went onto the reverse wire.

    None: the reverse wire has nothing else on it. With `numbers`, sizes are drawn.
    """
    pair = link.pair(headroom_bytes)
    first_ps = 10_000_000
    sizes = [link.mtu] * link.frames
    if numbers is not None:
        sizes = [numbers.choice((LEAST_PAYLOAD, link.mtu, numbers.randint(LEAST_PAYLOAD, link.mtu))) for _ in sizes]
        sizes += [LEAST_PAYLOAD] * 20 * link.frames
    pair.offer(pair.here, *(frame(size) for size in sizes), at_ps=first_ps)
    if early_ps is not None:
        trigger_ps = first_ps + link.frames_before * link.ser_ps + pair.propagation_ps
        pair.offer(pair.there, *(frame(link.mtu) for _ in range(3)), at_ps=trigger_ps - early_ps)
    pair.engine.run(first_ps + 300_000_000)
    assert len(pair.starts["here"]) < len(sizes)  # the pause came, and holds
    return pair


@given(links, st.integers(0, 10**6))
def test_tight_never_drops_however_frames_lie(link: Link, early: int) -> None:
    tight = tight_bytes(link.config)
    pair = flood(link, tight, early * link.ser_ps // 10**6)
    assert not pair.blocked.refused
    assert pair.there_flow.accounts[3].max_headroom_bytes <= tight


@given(links)
def test_in_the_worst_case_tight_is_used_to_the_last_byte_and_one_less_drops(link: Link) -> None:
    tight = tight_bytes(link.config)
    pair = flood(link, tight, 0)
    assert not pair.blocked.refused
    assert pair.there_flow.accounts[3].max_headroom_bytes == tight
    pair = flood(link, tight - 1, 0)
    assert pair.blocked.refused == ["there 3, lossless"]
    assert pair.there_flow.accounts[3].dropped_bytes == link.config.frame_bytes


@settings(max_examples=25)
@given(links, st.one_of(st.none(), st.integers(0, 10**6)), st.integers(0, 10**9))
def test_mixed_never_drops_whatever_the_sizes(link: Link, early: int | None, seed: int) -> None:
    early_ps = None if early is None else early * link.ser_ps // 10**6
    pair = flood(link, mixed_bytes(link.config), early_ps, Random(seed))
    assert not pair.blocked.refused


@given(links)
def test_vendor_is_at_least_mixed_and_mixed_at_least_tight(link: Link) -> None:
    config = link.config
    vendor = VendorConfig(
        rate_bps=config.rate_bps,
        cable_mm=link.metres * 1000,
        mtu_bytes=config.wire_bytes,
        port_mtu_bytes=config.wire_bytes,
    )
    assert vendor_bytes(vendor) >= mixed_bytes(config) >= tight_bytes(config)


TIGHT = 2 * 4174  # of a 3 m cable at 400 Gb/s: a frame takes 83.88 ns, and D = 83.88 + 1.68 + 30 ns
TRIGGER_PS = 5_000_000 + 300_000 + 4 * 83_880 + 15_000  # the fifth frame comes in: four fit below XOFF
WORST_PS = TRIGGER_PS - (300_000 + 15_000 + 600_000)  # a frame posted then at h1 leaves the switch for h0 just then


def stormed(headroom: str, back_ps: int) -> dict[str, Any]:
    """h1 pauses its switch; h0 sends to it until it is paused too, and h1 sends one frame to h0 meanwhile."""
    text = f"""
name: headroom
fabric:
  profile: roce
  congestion_control: none
  flow_control: pfc
  topology: {{kind: line, switches: 1}}
  xoff: 20KB
  headroom: {headroom}
traffic:
  - {{kind: pause_storm, host: h1, duration: 20us}}
  - {{kind: write, pairs: [[h0, h1]], size: 4KiB, count: 12, depth: 12, start: 5us}}
  - {{kind: write, pairs: [[h1, h0]], size: 4KiB, start: {back_ps}ps}}
"""
    return run(parse(text, "headroom.yaml", ()), Options(wire="memory"))


def test_in_a_run_one_byte_less_than_tight_drops_and_says_so() -> None:
    result = stormed(f"{TIGHT - 1}B", WORST_PS)
    assert result["drops"]["lossless"] == 1
    assert result["drops"]["by_reason"] == {"no_room": 1}
    (warning,) = result["warnings"]
    assert warning.startswith("LOSSLESS DROP: 1 frame")
    assert "s0 (ingress h0-s0, priority 3)" in warning
    assert result["messages"]["completed"] == 13


@pytest.mark.parametrize("headroom", ["tight", f"{TIGHT}B", "mixed", "vendor"])
def test_in_a_run_tight_drops_nothing(headroom: str) -> None:
    result = stormed(headroom, WORST_PS)
    assert result["drops"]["lossless"] == 0
    assert not result["warnings"]


@settings(max_examples=25)
@given(st.integers(-200_000, 400_000))
def test_in_a_run_tight_drops_nothing_however_frames_lie(later_ps: int) -> None:
    assert stormed("tight", WORST_PS + later_ps)["drops"]["lossless"] == 0
