"""A NIC's transmit side: who sends next, what waits for a pause or for its pacing, and what priority answers have."""

from __future__ import annotations

from itertools import pairwise

import pytest

from emu import opcodes
from emu.congestion.base import Paced, gap_ps
from emu.devices.pauses import LinkPauses
from emu.frame import ControlFrame, Frame
from emu.framing.control import pfc
from emu.framing.native import NativeFraming
from tests.laws.stage import Stage

GBPS = 10**9


def text(traffic: str, fabric: str = "profile: roce, flow_control: pfc, congestion_control: none") -> str:
    """Two hosts at one switch, 400 Gb/s."""
    return f"""
name: transmit
fabric: {{{fabric}, topology: {{kind: line, switches: 1}}}}
traffic: [{traffic}]
"""


class Watched(Stage):
    """A run that keeps what was sent."""

    def __init__(self, scenario: str) -> None:
        super().__init__(scenario)
        self.sent: dict[str, list[tuple[int, Frame]]] = {name: [] for name in self.fabric.links}
        self.assembly.taps.frame_sent = self._keep

    def _keep(self, when_ps: int, link: str, frame: Frame) -> None:
        if not isinstance(frame, ControlFrame):
            self.sent[link].append((when_ps, frame))

    def pause(self, link: str, quanta: dict[int, int]) -> None:
        """Tell that link's sender, now, to pause priorities."""
        flow = self.port(link).flow
        assert isinstance(flow, LinkPauses)
        flow.on_control(pfc(1, quanta))


def test_queue_pairs_take_turns_frame_by_frame() -> None:
    stage = Watched(text("{kind: write, pairs: [[h0, h1]], size: 32KiB, qps: 3}"))
    stage.run()
    flows = [frame.envelope.destination_qp for _, frame in stage.sent["h0-s0"]]
    assert len(flows) == 24
    assert flows[1:22] == flows[1:4] * 7  # the first had sent one before the others were there
    assert len(set(flows[1:4])) == 3


def test_a_pause_of_one_priority_leaves_the_wire_to_the_others() -> None:
    one, other = (f"{{kind: write, pairs: [[h0, h1]], size: 16KiB, priority: {level}}}" for level in (3, 5))
    stage = Watched(text(f"{one}, {other}"))
    stage.pause("h0-s0", {3: 2000})
    stage.run()
    sent = stage.sent["h0-s0"]
    starts = {level: [when for when, frame in sent if frame.envelope.priority == level] for level in (3, 5)}
    assert starts[5][0] == 300_000
    assert starts[5][-1] < 700_000
    assert starts[3][0] == 2000 * 1280


def test_a_frame_made_before_a_pause_keeps_its_place_in_its_queue_pairs_order() -> None:
    stage = Watched(text("{kind: write, pairs: [[h0, h1]], size: 16KiB, count: 2, qps: 2}"))
    stage.pause("h0-s0", {3: 1000})
    stage.run()
    for flow in {frame.envelope.destination_qp for _, frame in stage.sent["h0-s0"]}:
        psns = [frame.psn for _, frame in stage.sent["h0-s0"] if frame.envelope.destination_qp == flow]
        assert psns == list(range(8))


@pytest.mark.parametrize(
    ("fabric", "level"),
    [
        ("profile: roce, flow_control: pfc, lossless: [3, 5]", 5),
        ("profile: roce, flow_control: none, priority_to_queue: {1: 4}", 1),
        ("profile: native, flow_control: credits, vls: 4", 2),
        ("profile: native, flow_control: none, vls: 4, sl_to_vl: {9: 3}", 9),
    ],
)
def test_answers_ride_the_priority_and_the_lane_of_what_they_answer(fabric: str, level: int) -> None:
    traffic = f"{{kind: write, pairs: [[h0, h1]], size: 16KiB, priority: {level}}}"
    stage = Watched(text(traffic, f"{fabric}, congestion_control: none"))
    stage.run()
    for there, back in (("h0-s0", "h1-s0"), ("s0-h1", "s0-h0")):
        data, answers = ([frame for _, frame in stage.sent[link]] for link in (there, back))
        assert len(data) == 4
        assert {frame.opcode for frame in answers} == {opcodes.ACKNOWLEDGE}
        (kind,) = {(frame.envelope.priority, frame.envelope.lane, frame.envelope.tos) for frame in data}
        assert kind[0] == level
        assert {(frame.envelope.priority, frame.envelope.lane, frame.envelope.tos) for frame in answers} == {kind}


def test_answers_that_cannot_leave_become_one() -> None:
    stage = Watched(text("{kind: write, pairs: [[h0, h1]], size: 4KiB, count: 20, depth: 20}"))
    stage.pause("h1-s0", {3: 5000})
    stage.run()
    answers = [frame for _, frame in stage.sent["h1-s0"]]
    assert [frame.psn for frame in answers] == [0, 19]  # the first was made as it could have left; the rest in one
    assert {message.status for message in stage.messages} == {"SUCCESS"}


def test_a_notification_leaves_before_answers_and_data() -> None:
    """With one lane only, and posted while a frame is on the wire."""
    stage = Watched(text("{kind: write, pairs: [[h0, h1]], size: 64KiB}", "profile: native, flow_control: none"))
    nic = stage.fabric.nics["h0"]
    (state,) = nic.queue_pairs.values()
    notice = Frame(state.envelope, opcodes.CNP, 0)
    assert isinstance(state.envelope.framing, NativeFraming)
    stage.assembly.engine.at(310_000, nic._transmit.notify, notice)
    stage.run()
    assert [frame.opcode for _, frame in stage.sent["h0-s0"]].index(opcodes.CNP) == 1


def test_notifications_have_a_strict_queue_of_their_own() -> None:
    """ECN marks an incast; its receiver answers with CNPs on priority 6, though it sends data itself."""
    stage = Watched("""
name: notices
fabric:
  profile: roce
  flow_control: pfc
  congestion_control: dcqcn
  ecn: {kmin: 5KB, kmax: 20KB, pmax: 100%}
  topology: {kind: leaf_spine, leaves: 1, spines: 1, hosts_per_leaf: 4}
traffic:
  - {kind: incast, senders: [h0, h1], receiver: h2, size: 256KiB}
  - {kind: write, pairs: [[h2, h3]], size: 1MiB}
""")
    stage.run()
    sent = stage.sent["h2-leaf0"]
    notices = [place for place, (_, frame) in enumerate(sent) if frame.opcode == opcodes.CNP]
    assert notices
    assert {(sent[place][1].envelope.priority, sent[place][1].envelope.lane) for place in notices} == {(6, 6)}
    assert stage.fabric.nics["h0"].notices_taken + stage.fabric.nics["h1"].notices_taken == len(notices)


class Fixed(Paced):
    """A flow that never changes its rate."""


def test_a_paced_flow_starts_its_frames_by_its_rate_and_holds_up_no_other() -> None:
    stage = Watched(text("{kind: write, pairs: [[h0, h1]], size: 32KiB, qps: 2}"))
    slow, fast = stage.fabric.nics["h0"].queue_pairs.values()
    slow.rate = Fixed(10 * GBPS)
    stage.run()
    starts: dict[int, list[tuple[int, int]]] = {}
    for when_ps, frame in stage.sent["h0-s0"]:
        starts.setdefault(frame.envelope.destination_qp, []).append((when_ps, frame.wire_bytes))
    paced, free = (starts[state.envelope.destination_qp] for state in (slow, fast))
    for (when_ps, size), (next_ps, _) in pairwise(paced):
        due_ps = when_ps + gap_ps(size, 10 * GBPS)
        assert due_ps <= next_ps <= due_ps + 84_000  # behind a frame of the other
    assert free[-1][0] - free[0][0] < 8 * 84_000 + 84_000
    alone = [next_ps - when_ps - gap_ps(size, 10 * GBPS) for (when_ps, size), (next_ps, _) in pairwise(paced)]
    assert set(alone[1:]) == {0}


def test_a_rate_that_rises_is_taken_up_at_once() -> None:
    """A flow waits for its pacing; its rate becomes the line's, and it is told: it goes on then."""
    stage = Watched(text("{kind: write, pairs: [[h0, h1]], size: 8KiB}"))
    nic = stage.fabric.nics["h0"]
    (state,) = nic.queue_pairs.values()
    state.rate = rate = Fixed(1 * GBPS)

    def rise(_: None) -> None:
        rate.rate_bps = 400 * GBPS
        nic._transmit.rate_changed(state)

    stage.assembly.engine.at(5_000_000, rise)
    stage.run()
    assert [when_ps for when_ps, _ in stage.sent["h0-s0"]] == [300_000, 5_000_000]
