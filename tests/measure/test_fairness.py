"""Fairness over the time in which all flows were active, and why a share is unfair."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.measure.fairness import Fairness, Window, extremes, index, jain, sentence
from tests.measure.flows import FakeFlow


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([5], 1.0),
        ([3, 3, 3], 1.0),
        ([1, 0, 0, 0], 0.25),
        ([1, 3], 16 / 20),
        # Fifteen to one over 4 leaves: 3 flows with a port each, 12 that share 4 ports.
        ([3] * 3 + [1] * 12, 21**2 / (15 * 39)),
        ([0, 0], None),
        ([], None),
    ],
)
def test_jain(values: list[int], expected: float | None) -> None:
    assert jain(values) == expected


@given(st.lists(st.integers(0, 10**18), min_size=1).filter(any), st.integers(1, 10**6))
def test_jain_lies_between_one_of_all_and_one_and_knows_no_scale(values: list[int], scale: int) -> None:
    found = jain(values)
    assert found is not None
    assert 1 / len(values) - 1e-9 <= found <= 1 + 1e-9
    assert jain([value * scale for value in values]) == pytest.approx(found)


def flows(number: int, **more: int) -> list[FakeFlow]:
    return [FakeFlow(f"h{place + 1}", **more) for place in range(number)]  # type: ignore[arg-type]


def receive(all_flows: Sequence[FakeFlow], *amounts: int) -> None:
    """From now on these are what each flow's peer has."""
    for flow, now_bytes in zip(all_flows, amounts, strict=True):
        flow.now_bytes = now_bytes


def shares(window: Window | None) -> list[int]:
    assert window is not None
    return list(window.delivered_bytes.values())


def test_the_window_opens_at_the_last_start_and_closes_at_the_first_completion() -> None:
    fairness, (first, second) = Fairness(), flows(2)
    fairness.started(first, 0)
    receive((first, second), 100, 0)
    fairness.started(second, 10)
    receive((first, second), 130, 10)
    fairness.delivered(second, 1, 20)
    receive((first, second), 900, 10)
    fairness.delivered(first, 1, 30)
    window = fairness.window(99)
    assert (window and window[:2], shares(window)) == ((10, 20), [30, 10])
    assert index(window, 2) == jain([30, 10])


def test_a_window_that_was_asked_for_takes_the_place_of_the_usual_one() -> None:
    fairness, both = Fairness(), flows(2)
    for flow in both:
        fairness.started(flow, 0)
    receive(both, 10, 10)
    fairness.read(5)
    receive(both, 40, 20)
    assert shares(fairness.window(7)) == [40, 20]  # its end has not come: the usual one
    fairness.read(8)
    receive(both, 99, 99)
    fairness.delivered(both[0], 1, 9)
    window = fairness.window(10)
    assert (window and window[:2], shares(window)) == ((5, 8), [30, 10])
    assert extremes(window) == (0.5, 1.5)
    assert extremes(None) == (None, None)


def test_flows_that_start_together_have_one_snapshot_and_none_is_read_for_a_message_between() -> None:
    fairness, both = Fairness(), flows(2, expected=3)
    for flow in both:
        fairness.started(flow, 5)
    reads = [flow.reads for flow in both]
    for number in (1, 2):
        receive(both, number, number)
        for flow in both:
            fairness.delivered(flow, number, 5 + number)
    assert [flow.reads for flow in both] == reads
    receive(both, 3, 2)
    fairness.delivered(both[0], 3, 8)
    assert shares(fairness.window(9)) == [3, 2]
    assert sum(flow.reads for flow in both) <= sum(reads) + 2


def test_a_flow_that_was_over_before_the_last_began_leaves_no_window() -> None:
    fairness, (first, second) = Fairness(), flows(2)
    fairness.started(first, 0)
    fairness.delivered(first, 1, 10)
    fairness.started(second, 20)
    fairness.delivered(second, 1, 30)
    assert fairness.window(40) is None
    assert index(None, 2) is None


def test_a_single_flow_is_fair() -> None:
    fairness, (only,) = Fairness(), flows(1)
    fairness.started(only, 0)
    receive([only], 7)
    fairness.delivered(only, 1, 10)
    assert index(fairness.window(20), len(fairness.flows)) == 1.0
    assert index(None, 1) == 1.0


def test_a_flow_that_never_receives_anything_counts_as_nothing() -> None:
    fairness, both = Fairness(), flows(2)
    for flow in both:
        fairness.started(flow, 0)
    receive(both, 8, 0)
    fairness.delivered(both[0], 1, 10)
    assert index(fairness.window(20), 2) == 0.5


def test_where_nothing_completes_the_run_s_end_closes_the_window() -> None:
    fairness, both = Fairness(), flows(2)
    for flow in both:
        fairness.started(flow, 0)
    receive(both, 6, 2)
    window = fairness.window(50)
    assert (window and window[:2], shares(window)) == ((0, 50), [6, 2])


def test_of_a_flow_that_does_not_say_how_many_the_last_message_counts() -> None:
    fairness, (open_ended, told) = Fairness(), flows(2)
    open_ended.expected = 0
    for flow in (open_ended, told):
        fairness.started(flow, 0)
    for number, now_ps in enumerate((10, 20), start=1):
        receive((open_ended, told), number, 100 * number)
        fairness.delivered(open_ended, number, now_ps)
    receive((open_ended, told), 2, 900)
    fairness.delivered(told, 1, 30)
    window = fairness.window(99)
    assert (window and window[:2], shares(window)) == ((0, 20), [2, 200])
    receive((open_ended, told), 3, 900)
    fairness.delivered(open_ended, 3, 40)  # it was not the last after all
    window = fairness.window(99)
    assert (window and window[:2], shares(window)) == ((0, 30), [2, 900])


@pytest.mark.parametrize("kind", ["victim", "pause_storm"])
def test_victims_are_not_asked(kind: str) -> None:
    fairness, both = Fairness(), flows(2)
    outsider = FakeFlow("h9", kind=kind)
    for flow in (*both, outsider):
        fairness.started(flow, 0)
    fairness.delivered(outsider, 1, 5)
    receive(both, 4, 4)
    fairness.delivered(both[0], 1, 10)
    window = fairness.window(20)
    assert (window and window.end_ps, shares(window)) == (10, [4, 4])


def incast(near: Sequence[int], far: Sequence[int], uplinks: Sequence[int]) -> str:
    """The sentence on shares of same-leaf senders, and of remote ones that come in by these spines."""
    got, paths = {}, {}
    for place, share in enumerate(near):
        flow = FakeFlow(f"h{place + 1}")
        got[flow], paths[flow] = share, [f"h{place + 1}-leaf0", "leaf0-h0"]
    for place, (share, spine) in enumerate(zip(far, uplinks, strict=True)):
        flow = FakeFlow(f"h{place + 10}")
        got[flow], paths[flow] = share, [f"h{place + 10}-leaf1", f"leaf1-s{spine}", f"s{spine}-leaf0", "leaf0-h0"]
    return sentence(Window(0, 1, got), paths)  # type: ignore[arg-type]


PARKING_LOT = " (the parking lot: ports take turns, not senders)"


def test_the_parking_lot_is_named_with_its_factor() -> None:
    said = incast([300] * 3, [100] * 12, [0, 1, 2, 3] * 3)
    assert said == f"Same-leaf senders got 3.0 times a remote sender's share of h0{PARKING_LOT}"
    assert incast([500] * 3, [100] * 10, [0, 1] * 5).startswith("Same-leaf senders got 5.0 times")


def test_the_same_where_the_uplinks_are_shared_unevenly() -> None:
    """ECMP: one flow has its port to itself, five share the other one."""
    said = incast([600] * 2, [600, *[120] * 5], [0, *[1] * 5])
    assert said.endswith(PARKING_LOT)
    assert said.startswith("Same-leaf senders got 3.0 times")


def test_shares_that_turns_of_ports_would_not_give_are_not_said_to_come_of_them() -> None:
    said = incast([4000] * 3, [100] * 12, [0, 1, 2, 3] * 3)
    assert said == "Same-leaf senders got 40.0 times a remote sender's share of h0"


@pytest.mark.parametrize(
    ("near", "far", "uplinks"),
    [
        ([100] * 3, [100] * 12, [0, 1, 2, 3] * 3),  # fair
        ([100] * 3, [300] * 3, [0] * 3),  # the other way round
        ([100] * 3, [], []),
        ([], [300, 100, 100], [0, 1, 1]),  # all as far away
        ([900, 100, 100], [100, 100, 900], [0, 1, 2]),  # not by where they are
    ],
)
def test_no_reason_is_given_where_it_would_be_none(near: list[int], far: list[int], uplinks: list[int]) -> None:
    assert incast(near, far, uplinks) == ""


def test_without_a_window_nothing_is_said() -> None:
    assert sentence(None, {}) == ""
