"""RESET ends a connection: nothing of it is sent, answered or told afterwards, and the peer finds out by itself."""

from __future__ import annotations

from typing import Any

import pytest

from emu.measure.fairness import Fairness
from emu.units import US
from emu.verbs import AH, QPAttr, QPState, QPType, WcStatus, WROpcode
from tests.verbs.ends import QKEY, Ends

SIZE = 1 << 19


def statuses(ends: Ends) -> list[tuple[int, WcStatus]]:
    return [(each.wr_id, each.status) for each in ends.here.cq.poll_cq(99)]


def reset(ends: Ends) -> None:
    ends.here.qp.modify(QPState.RESET)
    ends.there.qp.modify(QPState.RESET)


def again(ends: Ends) -> None:
    """Use the queue pairs for a new connection: all is as with new ones."""
    ends.here.qp.connect(ends.there.qp)
    ends.there.receive(0, 64, wr_id=5)
    ends.post(WROpcode.SEND, 10, wr_id=2)
    ends.run()
    assert statuses(ends) == [(2, WcStatus.SUCCESS)]
    assert [each.wr_id for each in ends.there.recv_cq.poll_cq(9)] == [5]
    assert ends.here.qp.state is QPState.RTS
    ends.post(WROpcode.RDMA_READ, 5000, offset=100, to=200, wr_id=3)
    ends.run()
    assert statuses(ends) == [(3, WcStatus.SUCCESS)]
    assert ends.here.mr.buffer[100:5100] == ends.there.mr.buffer[200:5200]


@pytest.mark.parametrize("profile", ["native", "roce"])
@pytest.mark.parametrize("when_ps", [0, 600_000, 1 * US, 2 * US, 5 * US])
@pytest.mark.parametrize("operation", [WROpcode.RDMA_WRITE, WROpcode.RDMA_READ, WROpcode.SEND])
def test_nothing_of_the_old_connection_comes_through(operation: WROpcode, when_ps: int, profile: str) -> None:
    ends = Ends(profile=profile, length=1 << 20, depth=2)
    ends.there.receive(SIZE, SIZE)
    ends.post(operation, SIZE, to=SIZE)
    ends.post(operation, SIZE, to=SIZE)
    ends.engine.run(when_ps)
    reset(ends)
    ends.run()  # what was on the wire has arrived, and been dropped
    before = bytes(ends.there.mr.buffer)
    sent = ends.fabric.nics["h1"].received, ends.fabric.nics["h0"].received
    ends.engine.run(ends.engine.now_ps + 100_000 * US)
    assert (ends.fabric.nics["h1"].received, ends.fabric.nics["h0"].received) == sent
    assert statuses(ends) == []
    assert ends.there.recv_cq.poll_cq(9) == []
    again(ends)
    assert ends.there.mr.buffer[64:] == before[64:]


def test_a_request_that_had_not_left_yet_never_does() -> None:
    ends = Ends()
    before = bytes(ends.there.mr.buffer)
    ends.post(WROpcode.RDMA_WRITE, 1000, to=5000)
    reset(ends)
    again(ends)  # at once, with the same numbers
    assert ends.there.mr.buffer[64:] == before[64:]


def test_no_more_than_the_wire_held_reaches_the_peer() -> None:
    ends = Ends(length=1 << 20)
    ends.post(WROpcode.RDMA_WRITE, SIZE)
    ends.post(WROpcode.RDMA_WRITE, SIZE)
    ends.engine.run(3 * US)
    reset(ends)
    before = ends.fabric.nics["h1"].received
    ends.run()
    assert ends.fabric.nics["h1"].received - before < 60  # a few hundred nanoseconds of hops and cables


def test_a_completion_on_its_way_is_not_told() -> None:
    for when_ps in range(0, 3 * US, US // 10):
        ends = Ends(depth=1)
        ends.there.receive(0, 64)
        ends.post(WROpcode.SEND, 8)
        ends.engine.run(when_ps)
        had = len(ends.here.cq.poll_cq(9)), len(ends.there.recv_cq.poll_cq(9))
        reset(ends)
        ends.run()
        assert (ends.here.cq.poll_cq(9), ends.there.recv_cq.poll_cq(9)) == ([], []), (when_ps, had)
        again(ends)  # with a queue of one: none is counted as outstanding


@pytest.mark.parametrize("operation", [WROpcode.RDMA_WRITE, WROpcode.RDMA_READ])
def test_the_peer_of_one_that_was_reset_runs_out_of_tries(operation: WROpcode) -> None:
    ends = Ends(length=1 << 20)
    fairness = Fairness()
    fairness.started(ends.here.qp, 0)
    ends.post(operation, SIZE, wr_id=1)
    ends.engine.run(4 * US)
    fairness.read(ends.engine.now_ps)
    taken = ends.here.qp.received_bytes
    ends.there.qp.modify(QPState.RESET)
    ends.post(operation, 8, wr_id=2)
    ends.run()
    assert statuses(ends) == [(1, WcStatus.RETRY_EXC_ERR), (2, WcStatus.WR_FLUSH_ERR)]
    fairness.read(ends.engine.now_ps)  # what it had taken stays taken
    window = fairness.window(ends.engine.now_ps)
    assert window is not None
    (more,) = window.delivered_bytes.values()
    on_the_way = 60 * 1024 if operation is WROpcode.RDMA_READ else 0  # a few hundred nanoseconds of a READ's answer
    assert 0 <= more <= on_the_way
    assert ends.here.qp.received_bytes == taken + more > 0
    assert ends.assembly.routes.floor_ps(ends.here.qp, SIZE, operation) > 0


def test_results_know_where_messages_went_before_the_reset() -> None:
    ends = Ends()
    routes, here = ends.assembly.routes, ends.here.qp
    floor_ps, path = routes.floor_ps(here, 64), routes.path(here)
    assert (floor_ps > 0, len(path)) == (True, 2)
    reset(ends)
    assert (here.destination, routes.floor_ps(here, 64), routes.path(here)) == ("h1", floor_ps, path)


def test_datagrams_of_one_that_was_reset_are_gone() -> None:
    ends = Ends(qp_type=QPType.UD)
    ends.there.receive(0, 2048)
    ah = AH(address=ends.there.context.address)
    where: dict[str, Any] = {"ah": ah, "remote_qpn": ends.there.qp.qp_num, "remote_qkey": QKEY}
    ends.post(WROpcode.SEND, 100, **where)
    ends.here.qp.modify(QPState.RESET)
    for state in (QPState.INIT, QPState.RTR, QPState.RTS):
        ends.here.qp.modify(state, QPAttr(qkey=QKEY))
    ends.run()
    assert (ends.here.cq.poll_cq(9), ends.there.recv_cq.poll_cq(9)) == ([], [])
    ends.post(WROpcode.SEND, 100, wr_id=2, **where)
    ends.run()
    assert statuses(ends) == [(2, WcStatus.SUCCESS)]
