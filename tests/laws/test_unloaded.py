"""Flow control adds nothing to a message that has a fabric to itself, but for the credit frames that it meets."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from emu.linklayer.credits import WINDOW_BLOCKS, blocks_of
from tests.laws.stage import Stage
from tests.test_closed_forms import LEGS_PS, RETH, Line, check, lines, wire_bytes

FCP_BYTES = 14
OVERHEAD = 8
THRESHOLD = 16


def windowed(line: Line, refresh: str) -> Line:
    """The line with credits: a window of rate x (2 prop + hop + 2 ser + FCP) on each link, if there can be such."""
    largest = wire_bytes("native", min(line.mtu, line.size), RETH)
    cost = blocks_of(largest - OVERHEAD)
    stored = line.switching == "store_and_forward"
    frames = 0
    for place, (rate, cable_mm) in enumerate(zip(line.rates_gbps, line.cables_mm, strict=True)):
        byte_ps = 8000 / rate
        onward_ps = 8000 / line.rates_gbps[min(place + 1, len(line.rates_gbps) - 1)]
        held_ps = largest * (max(byte_ps, onward_ps) + byte_ps * (1 + stored))
        round_trip_ps = 10 * cable_mm + line.hop_ps + held_ps + byte_ps * FCP_BYTES
        frames = max(frames, ceil(round_trip_ps / (byte_ps * (largest - RETH))))
    whole = sum(blocks_of(size) for size in line.frames())  # so much and nothing ever waits
    window = max(min(frames * cost, whole), blocks_of(wire_bytes("native", line.mtu, RETH))) + THRESHOLD
    assume(window <= WINDOW_BLOCKS)
    credits = f"{{threshold: {THRESHOLD}, refresh: {refresh}, fcp_wire_bytes: {FCP_BYTES}B}}"
    return replace(
        line, profile="native", control=f"flow_control: credits\ncredit_blocks: {window}\ncredits: {credits}"
    )


@settings(max_examples=30)
@given(lines())
def test_with_credits_and_no_refresh_the_times_are_the_closed_forms(line: Line) -> None:
    line = windowed(replace(line, profile="native"), "never")
    check(line, "memory")


@settings(max_examples=30)
@given(lines(), st.sampled_from(["flow_control: pfc", "flow_control: pfc\nheadroom: tight\nbuffer: 256MiB"]))
def test_with_pfc_the_times_are_the_closed_forms(line: Line, control: str) -> None:
    check(replace(line, profile="roce", control=control), "memory")


def waited_ps(link_starts: list[int], ser_ps: int, from_ps: int, to_ps: int) -> int:
    """What credit frames that left in that time could have held up."""
    return ser_ps * sum(from_ps - ser_ps < when_ps < to_ps for when_ps in link_starts)


@settings(max_examples=30)
@given(lines(), st.sampled_from(["50ns", "700ns", "5us"]))
def test_with_refresh_no_more_is_waited_than_the_credit_frames_met_on_the_way(line: Line, refresh: str) -> None:
    line = windowed(replace(line, profile="native"), refresh)
    stage = Stage(line.text()).run()
    there_ps = line.transit_ps(line.frames())
    nodes = ["h0", *(f"s{number}" for number in range(len(line.rates_gbps) - 1)), "h1"]
    for message in stage.messages:
        waited = message.last_bit_ps - message.posted_ps - LEGS_PS["post"] - there_ps
        met = 0
        for a, b, rate in zip(nodes, nodes[1:], line.rates_gbps, strict=False):
            ser_ps = ceil(FCP_BYTES * 8000 / rate)
            told = [when_ps for when_ps, _ in stage.told[f"{a}-{b}"]]
            met += waited_ps(told, ser_ps, message.posted_ps, message.last_bit_ps)
        assert 0 <= waited <= met
