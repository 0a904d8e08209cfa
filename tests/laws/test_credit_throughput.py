"""What credits let through a link of a real fabric: N frames in each round trip of a credit, or the line rate."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import example, given, settings
from hypothesis import strategies as st

from emu.linklayer.credits import blocks_of
from emu.lossless import serialization_ps
from tests.laws.stage import Stage

G = 10**9
OVERHEAD = 8
AROUND = 8 + 12 + 4 + 2  # LRH, BTH, ICRC, VCRC
RETH = 16
FRAMES = 120
SKIPPED = 20  # until it runs as it will go on; the first frame is another size too
FCP_BYTES = 14
NEAR = "cable: 0m, rate: 3200Gbps"


@dataclass(frozen=True)
class Line:
    """Two hosts and up to two switches; link number `place` is longer and slower than the others."""

    switches: int
    place: int
    rate_gbps: int
    cable_m: int
    hop_ps: int  # below twice the cable's time, or the links before the slow one would be what limits
    mtu: int
    frames: int  # that the window holds
    rest: int  # and blocks more than those
    threshold: int
    both_ways: bool

    @property
    def blocks(self) -> int:
        """What a frame of the message, but the first and last, costs."""
        return blocks_of(AROUND + self.mtu)

    @property
    def window(self) -> int:
        """Blocks; a first frame of the message must fit too."""
        return min(2048, max(blocks_of(AROUND + RETH + self.mtu), self.blocks * self.frames + self.rest))

    @property
    def due(self) -> int:
        """Freed blocks that are worth an FCP."""
        return min(self.threshold, -(-self.window // 4))

    @property
    def nodes(self) -> list[str]:
        """From the sender to the receiver."""
        return ["h0", *(f"s{number}" for number in range(self.switches)), "h1"]

    @property
    def links(self) -> list[tuple[str, str]]:
        """Between them."""
        return list(zip(self.nodes, self.nodes[1:], strict=False))

    def text(self) -> str:
        """The scenario."""
        slow = f"cable: {self.cable_m}m, rate: {self.rate_gbps}Gbps"
        links = ", ".join(
            f"{{a: {a}, b: {b}, {slow if number == self.place else NEAR}}}" for number, (a, b) in enumerate(self.links)
        )
        pairs = "[h0, h1], [h1, h0]" if self.both_ways else "[h0, h1]"
        return f"""
name: line
fabric:
  profile: native
  flow_control: credits
  topology: {{kind: graph, hosts: [h0, h1], switches: [{", ".join(self.nodes[1:-1])}], links: [{links}]}}
  hop_latency: {self.hop_ps}ps
  path_mtu: {self.mtu}B
  credit_blocks: {self.window}
  credits: {{threshold: {self.threshold}, refresh: never, fcp_wire_bytes: {FCP_BYTES}B}}
host: {{nic: {{window_packets: 8388607, ack_every_packets: 8388607}}}}
traffic: [{{kind: write, pairs: [{pairs}], size: {FRAMES * self.mtu}B}}]
"""

    def ser_ps(self, wire_bytes: int) -> int:
        """On the slow link."""
        return serialization_ps(wire_bytes, self.rate_gbps * G)

    def starts(self) -> list[int]:
        """When frames left over the slow link, without the first and the last few."""
        a, b = self.links[self.place]
        return Stage(self.text()).run().data[f"{a}-{b}"][SKIPPED:-2]


lines = st.tuples(st.integers(0, 2), st.integers(20, 1000)).flatmap(
    lambda drawn: st.builds(
        Line,
        switches=st.just(drawn[0]),
        place=st.integers(0, drawn[0]),
        rate_gbps=st.sampled_from([25, 100, 200, 400]),
        cable_m=st.just(drawn[1]),
        hop_ps=st.integers(0, drawn[1] * 5000),
        mtu=st.sampled_from([256, 512, 1024, 2048, 4096]),
        frames=st.integers(1, 30),
        rest=st.integers(0, 60),
        threshold=st.integers(1, 600),
        both_ways=st.booleans(),
    )
)
ONE = Line(1, 0, 400, 100, 260_000, 4096, 1, 1, 1, False)


@settings(max_examples=60)
@given(lines)
@example(ONE)
@example(Line(2, 1, 400, 200, 260_000, 4096, 15, 0, 64, False))
@example(Line(0, 0, 100, 1000, 0, 256, 30, 3, 600, True))
def test_throughput_is_n_frames_per_credit_round_trip_or_the_line_rate(line: Line) -> None:
    starts = line.starts()
    ser_ps, fcp_ps = line.ser_ps(AROUND + line.mtu + OVERHEAD), line.ser_ps(FCP_BYTES)
    frees_late_ps = line.hop_ps if line.place < line.switches else 0  # a NIC frees as the last bit is in
    round_trip_ps = 2 * line.cable_m * 5000 + frees_late_ps + ser_ps + fcp_ps
    most = line.window // line.blocks
    for first, last in zip(starts, starts[most:], strict=False):
        assert last - first >= max(round_trip_ps, most * ser_ps)
    least = max(1, (line.window - line.due + 1) // line.blocks)
    longest_ps = line.ser_ps(AROUND + RETH + line.mtu + OVERHEAD) if line.both_ways else 0
    waited_ps = round_trip_ps + max(fcp_ps, longest_ps)  # behind another FCP, or what comes the other way
    gap_ps = max(ser_ps + (fcp_ps if line.both_ways else 0), -(-waited_ps // least))
    assert starts[-1] - starts[0] <= gap_ps * (len(starts) - 1) + 2 * waited_ps


def test_one_frame_at_a_time_takes_a_round_trip_each() -> None:
    starts = ONE.starts()
    ser_ps = (AROUND + 4096 + OVERHEAD) * 20
    gaps = {last - first for first, last in zip(starts, starts[1:], strict=False)}
    assert gaps == {2 * 500_000 + 260_000 + ser_ps + FCP_BYTES * 20}


def test_the_line_rate_is_reached_with_a_window_of_one_round_trip() -> None:
    line = Line(1, 0, 400, 100, 260_000, 4096, 30, 0, 64, False)  # 30 frames of 82.6 ns; the round trip is 1.34 us
    starts = line.starts()
    assert {last - first for first, last in zip(starts, starts[1:], strict=False)} == {82_600}
