"""A send queue in memory is never overrun, however it is filled; false doorbells go nowhere."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from emu.host.places import UAR_START
from emu.host.queue import HostQueue
from emu.mlx5 import doorbell
from emu.mlx5.segments import WQEBB_BYTES
from emu.run import pcie
from emu.scenario.host_path import PATHS
from emu.verbs import QPState, SendFlags, WcStatus, WROpcode
from tests.verbs.ends import Ends


def queue_of(ends: Ends) -> HostQueue:
    """`h0`'s, which has posted."""
    (queue,) = ends.fabric.hosts["h0"]._queues.values()
    return queue


def watched(ends: Ends) -> list[tuple[int, int]]:
    """Every WQE written to memory: where the ring stood then. Checks that its slots were free."""
    seen: list[tuple[int, int]] = []
    last: dict[int, int] = {}

    def did(who: str, what: str, where: str) -> None:
        if not who.startswith("h0") or not what.startswith("writes the WQE"):
            return
        ring = queue_of(ends).ring
        assert 0 <= ring.retired <= ring.published <= ring.reserved <= ring.retired + ring.depth
        blocks = int(what.split()[-2]) // WQEBB_BYTES
        first = ring.published  # it is about to be
        for index in range(first, first + blocks):
            slot = index % ring.depth
            assert last.get(slot, -1) < ring.retired  # what stood there is done with
            last[slot] = index
        seen.append((ring.retired, first))

    ends.taps.host_step = did
    return seen


@st.composite
def crowds(draw: st.DrawFn) -> tuple[list[str], list[tuple[int, bool, bool]]]:
    """A small ring, and more than it holds: sizes, some inline (up to four blocks), some that want no CQE."""
    depth = draw(st.sampled_from([4, 8, 16]))
    host = [
        f"host.path={draw(st.sampled_from(PATHS))}",
        f"host.gpu_direct={draw(st.sampled_from(['true', 'false']))}",
        f"host.queues.qp_depth={depth}",
        f"host.queues.num_requests_in_batch={draw(st.integers(1, depth))}",
        f"host.queues.nic_handler={draw(st.sampled_from(['gpu', 'cpu']))}",
        f"host.queues.nic_buf_memtype={draw(st.sampled_from(['gpumem', 'hostmem']))}",
        f"host.gpu.warps={draw(st.sampled_from([1, 2, 7, 64]))}",
        f"host.cpu.blueflame={draw(st.sampled_from(['true', 'false']))}",
        f"host.cpu.batch={draw(st.integers(1, 4))}",
        f"host.gpu.post={draw(st.sampled_from(['0ns', '400ns']))}",
        f"host.gpu.ring={draw(st.sampled_from(['0ns', '300ns']))}",
    ]
    sizes = st.sampled_from([0, 1, 28, 29, 93, 220, 3000])
    posts = draw(st.lists(st.tuples(sizes, st.booleans(), st.booleans()), min_size=1, max_size=60))
    return host, [(size, inline and size <= 220, signaled) for size, inline, signaled in posts]


@settings(max_examples=30, phases=[Phase.explicit, Phase.generate])
@given(crowds())
def test_no_slot_is_written_before_it_is_done_with(crowd: tuple[list[str], list[tuple[int, bool, bool]]]) -> None:
    host, posts = crowd
    ends = Ends(mtu=4096, length=64 * 4096, settings=host)
    seen = watched(ends)
    for number, (size, inline, signaled) in enumerate(posts):
        flags = SendFlags.SIGNALED if signaled or number == len(posts) - 1 else SendFlags.NONE
        if inline:
            flags |= SendFlags.INLINE
        ends.post(WROpcode.RDMA_WRITE, size, number * 4096, number * 4096, wr_id=number, send_flags=flags)
    ends.run()
    assert len(seen) == len(posts)
    queue = queue_of(ends)
    assert queue.ring.retired == queue.ring.published == queue.ring.reserved == queue.next_index == queue.announced
    assert {each.status for each in ends.here.cq.poll_cq(99)} == {WcStatus.SUCCESS}
    for number, (size, _, _) in enumerate(posts):
        place = slice(number * 4096, number * 4096 + size)
        assert ends.there.mr.buffer[place] == ends.here.mr.buffer[place]
    assert list(pcie.warnings(ends.fabric)) == []


@pytest.mark.parametrize("path", PATHS)
def test_a_ring_that_wraps_its_sixteen_bits(path: str) -> None:
    """Indices on the wire have 16 bits; 66,000 blocks are more."""
    ends = Ends(settings=[f"host.path={path}", "host.cpu.request=1ns", "host.cpu.synchronize=1ns", "host.cpu.post=1ns"])
    queue_settles = 200
    ends.post(WROpcode.RDMA_WRITE, 1)
    ends.run()
    queue = queue_of(ends)
    start = (1 << 16) - queue_settles // 2
    for name in ("retired", "published", "reserved"):
        setattr(queue.ring, name, start)
    queue.announced = queue.next_index = queue.rung = start
    for number in range(queue_settles):
        ends.post(WROpcode.RDMA_WRITE, 8, number * 8, number * 8, wr_id=number)
    ends.run()
    done = ends.here.cq.poll_cq(queue_settles + 1)[1:]
    assert [(each.wr_id, each.status) for each in done] == [(n, WcStatus.SUCCESS) for n in range(queue_settles)]
    assert queue.ring.retired == start + queue_settles
    assert ends.there.mr.buffer[: 8 * queue_settles] == ends.here.mr.buffer[: 8 * queue_settles]


def told(ends: Ends, data: bytes) -> Any:
    """Somebody writes that to the doorbell register; the host's figures then."""
    ends.fabric.hosts["h0"].tree.gpu.write(UAR_START, data)
    ends.run()
    return pcie._host(ends.fabric.hosts["h0"])


@pytest.mark.parametrize("beyond", [1025, 2000, 1 << 15])
def test_a_doorbell_beyond_the_ring_is_refused(beyond: int) -> None:
    ends = Ends(settings=["host.path=ibgda"])
    ends.post(WROpcode.RDMA_WRITE, 8)
    ends.run()
    queue = queue_of(ends)
    found = told(ends, doorbell.encode_doorbell(queue.ring.retired + beyond, queue.qp_num))
    assert (found["bad_doorbells"], found["reads"]) == (1, 3)  # context, WQE, payload
    assert ends.here.qp.state is QPState.RTS
    ends.post(WROpcode.RDMA_WRITE, 8, to=100)
    ends.run()
    assert [each.status for each in ends.here.cq.poll_cq(9)] == [WcStatus.SUCCESS] * 2
    assert "host h0: 1 bad doorbell" in list(pcie.warnings(ends.fabric))


@pytest.mark.parametrize("count", [1, 3, 1024])
def test_a_doorbell_for_wqes_that_nobody_wrote_ends_the_queue_pair(count: int) -> None:
    ends = Ends(settings=["host.path=ibgda"])
    ends.post(WROpcode.RDMA_WRITE, 8)
    ends.run()
    queue = queue_of(ends)
    found = told(ends, doorbell.encode_doorbell(queue.ring.retired + count, queue.qp_num))
    assert found["bad_doorbells"] == 0
    assert ends.here.qp.state is QPState.ERR
    ends.post(WROpcode.RDMA_WRITE, 8, to=100)
    ends.run()
    assert [each.status for each in ends.here.cq.poll_cq(9)] == [WcStatus.SUCCESS, WcStatus.WR_FLUSH_ERR]


@pytest.mark.parametrize("data", [doorbell.encode_doorbell(1, 0x999), b"\xff" * 7, bytes([0, 0, 0, 8, 0, 0, 0x11, 0])])
def test_a_doorbell_of_nobody_or_that_is_none_is_counted(data: bytes) -> None:
    ends = Ends(settings=["host.path=ibgda"])
    ends.post(WROpcode.RDMA_WRITE, 8)
    ends.run()
    assert told(ends, data)["bad_doorbells"] == 1
    assert ends.here.qp.state is QPState.RTS


def test_the_same_doorbell_again_does_nothing() -> None:
    ends = Ends(settings=["host.path=ibgda"])
    ends.post(WROpcode.RDMA_WRITE, 8)
    ends.run()
    queue = queue_of(ends)
    found = told(ends, doorbell.encode_doorbell(1, queue.qp_num))
    assert (found["bad_doorbells"], found["reads"], found["doorbells"]) == (0, 3, 2)
    assert ends.fabric.nics["h1"].received == 1
