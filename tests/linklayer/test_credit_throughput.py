"""What credits let through: N frames in each round trip of a credit, or the line rate."""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush

from hypothesis import example, given
from hypothesis import strategies as st

from emu.linklayer.credits import CreditConfig, CreditReceiver, CreditSender, check_credits

FRAMES = 400


@dataclass
class Line:
    """A sender that always has a frame, a switch whose egress is free, and nothing but FCPs on the way back."""

    config: CreditConfig
    blocks: int
    ser_ps: int
    prop_ps: int
    hop_ps: int
    fcp_ps: int
    starts: list[int] = field(default_factory=list)

    def run(self) -> list[int]:
        """When the frames started, in picoseconds."""
        self.sender, self.receiver = CreditSender(), CreditReceiver(self.config)
        self.events: list[tuple[int, int, str, int]] = []
        self.free_ps = self.back_free_ps = self.on_wire = 0
        self.at(0, "fcp")
        while len(self.starts) < FRAMES:
            now_ps, _, what, value = heappop(self.events)
            getattr(self, what)(now_ps, value)
            check_credits(self.sender, self.receiver, self.on_wire, 0)
        return self.starts

    def at(self, when_ps: int, what: str, value: int = 0) -> None:
        heappush(self.events, (when_ps, len(self.starts), what, value))

    def start(self, now_ps: int, _: int) -> None:
        if now_ps < self.free_ps or not self.sender.may_send(self.blocks):
            return
        self.sender.sent(self.blocks)
        self.on_wire += self.blocks
        self.starts.append(now_ps)
        self.free_ps = now_ps + self.ser_ps
        self.at(self.free_ps, "start")
        self.at(now_ps + self.prop_ps, "come")
        self.at(now_ps + self.prop_ps + self.hop_ps + self.ser_ps, "go")

    def come(self, now_ps: int, _: int) -> None:
        self.on_wire -= self.blocks
        if self.receiver.first_bit_in(self.blocks):
            self.fcp(now_ps, 0)

    def go(self, now_ps: int, _: int) -> None:
        if self.receiver.last_bit_out(self.blocks):
            self.fcp(now_ps, 0)

    def fcp(self, now_ps: int, _: int) -> None:
        if now_ps < self.back_free_ps:
            self.at(self.back_free_ps, "fcp")
            return
        self.back_free_ps = now_ps + self.fcp_ps
        self.at(self.back_free_ps + self.prop_ps, "told", self.receiver.fcp_out())

    def told(self, now_ps: int, fccl: int) -> None:
        if self.sender.on_fcp(fccl):
            self.start(now_ps, 0)


lines = st.builds(
    lambda blocks, frames, rest, threshold, ser_ps, prop_ps, hop_ps, fcp_ps: Line(
        CreditConfig(
            capacity_blocks=blocks * frames + min(rest, blocks - 1), threshold_blocks=threshold, mtu_blocks=blocks
        ),
        blocks,
        ser_ps,
        prop_ps,
        hop_ps,
        min(fcp_ps, ser_ps),
    ),
    st.integers(1, 65),
    st.integers(1, 30),
    st.integers(0, 64),
    st.integers(1, 600),
    st.sampled_from([10_000, 41_000, 83_200, 330_000]),
    st.integers(0, 2_000_000),
    st.integers(0, 1_000_000),
    st.integers(1, 1_200),
)


def _line(frames: int, threshold: int, prop_ps: int) -> Line:
    config = CreditConfig(capacity_blocks=65 * frames, threshold_blocks=threshold, mtu_blocks=65)
    return Line(config, 65, 83_200, prop_ps, 260_000, 280)


@given(lines)
@example(_line(1, 1, 500_000))
@example(_line(15, 64, 1_500_000))
@example(_line(2, 600, 10_000_000))
def test_throughput_is_n_frames_per_credit_round_trip_or_the_line_rate(line: Line) -> None:
    starts = line.run()
    window, due = line.config.window_blocks, line.config.due_blocks
    round_trip_ps = 2 * line.prop_ps + line.hop_ps + line.ser_ps + line.fcp_ps
    most = window // line.blocks
    for first, last in zip(starts, starts[most:], strict=False):
        assert last - first >= max(round_trip_ps, most * line.ser_ps)
    least = max(1, (window - due + 1) // line.blocks)  # one at least: a peer that holds less than a frame is told
    waited_ps = round_trip_ps + line.fcp_ps  # an FCP may have to wait for another
    assert starts[-1] - starts[0] <= max(line.ser_ps, -(-waited_ps // least)) * len(starts) + 2 * waited_ps


def test_the_line_rate_is_reached_with_a_window_of_one_round_trip() -> None:
    line = _line(30, 64, 500_000)  # 30 frames of 83.2 ns; the round trip is 1.34 us
    starts = line.run()
    assert {last - first for first, last in zip(starts, starts[1:], strict=False)} == {83_200}


def test_one_frame_at_a_time_takes_a_round_trip_each() -> None:
    starts = _line(1, 1, 500_000).run()
    gaps = {last - first for first, last in zip(starts, starts[1:], strict=False)}
    assert gaps == {2 * 500_000 + 260_000 + 83_200 + 280}
