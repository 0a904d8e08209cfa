"""The physical floor by itself, on cases one can do in one's head."""

from __future__ import annotations

from emu.measure.floor import Hop, serialization_ps, transit_ps


def hop(*, stores: bool = False, gbps: int = 100, hop_latency_ps: int = 0) -> Hop:
    """A hop of 10 ns of cable."""
    return Hop(gbps * 10**9, 10_000, hop_latency_ps, stores, False)


def test_one_link_is_serialization_and_cable() -> None:
    assert serialization_ps(1000, 100 * 10**9) == 80_000
    assert transit_ps([hop()], [1000]) == 90_000


def test_cut_through_serializes_once_and_storing_at_every_hop() -> None:
    assert transit_ps([hop(hop_latency_ps=7), hop()], [1000]) == 2 * 10_000 + 7 + 80_000
    assert transit_ps([hop(hop_latency_ps=7, stores=True), hop()], [1000]) == 2 * 10_000 + 7 + 160_000


def test_the_slowest_link_paces_a_train_of_frames() -> None:
    train = [1000] * 10
    assert transit_ps([hop(gbps=400), hop(gbps=100)], train) == 2 * 10_000 + 10 * 80_000
    assert transit_ps([hop(gbps=100), hop(gbps=400)], train) == 2 * 10_000 + 10 * 80_000


def test_a_rate_that_does_not_divide_rounds_each_frame_up() -> None:
    assert serialization_ps(1, 3 * 10**9) == 2667
