"""Where a message's time went when flow control held it up: all of a block, whoever used the wire meanwhile."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from emu.devices.passage import Passage
from emu.devices.pauses import LinkPauses
from emu.frame import Frame, Message
from emu.framing.control import pfc
from emu.parts import PARTS, pack, unpack
from tests.devices.pause_link import Pair, frame
from tests.laws.stage import Stage

SER_PS = frame().wire_bytes * 80
LEGS_PS = 900_000  # post, receive and delivery, 300 ns each


def parts_of(parts: int) -> dict[str, int]:
    """By name, those that are not 0."""
    return {name: value for name, value in zip(PARTS, unpack(parts), strict=True) if value}


def mine(number: int = 1) -> Frame:
    """A frame of priority 3 that belongs to a message, fresh from its first hop."""
    made = frame()
    made.message = Message(None, number, 4096, 0)
    made.message.hops = [Passage()]
    made.hop = 1
    return made


TOLD_PS = 2_000_000
XOFF, XON = pfc(1, {3: 0xFFFF}), pfc(1, {3: 0})


def waited(*, eligible_ps: int, others_ps: int, others: int, resumed_ps: int) -> tuple[int, dict[str, int]]:
    """One frame at a port that is paused from 0 to `resumed_ps`, while another lane has frames from `others_ps` on.

    All times from TOLD_PS on. Returns when it started, and its parts.
    """
    pair, frame_of_mine = Pair(propagation_ps=0), mine()
    pair.tell(TOLD_PS, XOFF)
    pair.tell(TOLD_PS + resumed_ps, XON)
    frame_of_mine.parts = 0
    pair.offer(pair.here, frame_of_mine, at_ps=TOLD_PS + eligible_ps)
    pair.offer(pair.here, *(frame(priority=6) for _ in range(others)), at_ps=TOLD_PS + others_ps)
    pair.engine.run()
    (start_ps,) = pair.started(3)
    return start_ps - TOLD_PS, parts_of(frame_of_mine.parts)


def test_a_pause_on_an_idle_wire_is_flow_control() -> None:
    start_ps, parts = waited(eligible_ps=0, others_ps=0, others=0, resumed_ps=5 * SER_PS)
    assert (start_ps, parts) == (5 * SER_PS, {"flow_control_wait": 5 * SER_PS})


def test_a_pause_while_another_lane_sends_is_flow_control_and_only_what_is_left_of_a_frame_is_queueing() -> None:
    """Lane 6 sends from 10 ns on; the pause is over in the middle of its third frame, its last."""
    start_ps, parts = waited(eligible_ps=0, others_ps=10_000, others=3, resumed_ps=10_000 + 5 * SER_PS // 2)
    assert start_ps == 10_000 + 3 * SER_PS
    assert parts == {"flow_control_wait": 10_000 + 5 * SER_PS // 2, "queueing": SER_PS // 2}


def test_until_the_wire_is_free_a_frame_that_comes_to_it_is_queueing() -> None:
    """It could not have left anyway; from then on it is the pause that holds it up."""
    start_ps, parts = waited(eligible_ps=SER_PS // 4, others_ps=0, others=2, resumed_ps=2 * SER_PS + 7_000)
    assert start_ps == 2 * SER_PS + 7_000
    assert parts == {"queueing": SER_PS * 3 // 4, "flow_control_wait": SER_PS + 7_000}


def test_a_frame_behind_a_blocked_one_of_its_lane_is_blocked_too() -> None:
    pair, first, second = Pair(propagation_ps=0), mine(1), mine(2)
    pair.tell(TOLD_PS, XOFF)
    pair.tell(TOLD_PS + 4 * SER_PS, XON)
    pair.offer(pair.here, first, at_ps=TOLD_PS)
    pair.offer(pair.here, *(frame(priority=6) for _ in range(3)), at_ps=TOLD_PS + SER_PS // 2)
    pair.offer(pair.here, second, at_ps=TOLD_PS + SER_PS)
    pair.engine.run()
    assert parts_of(first.parts) == {"flow_control_wait": 4 * SER_PS}
    assert parts_of(second.parts) == {"flow_control_wait": 3 * SER_PS, "queueing": SER_PS}


def test_two_pauses_of_one_wait_add_up_and_what_lies_between_is_queueing() -> None:
    """Another lane's long frame lasts from one pause's end to after the next one's beginning."""
    pair, late = Pair(propagation_ps=0), mine()
    pair.tell(TOLD_PS, XOFF)
    pair.offer(pair.here, late, at_ps=TOLD_PS)
    pair.offer(pair.here, frame(priority=6), frame(priority=6), at_ps=TOLD_PS)
    pair.tell(TOLD_PS + SER_PS // 2, XON)
    pair.tell(TOLD_PS + SER_PS * 3 // 4, XOFF)
    pair.tell(TOLD_PS + 3 * SER_PS, XON)
    pair.engine.run()
    assert parts_of(late.parts) == {"flow_control_wait": SER_PS // 2 + 2 * SER_PS, "queueing": SER_PS // 2}


def test_a_pause_that_runs_out_just_as_the_wire_falls_free() -> None:
    pair, late = Pair(propagation_ps=0), mine()
    pair.tell(TOLD_PS, XOFF)
    pair.offer(pair.here, late, at_ps=TOLD_PS)
    pair.offer(pair.here, frame(priority=6), at_ps=TOLD_PS + 1000)
    free_ps = TOLD_PS + 1000 + SER_PS
    pair.tell(free_ps - 10 * 5120, pfc(1, {3: 10}))
    pair.engine.run()
    assert pair.started() == [free_ps]
    assert parts_of(late.parts) == {"flow_control_wait": free_ps - TOLD_PS}


def roce(traffic: str) -> str:
    """Two hosts and a switch, 100 Gb/s."""
    return f"""
name: breakdown
fabric:
  {{profile: roce, congestion_control: none, flow_control: pfc, rate: 100Gbps, topology: {{kind: line, switches: 1}}}}
traffic: [{traffic}]
"""


def pause_nic(stage: Stage, quanta: int) -> int:
    """Tell h0 at time 0 to pause priority 3; returns until when."""
    flow = stage.port("h0-s0").flow
    assert isinstance(flow, LinkPauses)
    flow.on_control(pfc(1, {3: quanta}))
    return quanta * 5120


def test_a_nic_that_is_paused_books_flow_control_and_not_nic() -> None:
    stage = Stage(roce("{kind: write, pairs: [[h0, h1]], size: 4KiB}"))
    until_ps = pause_nic(stage, 1000)
    (message,) = stage.run().messages
    assert message.first_bit_ps == until_ps
    parts = parts_of(message.parts)
    assert (parts["flow_control_wait"], parts["nic"]) == (until_ps - 300_000, LEGS_PS)
    assert "queueing" not in parts


def test_a_nic_that_is_paused_while_it_sends_others() -> None:
    """Priority 5 sends 16 frames meanwhile; the pause is over amid one of them."""
    other = "{kind: write, pairs: [[h0, h1]], size: 64KiB, priority: 5}"
    stage = Stage(roce(f"{{kind: write, pairs: [[h0, h1]], size: 4KiB}}, {other}"))
    until_ps = pause_nic(stage, 500)
    stage.run()
    (message,) = [message for message in stage.messages if message.size_bytes == 4096]
    assert until_ps < message.first_bit_ps < until_ps + SER_PS + 100_000
    parts = parts_of(message.parts)
    assert parts["flow_control_wait"] == until_ps - 300_000
    assert parts["queueing"] == message.first_bit_ps - until_ps
    assert parts["nic"] == LEGS_PS


def test_frames_that_wait_for_credit_one_round_trip_each() -> None:
    """A window of one frame: each but the first waits, after its predecessor's time on the wire, for the rest of it."""
    stage = Stage("""
name: breakdown
fabric:
  profile: native
  flow_control: credits
  credit_blocks: 65
  credits: {refresh: never, threshold: 1}
  topology: {kind: line, switches: 1}
traffic: [{kind: write, pairs: [[h0, h1]], size: 12KiB}]
""")
    (message,) = stage.run().messages
    parts = parts_of(message.parts)
    assert parts["flow_control_wait"] == 2 * (2 * 15_000 + 260_000 + 14 * 20)
    assert parts["serialization"] == (3 * (8 + 12 + 4096 + 4 + 2 + 8) + 16) * 20
    assert (parts["nic"], parts["switching"], parts["propagation"]) == (LEGS_PS, 260_000, 30_000)


@settings(max_examples=15)
@given(
    st.sampled_from(
        [
            "profile: native, flow_control: credits, vls: 2, credit_blocks: 65, credits: {threshold: 9, refresh: 1us}",
            "profile: native, flow_control: credits, credit_blocks: 140, credits: {threshold: 1}",
            "profile: roce, flow_control: pfc, congestion_control: none, xoff: 9KB, lossless: [2, 3]",
            "profile: roce, flow_control: pfc, xoff: 30KB, lossless: [2, 3], ecn: {kmin: 5KB, kmax: 20KB}",
        ]
    ),
    st.integers(1, 60_000),
    st.integers(1, 3),
)
def test_no_part_is_ever_negative_and_they_add_up(values: str, size: int, count: int) -> None:
    """Two classes of traffic in one fabric, each with an incast of its own, and something that crosses them."""
    stage = Stage(f"""
name: breakdown
fabric: {{{values}, topology: {{kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 2}}}}
traffic:
  - {{kind: incast, senders: 3, receiver: h3, size: {size}B, count: {count}, priority: 2}}
  - {{kind: incast, senders: [h1, h2, h3], receiver: h0, size: 30KiB, priority: 3}}
  - {{kind: all_to_all, size: 5KiB, priority: 3}}
""")
    stage.run()
    assert {message.status for message in stage.messages} == {"SUCCESS"}
    for message in stage.messages:
        latency_ps = message.delivered_ps - message.posted_ps
        parts = unpack(message.parts)
        assert max(parts) <= latency_ps == sum(parts)
        assert pack(*parts) == message.parts
    assert stage.assembly.measurement.parts_ps[PARTS.index("flow_control_wait")] > 0 or size < 40_000
