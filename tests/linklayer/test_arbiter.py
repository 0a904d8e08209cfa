"""Who sends next: strict and weighted queues, VL tables and the high limit, sources in turn."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.errors import ScenarioError
from emu.linklayer.arbiter import (
    NOBODY,
    QueueArbiter,
    QueueArbiterConfig,
    RoundRobinQueue,
    VlArbiter,
    VlArbiterConfig,
)


def queues(*weights: int, quantum: int = 1000) -> QueueArbiter:
    return QueueArbiter(QueueArbiterConfig(weights=weights, quantum_bytes=quantum))


@pytest.mark.parametrize(
    ("weights", "quantum"), [((), 1000), ((1,) * 17, 1000), ((1, -1), 1000), ((1,), 63), ((1,), 0)]
)
def test_queues_that_make_no_sense_are_refused(weights: tuple[int, ...], quantum: int) -> None:
    with pytest.raises(ScenarioError):
        queues(*weights, quantum=quantum)


def test_strict_queues_go_first_the_highest_before_all() -> None:
    arbiter = queues(1, 1, 0, 0)
    sizes = [500] * 4
    assert [arbiter.pick(ready, sizes) for ready in (0b1111, 0b0111, 0b0000)] == [3, 2, NOBODY]
    assert arbiter.pick(0b0011, sizes) in (0, 1)
    assert arbiter.pick(0b10000, sizes) == NOBODY  # there is no such queue
    assert queues(0, 0).pick(0b11, sizes) == 1


def test_weighted_queues_take_turns_of_their_quanta() -> None:
    arbiter = queues(1, 2)
    assert "".join(str(arbiter.pick(0b11, [500, 500])) for _ in range(12)) == "001111" * 2
    assert "".join(str(arbiter.pick(0b01, [500, 500])) for _ in range(3)) == "000"


def test_a_frame_larger_than_the_quantum_waits_for_several_turns() -> None:
    arbiter = queues(1, 1)
    picked = [arbiter.pick(0b11, [3500, 500]) for _ in range(9 * 7)]
    sent = Counter(picked)
    assert abs(sent[0] * 3500 - sent[1] * 500) <= 3500 + 1000


def test_nothing_is_saved_up_while_a_queue_cannot_send() -> None:
    arbiter = queues(1, 1)
    for _ in range(100):
        assert arbiter.pick(0b01, [1000, 1000]) == 0
    assert Counter(arbiter.pick(0b11, [1000, 1000]) for _ in range(10)) == {0: 5, 1: 5}


def test_what_is_left_of_a_turn_is_lost_when_the_queue_empties() -> None:
    arbiter = queues(1, 1)
    assert arbiter.pick(0b10, [0, 300]) == 1  # 700 left
    assert [arbiter.pick(0b01, [1000, 0]) for _ in range(3)] == [0, 0, 0]
    assert [arbiter.pick(0b11, [1000, 1700]) for _ in range(4)] == [0, 1, 0, 0]


@given(
    st.lists(st.integers(1, 10), min_size=2, max_size=8),
    st.integers(64, 12_000),
    st.integers(0, 2**32),
)
def test_while_all_have_frames_each_gets_its_share(weights: list[int], quantum: int, seed: int) -> None:
    arbiter, numbers = queues(*weights, quantum=quantum), random.Random(seed)
    sizes = [numbers.randint(84, 9236) for _ in weights]
    sent = [0] * len(weights)
    for _ in range(300):
        queue = arbiter.pick((1 << len(weights)) - 1, sizes)
        sent[queue] += sizes[queue]
        sizes[queue] = numbers.randint(84, 9236)
        shares = [done / weight for done, weight in zip(sent, weights, strict=True)]
        assert max(shares) - min(shares) <= quantum + 2 * 9236


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.lists(st.integers(0, 255), max_size=60))
def test_only_a_queue_that_may_send_is_picked_and_one_always_is(weights: list[int], readies: list[int]) -> None:
    arbiter, everybody = queues(*weights), (1 << len(weights)) - 1
    for ready in readies:
        queue = arbiter.pick(ready, [1500] * 8)
        assert queue == NOBODY if not ready & everybody else ready >> queue & 1


def vls(**values: Any) -> VlArbiter:
    return VlArbiter(VlArbiterConfig(**values))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"low": ((15, 1),)}, "low VL table has VL 15"),
        ({"low": ((0, 256),)}, "weight 256"),
        ({"low": (), "high": ((-1, 1),)}, "high VL table has VL -1"),
        ({"low": ((0, 1),) * 65}, "65 entries"),
        ({"low": ((0, 1),), "high_limit": 256}, "high limit of 256"),
        ({"low": ((0, 0),)}, "no VL with a weight"),
    ],
)
def test_tables_that_make_no_sense_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        vls(**values)


def picks(arbiter: VlArbiter, count: int, ready: int, blocks: int = 1) -> str:
    return "".join(str(arbiter.pick(ready, [blocks] * 16)) for _ in range(count))


def test_vl15_goes_before_all() -> None:
    arbiter = vls(low=((0, 1),), high=((1, 1),), high_limit=255)
    assert [arbiter.pick(ready, [1] * 16) for ready in (0x8003, 0x0003, 0x0001, 0)] == [15, 1, 0, NOBODY]


def test_weights_are_blocks_and_the_last_frame_may_exceed_them() -> None:
    assert picks(vls(low=((0, 2), (1, 4), (2, 0))), 12, 0b011) == "001111001111"
    assert picks(vls(low=((0, 65), (1, 66))), 6, 0b11, blocks=65) == "011011"
    assert picks(vls(low=((0, 1), (1, 1), (0, 1))), 6, 0b11) == "010010"
    assert vls(low=((2, 0), (1, 3))).pick(0b100, [1] * 16) == NOBODY


def test_an_entry_that_cannot_send_loses_its_turn() -> None:
    arbiter = vls(low=((0, 4), (1, 4)))
    assert picks(arbiter, 2, 0b11) + picks(arbiter, 1, 0b10) + picks(arbiter, 7, 0b11) == "0011110000"


@pytest.mark.parametrize(("limit", "run"), [(0, 1), (1, 64), (2, 128)])
def test_the_high_table_sends_up_to_its_limit_while_low_ones_wait(limit: int, run: int) -> None:
    arbiter = vls(low=((0, 9),), high=((1, 9),), high_limit=limit)
    assert picks(arbiter, 2 * (run + 1), 0b11) == ("1" * run + "0") * 2


def test_without_low_ones_there_is_no_limit_and_without_end_there_is_none_either() -> None:
    arbiter = vls(low=((0, 9),), high=((1, 9),), high_limit=1)
    assert picks(arbiter, 500, 0b10) == "1" * 500
    assert picks(arbiter, 65, 0b11) == "1" * 64 + "0"
    assert picks(vls(low=((0, 9),), high=((1, 9),), high_limit=255), 500, 0b11) == "1" * 500


def test_a_vl_in_both_tables_is_sent_from_both() -> None:
    arbiter = vls(low=((0, 9), (1, 9)), high=((1, 9),))
    assert picks(arbiter, 9, 0b10) == "1" * 9
    assert VlArbiterConfig(low=((0, 1), (3, 0)), high=((1, 1),)).vls == 0b11


@given(st.lists(st.integers(1, 255), min_size=2, max_size=6), st.integers(1, 65))
def test_while_all_have_frames_each_vl_gets_its_share(weights: list[int], blocks: int) -> None:
    arbiter = vls(low=tuple(enumerate(weights)))
    frames_a_turn = [-(-weight // blocks) for weight in weights]
    rounds = 3
    sent = Counter(arbiter.pick(0xFF, [blocks] * 16) for _ in range(rounds * sum(frames_a_turn)))
    assert [sent[vl] for vl in range(len(weights))] == [rounds * frames for frames in frames_a_turn]


def test_sources_take_turns_and_each_keeps_its_order() -> None:
    queue = RoundRobinQueue[str]()
    assert not queue
    for source, item in ((0, "a1"), (0, "a2"), (0, "a3"), (2, "c1"), (1, "b1")):
        queue.push(source, item)
    assert (len(queue), bool(queue), queue.first()) == (5, True, "a1")
    first = [queue.pop() for _ in range(2)]
    queue.push(2, "c2")
    assert first + [queue.pop() for _ in range(4)] == ["a1", "c1", "b1", "a2", "c2", "a3"]
    with pytest.raises(IndexError):
        queue.pop()


@given(st.lists(st.integers(0, 4), max_size=100))
def test_what_is_pushed_comes_out_once_in_its_sources_order(sources: list[int]) -> None:
    queue = RoundRobinQueue[tuple[int, int]]()
    for number, source in enumerate(sources):
        queue.push(source, (source, number))
    out = []
    while queue:
        assert queue.first() == (item := queue.pop())
        out.append(item)
    assert sorted(out, key=lambda item: item[1]) == [(source, number) for number, source in enumerate(sources)]
    for source in range(5):
        mine = [number for each, number in out if each == source]
        assert mine == sorted(mine)
        places = [place for place, (each, _) in enumerate(out) if each == source]
        assert all(later - earlier <= 5 for earlier, later in zip(places, places[1:], strict=False))
