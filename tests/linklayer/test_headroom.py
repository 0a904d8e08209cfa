"""Headroom: the vendor's table; and both ends of a link, where `tight` never drops and one byte less does."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice, repeat

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from emu.errors import ScenarioError
from emu.linklayer.buffer import SwitchMemory
from emu.linklayer.headroom import (
    HeadroomConfig,
    VendorConfig,
    headroom_bytes,
    mixed_bytes,
    response_limit_ps,
    response_quanta,
    tight_bytes,
    vendor_bytes,
)
from emu.linklayer.pause import PauseConfig, PauseSchedule, PauseTimer
from emu.linklayer.pfc import IngressAccount, IngressConfig, Signal

G = 10**9
FRAMES = 10_000  # no pause takes so many
TABLE = {  # rate in Gb/s: XOFF headroom for cables of 5, 40 and 300 m; MTU 9100, cells of 144 bytes
    100: (90_112, 100_352, 174_080),
    200: (100_352, 119_808, 267_264),
    400: (167_936, 207_872, 502_784),
    800: (174_080, 252_928, 843_776),
}


@pytest.mark.parametrize("rate", TABLE)
def test_the_vendors_table(rate: int) -> None:
    base = VendorConfig(rate_bps=rate * G, cable_mm=0, mtu_bytes=9100, port_mtu_bytes=9100)
    assert tuple(vendor_bytes(replace(base, cable_mm=metres * 1000)) for metres in (5, 40, 300)) == TABLE[rate]


@pytest.mark.parametrize("rate", TABLE)
def test_headroom_by_name(rate: int) -> None:
    link = HeadroomConfig(
        rate_bps=rate * G, propagation_ps=25_000, frame_bytes=9080, wire_bytes=9100, reverse_wire_bytes=9100
    )
    vendor = VendorConfig(rate_bps=rate * G, cable_mm=5000, mtu_bytes=9100, port_mtu_bytes=9100)
    assert headroom_bytes("vendor", link, vendor) == TABLE[rate][0]
    assert headroom_bytes("tight", link, vendor) == tight_bytes(link)
    assert headroom_bytes("mixed", link, vendor) == mixed_bytes(link)
    assert headroom_bytes(4711, link, vendor) == 4711
    with pytest.raises(ScenarioError):
        headroom_bytes("loose", link, vendor)


def test_the_vendors_other_terms() -> None:
    base = VendorConfig(rate_bps=100 * G, cable_mm=0, mtu_bytes=1024, port_mtu_bytes=0, response_bytes=224)
    assert base.occupancy == Fraction(9, 4)
    assert vendor_bytes(base) == 4096  # 1024 + (800 + 224) x 2.25, in whole KiB
    assert vendor_bytes(replace(base, small_packets_percent=0)) == 2048
    assert vendor_bytes(replace(base, small_packets_percent=0, gearbox_bytes=512)) == 3072
    assert replace(base, cell_bytes=96).occupancy == Fraction(192, 97)
    for bad in ({"small_packets_percent": 101}, {"cell_bytes": 0}):
        with pytest.raises(ScenarioError):
            replace(base, **bad)


@pytest.mark.parametrize(("rate", "quanta"), [(10, 67), (99, 394), (100, 394), (101, 453), (400, 905), (1600, 905)])
def test_the_response_limit_of_a_rate(rate: int, quanta: int) -> None:
    assert response_quanta(rate * G) == quanta


def test_the_response_limit_in_time() -> None:
    assert response_limit_ps(400 * G) == 905 * 1280


links = st.builds(
    lambda rate, metres, mtu, reverse, response: HeadroomConfig(
        rate_bps=rate * G,
        propagation_ps=metres * 5000,
        frame_bytes=mtu + 62,
        wire_bytes=mtu + 82,
        reverse_wire_bytes=min(reverse, mtu) + 82,
        response_ps=response * response_limit_ps(rate * G) // 100,
    ),
    st.sampled_from([100, 200, 400, 800]),
    st.integers(1, 300),
    st.integers(1024, 9000),
    st.integers(64, 9000),
    st.integers(0, 100),
)


@given(links, st.integers(16, 512), st.integers(0, 100), st.integers(0, 4999))
def test_the_vendors_is_never_less(link: HeadroomConfig, cell: int, percent: int, sub_metre_mm: int) -> None:
    vendor = VendorConfig(
        rate_bps=link.rate_bps,
        cable_mm=link.propagation_ps // 5,
        mtu_bytes=link.wire_bytes,
        port_mtu_bytes=link.wire_bytes,
        cell_bytes=cell,
        small_packets_percent=percent,
    )
    assert tight_bytes(link) <= mixed_bytes(link) + (link.wire_bytes - link.frame_bytes)
    assert vendor_bytes(vendor) >= max(tight_bytes(link), mixed_bytes(link))
    assert vendor_bytes(replace(vendor, cable_mm=vendor.cable_mm + sub_metre_mm)) >= vendor_bytes(vendor)


def test_tight_by_hand() -> None:
    link = HeadroomConfig(
        rate_bps=100 * G, propagation_ps=25_000, frame_bytes=1000, wire_bytes=1000, reverse_wire_bytes=1000
    )
    assert link.delay_ps == 80_000 + 6_720 + 50_000
    assert tight_bytes(link) == 2 * 1000
    assert tight_bytes(replace(link, response_ps=23_281)) == 3 * 1000  # one picosecond past two frames
    assert tight_bytes(replace(link, response_ps=23_280)) == 2 * 1000
    assert tight_bytes(replace(link, pipeline_ps=23_281)) == 3 * 1000
    for bad in ({"rate_bps": 0}, {"frame_bytes": 1001}, {"propagation_ps": -1}, {"response_ps": -1}):
        with pytest.raises(ScenarioError):
            replace(link, **bad)


@dataclass
class Outcome:
    """What the buffer saw."""

    dropped: int
    most: int


def flood(link: HeadroomConfig, headroom: int, sizes: Iterator[tuple[int, int]], early_ps: int) -> Outcome:
    """Frames of (buffer, wire) bytes, back to back, into a buffer full but for headroom that nothing leaves.

    A largest frame went onto the reverse wire `early_ps` before the first of them comes in.
    """
    full = IngressConfig(alpha=Fraction(1), xoff_bytes=1, xon_bytes=0, headroom_bytes=headroom)
    account = IngressAccount("in", full, SwitchMemory(headroom + 1))
    assert account.admit(1) is Signal.NONE
    timer = PauseTimer(link.rate_bps, response_ps=link.response_ps)
    schedule = PauseSchedule(PauseConfig(rate_bps=link.rate_bps, guard_ps=0))
    start_ps = obeyed_ps = 0
    for frame_bytes, wire_bytes in islice(sizes, FRAMES):
        if start_ps >= obeyed_ps > 0:
            timer.on_quanta(schedule.told and 0xFFFF, obeyed_ps - link.response_ps)
            assert not timer.may_start(start_ps)
            return Outcome(account.dropped_frames, account.max_headroom_bytes)
        signal = account.admit(frame_bytes)
        if signal in (Signal.XOFF, Signal.XOFF_AND_DROP):
            came_ps = start_ps + link.propagation_ps
            schedule.want(3, True)
            leaves_ps = max(came_ps, came_ps - early_ps + link.serialization_ps(link.reverse_wire_bytes))
            schedule.frame_out(leaves_ps)
            told_ps = leaves_ps + link.serialization_ps(link.pfc_wire_bytes) + link.propagation_ps
            obeyed_ps = told_ps + link.response_ps
        start_ps += link.serialization_ps(wire_bytes)
    raise AssertionError("nobody paused the sender")


@given(links, st.integers(0, 10**6))
def test_tight_never_drops_for_any_alignment_and_one_byte_less_drops_in_the_worst(
    link: HeadroomConfig, early_ps: int
) -> None:
    frames = (link.frame_bytes, link.wire_bytes)
    tight = tight_bytes(link)
    assert flood(link, tight, repeat(frames), early_ps).dropped == 0
    assert flood(link, tight, repeat(frames), 0) == Outcome(0, tight)
    assert flood(link, tight - 1, repeat(frames), 0).dropped == 1


@given(links, st.integers(0, 2**32), st.integers(0, 10**6))
def test_frames_of_mixed_sizes_need_no_more_than_mixed(link: HeadroomConfig, seed: int, early_ps: int) -> None:
    numbers = random.Random(seed)
    overhead = link.wire_bytes - link.frame_bytes

    def sizes() -> Iterator[tuple[int, int]]:
        while True:
            size = numbers.choice((64, link.frame_bytes, numbers.randint(64, link.frame_bytes)))
            yield size, size + overhead

    assert flood(link, mixed_bytes(link), sizes(), early_ps).dropped == 0


@given(links)
def test_a_short_frame_before_long_ones_can_need_more_than_tight(link: HeadroomConfig) -> None:
    short, overhead = 64, link.wire_bytes - link.frame_bytes
    ser_ps = link.serialization_ps(link.wire_bytes)
    assume((link.delay_ps - 1) % ser_ps >= link.serialization_ps(short + overhead))

    def sizes() -> Iterator[tuple[int, int]]:
        yield short, short + overhead
        yield from repeat((link.frame_bytes, link.wire_bytes))

    assert flood(link, tight_bytes(link), sizes(), 0).dropped == 1
    assert flood(link, mixed_bytes(link), sizes(), 0).dropped == 0
