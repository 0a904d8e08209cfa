"""What a queue pair does in each state, and what it may be told on its way from one to another."""

from __future__ import annotations

import pytest

from emu.errors import VerbsError
from emu.units import US
from emu.verbs import QPAttr, QPState, QPType, SendWR, WcStatus, WROpcode
from tests.verbs.ends import QKEY, Ends

SIZE = 1 << 19


def statuses(ends: Ends) -> list[tuple[int, WcStatus]]:
    return [(each.wr_id, each.status) for each in ends.here.cq.poll_cq(99)]


@pytest.mark.parametrize("qp_type", [QPType.RC, QPType.UC])
def test_a_draining_send_queue_ends_what_it_began_and_keeps_the_rest(qp_type: QPType) -> None:
    ends = Ends(length=1 << 20, qp_type=qp_type)
    ends.post(WROpcode.RDMA_WRITE, SIZE, wr_id=1)
    ends.post(WROpcode.RDMA_WRITE, 64, wr_id=2)
    ends.engine.run(3 * US)  # the first is on its way
    ends.post(WROpcode.RDMA_WRITE, 64, wr_id=3)  # in its post leg
    ends.here.qp.modify(QPState.SQD)
    ends.post(WROpcode.RDMA_WRITE, 64, wr_id=4)
    ends.run()
    assert statuses(ends) == [(1, WcStatus.SUCCESS)]
    ends.post(WROpcode.RDMA_WRITE, 64, wr_id=5)
    ends.run()
    assert statuses(ends) == []
    ends.here.qp.modify(QPState.RTS)
    ends.run()
    assert statuses(ends) == [(number, WcStatus.SUCCESS) for number in (2, 3, 4, 5)]


def test_what_waits_for_a_drained_send_queue_is_flushed() -> None:
    ends = Ends()
    ends.here.qp.modify(QPState.SQD)
    ends.post(WROpcode.RDMA_WRITE, 64, wr_id=1)
    ends.run()
    ends.post(WROpcode.RDMA_WRITE, 64, wr_id=2)
    ends.here.qp.modify(QPState.ERR)
    ends.run()
    assert statuses(ends) == [(1, WcStatus.WR_FLUSH_ERR), (2, WcStatus.WR_FLUSH_ERR)]


def test_numbers_run_on_through_a_drain() -> None:
    ends = Ends(first_psn=0xFFFFFE)
    for number in range(6):
        ends.there.receive(0, 64, wr_id=number)
    for number in range(3):
        ends.post(WROpcode.SEND, 64, wr_id=number)
        ends.here.qp.modify(QPState.SQD)
        ends.post(WROpcode.SEND, 32, wr_id=10 + number)
        ends.run()
        ends.here.qp.modify(QPState.RTS)
    ends.run()
    assert [number for number, _ in statuses(ends)] == [0, 10, 1, 11, 2, 12]
    assert [each.byte_len for each in ends.there.recv_cq.poll_cq(9)] == [64, 32] * 3


@pytest.mark.parametrize("state", [QPState.ERR, QPState.RESET])
def test_a_responder_in_error_stops_answering(state: QPState) -> None:
    ends = Ends(length=1 << 20)
    ends.post(WROpcode.RDMA_READ, SIZE)
    ends.engine.run(4 * US)
    ends.there.qp.modify(state)
    before = ends.fabric.nics["h0"].received
    ends.run()
    assert statuses(ends) == [(7, WcStatus.RETRY_EXC_ERR)]
    assert ends.fabric.nics["h0"].received - before < 60  # what the wire held


def test_a_refusal_leaves_though_the_responder_is_in_error_then() -> None:
    ends = Ends(length=1 << 20)
    ends.post(WROpcode.RDMA_READ, SIZE, wr_id=1)
    ends.post(WROpcode.RDMA_WRITE, 8, wr_id=2, rkey=1)
    ends.run()
    assert statuses(ends) == [(1, WcStatus.SUCCESS), (2, WcStatus.REM_ACCESS_ERR)]


@pytest.mark.parametrize("before", [QPState.RESET, QPState.INIT, QPState.RTR, QPState.RTS])
def test_posts_to_one_in_error_are_flushed_whatever_it_was_before(before: QPState) -> None:
    ends = Ends()
    qp = ends.here.qp
    qp.modify(QPState.RESET)
    there = QPAttr(dest=ends.there.context.address, dest_qp_num=ends.there.qp.qp_num)
    for state in (QPState.INIT, QPState.RTR, QPState.RTS):
        if before >= state:
            qp.modify(state, there)
    posted = []
    if before is not QPState.RESET:
        ends.here.receive(0, 64, wr_id=1)
        posted = [1]
    qp.modify(QPState.ERR)
    ends.here.receive(0, 64, wr_id=2)
    ends.post(WROpcode.RDMA_WRITE, 8, wr_id=3)
    ends.run()
    assert statuses(ends) == [(3, WcStatus.WR_FLUSH_ERR)]
    received = [(each.wr_id, each.status) for each in ends.here.recv_cq.poll_cq(9)]
    assert received == [(number, WcStatus.WR_FLUSH_ERR) for number in (*posted, 2)]  # in the order of posting
    qp.modify(QPState.RESET)
    assert qp.state is QPState.RESET


def test_the_rnr_timer_can_change_while_it_runs() -> None:
    took = []
    for code in (12, 16):  # 0.64 ms, 2.56 ms
        ends = Ends(attr=QPAttr(rnr_retry=1, min_rnr_timer=1))
        ends.there.qp.modify(QPState.RTS, QPAttr(min_rnr_timer=code))
        message = ends.here.qp.post_send(SendWR(wr_id=7, sge=ends.here.sge(0, 8), opcode=WROpcode.SEND))
        ends.run()
        assert statuses(ends) == [(7, WcStatus.RNR_RETRY_EXC_ERR)]
        took.append(message.completed_ps // (10 * US))
    assert took == [64, 256]


def test_tries_can_change_while_the_send_queue_drains() -> None:
    ends = Ends(attr=QPAttr(timeout=10, retry_cnt=7))
    ends.here.qp.modify(QPState.SQD)
    ends.here.qp.modify(QPState.SQD, QPAttr(retry_cnt=0, timeout=4))
    ends.here.qp.modify(QPState.RTS)
    ends.there.qp.modify(QPState.RESET)
    message = ends.here.qp.post_send(SendWR(wr_id=7, sge=ends.here.sge(0, 8)))
    ends.run()
    assert statuses(ends) == [(7, WcStatus.RETRY_EXC_ERR)]
    assert message.completed_ps < 100 * US


def test_a_datagrams_key_can_change() -> None:
    ends = Ends(qp_type=QPType.UD)
    ends.there.qp.modify(QPState.RTS, QPAttr(qkey=QKEY + 1))
    ends.there.receive(0, 100)
    ah = ends.here.pd.create_ah(ends.there.context.address)
    ends.post(WROpcode.SEND, 8, ah=ah, remote_qpn=ends.there.qp.qp_num, remote_qkey=QKEY + 1)
    ends.run()
    assert len(ends.there.recv_cq.poll_cq(9)) == 1


@pytest.mark.parametrize(
    "attr",
    [
        QPAttr(min_rnr_timer=32),
        QPAttr(path_mtu_bytes=512),
        QPAttr(sq_psn=5),
        QPAttr(dest_qp_num=1),
        QPAttr(retry_cnt=1),
        QPAttr(max_dest_rd_atomic=1),
    ],
    ids=str,
)
def test_what_cannot_change_any_more_is_refused(attr: QPAttr) -> None:
    ends = Ends()
    before = ends.here.qp.attr
    with pytest.raises(VerbsError):
        ends.here.qp.modify(QPState.RTS, attr)
    assert (ends.here.qp.attr, ends.here.qp.state) == (before, QPState.RTS)
    ends.here.qp.modify(QPState.RTS, QPAttr(sq_psn=0))  # as it is


@pytest.mark.parametrize(
    "attr",
    [
        *(QPAttr(min_rnr_timer=code) for code in (-1, 32, 99)),
        *(QPAttr(max_dest_rd_atomic=depth) for depth in (-3, 256)),
        *(QPAttr(max_rd_atomic=depth) for depth in (-3, 256)),
        *(QPAttr(path_mtu_bytes=size) for size in (0, -256, 128, 1000, 2048, 8192)),  # the fabric's is 1024
        *(QPAttr(timeout=code) for code in (-1, 32)),
        *(QPAttr(retry_cnt=tries) for tries in (-1, 8)),
        *(QPAttr(rnr_retry=tries) for tries in (-1, 8)),
        *(QPAttr(qkey=key) for key in (-1, 1 << 33)),
    ],
    ids=str,
)
def test_a_connect_that_is_refused_leaves_nothing_half_done(attr: QPAttr) -> None:
    ends = Ends()
    a, b = ends.here.pd.create_qp(ends.here.cq, priority=4), ends.there.pd.create_qp(ends.there.cq)
    with pytest.raises(VerbsError):
        a.connect(b, attr=attr)
    assert (a.state, b.state, a.peer, b.peer, b.priority) == (QPState.RESET, QPState.RESET, None, None, None)
    assert (a.attr, b.attr) == (QPAttr(), QPAttr())
    a.connect(b)
    assert (a.state, b.state) == (QPState.RTS, QPState.RTS)


def test_what_cannot_be_connected_is_left_as_it_is() -> None:
    ends = Ends()
    a, b = ends.here.pd.create_qp(ends.here.cq), ends.there.pd.create_qp(ends.there.cq)
    for psn in (-1, 1 << 24):
        with pytest.raises(VerbsError):
            a.connect(b, psn)
    with pytest.raises(VerbsError, match="its own peer"):
        a.connect(a)
    b.modify(QPState.ERR)
    with pytest.raises(VerbsError, match="ERR"):
        a.connect(b)
    assert (a.state, a.peer, b.peer) == (QPState.RESET, None, None)


@pytest.mark.parametrize("attr", [QPAttr(dest_qp_num=-1), QPAttr(dest_qp_num=1 << 24), QPAttr(sq_psn=-1)], ids=str)
def test_a_move_that_is_refused_changes_nothing(attr: QPAttr) -> None:
    ends = Ends()
    qp = ends.here.pd.create_qp(ends.here.cq)
    qp.modify(QPState.INIT)
    for wrong in (attr, QPAttr(dest=ends.there.context.address), None):
        with pytest.raises(VerbsError):
            qp.modify(QPState.RTR, wrong)
        assert (qp.state, qp.attr) == (QPState.INIT, QPAttr())


def test_states_may_be_given_as_numbers() -> None:
    ends = Ends()
    qp = ends.here.pd.create_qp(ends.here.cq, qp_type=QPType(4))
    for number in (1, 2, 3):
        qp.modify(number, QPAttr(qkey=5))  # type: ignore[arg-type]
    assert qp.state is QPState.RTS
    with pytest.raises(VerbsError, match="77 is not"):
        qp.modify(77)  # type: ignore[arg-type]
