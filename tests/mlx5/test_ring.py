"""A send queue's ring: whatever is asked of it, in whatever order, no block is given out before it is retired."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.errors import InvariantBroken, VerbsError
from emu.mlx5.ring import MAX_DEPTH_BLOCKS, Ring, expand

DEPTHS = st.integers(0, 15).map(lambda power: 1 << power)


@pytest.mark.parametrize("depth", [-1, 0, 3, 1000, 65536])
def test_depths_that_are_none(depth: int) -> None:
    with pytest.raises(VerbsError, match="power of two from 1 to 32768"):
        Ring(depth)


def test_a_round() -> None:
    ring = Ring(4)
    assert [ring.reserve(blocks) for blocks in (2, 1, 2, 1, 1)] == [0, 2, -1, 3, -1]
    assert (ring.free, ring.published) == (0, 0)
    assert ring.publish(3) == 3
    ring.retire(2)
    assert (ring.free, ring.reserve(3), ring.reserve(2)) == (2, -1, 4)
    assert [ring.offset(index) for index in (3, 4, 5)] == [192, 0, 64]


def test_counters_wrap_and_indices_do_not() -> None:
    ring = Ring(MAX_DEPTH_BLOCKS)
    for step in range(1, 6):
        assert ring.reserve(MAX_DEPTH_BLOCKS) == (step - 1) * MAX_DEPTH_BLOCKS
        counter = ring.publish(ring.reserved)
        assert counter == step * MAX_DEPTH_BLOCKS % 65536
        assert ring.index_of(counter) == step * MAX_DEPTH_BLOCKS
        assert ring.index_of((counter - 1) % 65536) == step * MAX_DEPTH_BLOCKS - 1
        ring.retire(ring.index_of(counter))


@given(st.integers(0, 1 << 40), st.integers(0, 65535))
def test_expanded(at_least: int, ahead: int) -> None:
    assert expand((at_least + ahead) % 65536, at_least) == at_least + ahead


@given(DEPTHS, st.integers(0, 1 << 20), st.data())
def test_overrun_is_impossible(depth: int, start: int, data: st.DataObject) -> None:
    """Against the plainest model: who owns each slot. The NIC learns of indices by 16 bits alone."""
    ring = Ring(depth)
    ring.reserved = ring.published = ring.retired = start
    owned: dict[int, int] = {}  # slot: index
    waiting: deque[int] = deque()  # ends of what is reserved, then published
    for step in data.draw(st.lists(st.sampled_from(["reserve", "publish", "retire"]), max_size=30)):
        if step == "reserve":
            blocks = data.draw(st.integers(1, depth))
            index = ring.reserve(blocks)
            assert (index < 0) == (len(owned) + blocks > depth)
            for block in range(index, index + blocks if index >= 0 else index):
                assert block % depth not in owned
                owned[block % depth] = block
            if index >= 0:
                waiting.append(index + blocks)
        elif step == "publish":
            up_to = data.draw(st.sampled_from([ring.published, *(end for end in waiting if end > ring.published)]))
            assert ring.index_of(ring.publish(up_to)) == up_to
        else:
            up_to = data.draw(st.sampled_from([ring.retired, *(end for end in waiting if end <= ring.published)]))
            ring.retire(ring.index_of(up_to % 65536))
            owned = {slot: index for slot, index in owned.items() if index >= up_to}
            while waiting and waiting[0] <= up_to:
                waiting.popleft()
        assert start <= ring.retired <= ring.published <= ring.reserved <= ring.retired + depth
        assert ring.free == depth - len(owned)


@pytest.mark.parametrize("blocks", [0, -1, 5])
def test_a_wqe_that_never_fits(blocks: int) -> None:
    with pytest.raises(VerbsError, match="WQEBBs in a send queue of 4"):
        Ring(4).reserve(blocks)


def test_only_what_is_reserved_is_published_and_only_that_retired() -> None:
    ring = Ring(8)
    ring.reserve(4)
    for wrong in (5, -1):
        with pytest.raises(InvariantBroken, match="published to"):
            ring.publish(wrong)
    ring.publish(2)
    for wrong in (3, -1):
        with pytest.raises(InvariantBroken, match="retired to"):
            ring.retire(wrong)
    with pytest.raises(InvariantBroken, match="published to 1: it was 2"):
        ring.publish(1)
