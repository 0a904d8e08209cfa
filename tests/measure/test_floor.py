"""The physical floor by itself, on cases one can do in one's head."""

from __future__ import annotations

import time

from hypothesis import example, given, settings
from hypothesis import strategies as st

from emu.measure.floor import Hop, Runs, Transit, serialization_ps, transit_ps


def hop(*, stores: bool = False, gbps: int = 100, hop_latency_ps: int = 0) -> Hop:
    """A hop of 10 ns of cable."""
    return Hop(gbps * 10**9, 10_000, hop_latency_ps, stores, False)


def test_one_link_is_serialization_and_cable() -> None:
    assert serialization_ps(1000, 100 * 10**9) == 80_000
    assert transit_ps([hop()], [(1000, 1)]) == 90_000


def test_cut_through_serializes_once_and_storing_at_every_hop() -> None:
    assert transit_ps([hop(hop_latency_ps=7), hop()], [(1000, 1)]) == 2 * 10_000 + 7 + 80_000
    assert transit_ps([hop(hop_latency_ps=7, stores=True), hop()], [(1000, 1)]) == 2 * 10_000 + 7 + 160_000


def test_the_slowest_link_paces_a_train_of_frames() -> None:
    train = [(1000, 10)]
    assert transit_ps([hop(gbps=400), hop(gbps=100)], train) == 2 * 10_000 + 10 * 80_000
    assert transit_ps([hop(gbps=100), hop(gbps=400)], train) == 2 * 10_000 + 10 * 80_000


def test_a_rate_that_does_not_divide_rounds_each_frame_up() -> None:
    assert serialization_ps(1, 3 * 10**9) == 2667


rates = st.sampled_from([1, 7, 10, 100, 400])


@st.composite
def paths(draw: st.DrawFn) -> list[Hop]:
    """Up to five hops of any kind."""
    return [
        Hop(draw(rates) * 10**9, draw(st.integers(0, 10**6)), draw(st.integers(0, 10**6)), draw(st.booleans()), False)
        for _ in range(draw(st.integers(1, 5)))
    ]


runs = st.lists(st.tuples(st.integers(38, 4200), st.integers(0, 40)), min_size=1, max_size=3)


@settings(max_examples=200, deadline=None)
@example([hop(gbps=7, stores=True), hop(gbps=10)], [(136, 1), (38, 7)], 1)  # the large frame is made up for later
@given(paths(), runs, st.integers(1, 60))
def test_multiplying_gives_what_sending_each_frame_gives(hops: list[Hop], message: Runs, messages: int) -> None:
    each = Transit(hops)
    for _ in range(messages):
        for wire_bytes, count in message:
            for _ in range(count):
                each.frame(wire_bytes)
    assert transit_ps(hops, message, messages) == each.last_in_ps


def test_what_is_made_up_for_late_is_seen_all_the_same() -> None:
    """The second link is quicker by a hair: what waits behind the large frame there is gone after a thousand more."""
    hops = [Hop(400 * 10**9, 0, 0, True, False), Hop(401 * 10**9, 0, 0, False, False)]
    each = Transit(hops)
    for wire_bytes, count in (message := [(9000, 1), (2500, 3000)]):
        for _ in range(count):
            each.frame(wire_bytes)
    assert transit_ps(hops, message) == each.last_in_ps


def test_a_very_long_message_is_worked_out_at_once() -> None:
    began = time.perf_counter()
    assert transit_ps([hop(), hop()], [(1000, 10**9)]) == 20_000 + 10**9 * 80_000
    assert time.perf_counter() - began < 1
