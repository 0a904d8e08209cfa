"""A paused port to the picosecond: how long, what a second XOFF does, when it goes on, whom a pause does not stop."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.framing.control import Control, Pause, Pfc, pfc
from emu.linklayer.pause import MAX_QUANTA, quanta_ps
from tests.devices.pause_link import GBPS, Pair, frame
from tests.laws.stage import Stage, hold_memory

LONGEST_PS = 335_539_200  # 65,535 x 512 bits at 100 Gb/s: 335.5 us
TOLD_PS = 2_000_000
XOFF, XON = pfc(1, {3: MAX_QUANTA}), pfc(1, {3: 0})
SER_PS = (14 + 20 + 8 + 12 + 4096 + 4 + 4 + 20) * 80


def test_the_longest_pause_at_100_gbps() -> None:
    pair = Pair()
    pair.tell(TOLD_PS, XOFF)
    pair.offer(pair.here, frame(), at_ps=TOLD_PS)
    pair.engine.run()
    assert pair.started() == [TOLD_PS + LONGEST_PS]
    assert pair.here.paused_ps() == LONGEST_PS == quanta_ps(MAX_QUANTA, 100 * GBPS)


def test_a_frame_that_has_started_is_not_stopped_and_one_that_would_start_as_the_pause_comes_in_is() -> None:
    pair = Pair()
    pair.offer(pair.here, frame(), frame(), at_ps=TOLD_PS - SER_PS)  # the second would start at TOLD_PS
    pair.tell(TOLD_PS, XOFF)
    pair.engine.run()
    assert pair.started() == [TOLD_PS - SER_PS, TOLD_PS + LONGEST_PS]


@given(st.integers(7_000, LONGEST_PS - 1))
def test_a_second_xoff_reloads(later_ps: int) -> None:
    pair = Pair()
    pair.tell(TOLD_PS, XOFF)
    pair.tell(TOLD_PS + later_ps, XOFF)
    pair.offer(pair.here, frame(), at_ps=TOLD_PS)
    pair.engine.run()
    assert pair.started() == [TOLD_PS + later_ps + LONGEST_PS]


@given(st.integers(7_000, LONGEST_PS - 1), st.sampled_from([0, 1, 300_000]))
def test_after_xon_the_next_frame_starts_as_its_last_bit_is_in(later_ps: int, resume_ps: int) -> None:
    pair = Pair(resume_ps=resume_ps)
    pair.tell(TOLD_PS, XOFF)
    pair.tell(TOLD_PS + later_ps, XON)
    pair.offer(pair.here, frame(), frame(), at_ps=TOLD_PS + 1)
    pair.engine.run()
    first_ps = min(TOLD_PS + later_ps + resume_ps, TOLD_PS + LONGEST_PS)
    assert pair.started() == [first_ps, first_ps + SER_PS]


@given(st.integers(0, 3_000_000), st.integers(6_720, 3_000_000))
def test_an_xoff_is_obeyed_at_the_frame_boundary_after_its_response_time(response_ps: int, later_ps: int) -> None:
    """And an XON that comes before cancels it."""
    pair = Pair(response_ps=response_ps)
    pair.offer(pair.here, *(frame() for _ in range(30)), at_ps=TOLD_PS)
    pair.tell(TOLD_PS, XOFF)
    pair.tell(TOLD_PS + later_ps, XON)
    pair.engine.run()
    before = -(-response_ps // SER_PS)
    resumed_ps = TOLD_PS + max(before * SER_PS, later_ps)
    if later_ps < response_ps:
        before, resumed_ps = 30, 0
    expected = [TOLD_PS + number * SER_PS for number in range(before)]
    expected += [resumed_ps + number * SER_PS for number in range(30 - before)]
    assert pair.started() == expected[:30]


@pytest.mark.parametrize("told", [Pause(1, MAX_QUANTA), pfc(1, dict.fromkeys(range(8), MAX_QUANTA))])
def test_a_pause_of_the_link_stops_all_priorities(told: Control) -> None:
    pair = Pair()
    pair.tell(TOLD_PS, told)
    pair.tell(TOLD_PS + 10_000_000, Pause(1, 0))
    pair.offer(pair.here, *(frame(priority=each) for each in range(8)), at_ps=TOLD_PS)
    pair.engine.run()
    assert min(when_ps for when_ps, _ in pair.starts["here"]) == TOLD_PS + 10_000_000
    assert {priority for _, priority in pair.starts["here"]} == set(range(8))
    assert pair.here.paused_ps() == 8 * 10_000_000


def test_a_pause_of_one_priority_stops_no_other() -> None:
    pair = Pair()
    pair.tell(TOLD_PS, XOFF)
    for priority in (3, 6):
        pair.offer(pair.here, *(frame(priority=priority) for _ in range(3)), at_ps=TOLD_PS)
    pair.engine.run()
    assert pair.started(6) == [TOLD_PS + number * SER_PS for number in range(3)]
    assert pair.started(3) == [TOLD_PS + LONGEST_PS + number * SER_PS for number in range(3)]


def test_each_priority_has_a_time_of_its_own() -> None:
    pair = Pair()
    pair.tell(TOLD_PS, pfc(1, {1: 100, 2: 300, 4: 200}))
    pair.offer(pair.here, *(frame(64, priority) for priority in (1, 2, 4)), at_ps=TOLD_PS)
    pair.engine.run()
    assert [pair.started(each) for each in (1, 2, 4)] == [[TOLD_PS + quanta * 5120] for quanta in (100, 300, 200)]


def pfcs(pair: Pair) -> list[tuple[int, Pfc]]:
    """What `there` told its peer, and when it left."""
    return [(when_ps, said) for when_ps, said in pair.said["there"] if isinstance(said, Pfc)]


def want(pair: Pair, when_ps: int, priority: int, paused: bool) -> None:
    """Let `there` pause a priority of its peer from then on, or not any more."""
    pair.engine.at(when_ps, lambda _: pair.there_flow.want(priority, paused=paused))


@pytest.mark.parametrize("busy", [False, True])
def test_refreshes_keep_a_peer_paused_for_as_long_as_wanted(busy: bool) -> None:
    """Though each waits for a largest frame on the way back."""
    guard_ps = SER_PS + 84 * 80
    pair = Pair(quanta=200, guard_ps=guard_ps)
    want(pair, 0, 3, True)
    want(pair, 200_000_000, 3, False)
    pair.offer(pair.here, *(frame() for _ in range(5)), at_ps=1_000_000)
    if busy:
        pair.offer(pair.there, *(frame() for _ in range(800)))
    pair.engine.run()
    told = pfcs(pair)
    xoffs = [when_ps for when_ps, said in told if said.quanta[3]]
    gaps = [later - first for first, later in zip(xoffs, xoffs[1:], strict=False)]
    assert 200 * 5120 - guard_ps <= min(gaps) <= max(gaps) <= 200 * 5120 - 84 * 80
    (xon_ps,) = [when_ps for when_ps, said in told if not said.quanta[3]]
    in_ps = xon_ps + 84 * 80 + pair.propagation_ps
    assert pair.started() == [in_ps + number * SER_PS for number in range(5)]
    assert pair.here.paused_ps() == in_ps - (xoffs[0] + 84 * 80 + pair.propagation_ps)


def test_one_frame_names_all_that_is_paused_and_all_that_no_longer_is() -> None:
    pair = Pair()
    pair.offer(pair.there, frame())
    for when_ps, priority, paused in ((1, 3, True), (2, 5, True), (SER_PS + 1, 3, False), (SER_PS + 2, 6, True)):
        want(pair, when_ps, priority, paused)
    want(pair, 2 * SER_PS, 5, False)
    pair.engine.run(3 * SER_PS)
    told = [(when_ps, said.enabled, said.quanta[3:7]) for when_ps, said in pfcs(pair)]
    full = MAX_QUANTA
    assert told == [
        (SER_PS, 0b0010_1000, (full, 0, full, 0)),
        (SER_PS + 6720, 0b0110_1000, (0, 0, full, full)),
        (2 * SER_PS, 0b0110_0000, (0, 0, 0, full)),
    ]


def test_what_is_wanted_no_more_before_it_was_said_is_not_said() -> None:
    pair = Pair()
    pair.offer(pair.there, frame())
    want(pair, 1, 3, True)
    want(pair, 2, 3, False)
    pair.engine.run()
    assert not pair.said["there"]


@settings(max_examples=10)
@given(
    st.sampled_from(["{kind: incast, senders: 3, receiver: h3, size: 40KiB}", "{kind: all_to_all, size: 24KiB}"]),
    st.sampled_from(["xoff: 9KB, buffer: 1MiB", "buffer: 200KB, headroom: tight", "xoff: 12KB, reserved: 4KiB"]),
    st.sampled_from(["cut_through", "store_and_forward"]),
    st.integers(1, 60),
)
def test_a_switchs_memory_adds_up_after_every_event_and_wherever_a_run_ends(
    traffic: str, values: str, switching: str, until_us: int
) -> None:
    stage = Stage(
        f"""
name: memory
fabric: {{profile: roce, congestion_control: none, flow_control: pfc, switching: {switching}, {values},
  topology: {{kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 2, fabric_rate: 100Gbps}}}}
traffic: [{traffic}]
"""
    )
    stage.run(until_us * 1_000_000, each_event=hold_memory)
    assert not any(switch.lossless_drops for switch in stage.fabric.switches.values())
