"""A completion queue that is too small: it and its queue pairs end in error, whoever asks is told, the run goes on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from emu.errors import VerbsError
from emu.verbs import AH, CQ, QP, QPAttr, QPState, QPType, RecvWR, WcStatus, WROpcode
from tests.verbs.ends import QKEY, Ends


def ends_with(here: CQ | None = None, there: CQ | None = None, qp_type: QPType = QPType.RC, srq: bool = False) -> Ends:
    """Two hosts, whose queue pairs complete sends `here` and receives `there`."""
    ends = Ends(qp_type=qp_type)
    for end, send_cq, recv_cq in ((ends.here, here, None), (ends.there, None, there)):
        shared = end.pd.create_srq() if srq else None
        end.cq, end.recv_cq = send_cq or end.cq, recv_cq or end.recv_cq
        end.qp = end.pd.create_qp(end.cq, recv_cq=end.recv_cq, qp_type=qp_type, srq=shared)
        for number in range(20):
            wr = RecvWR(wr_id=number, sg_list=(end.sge(0, 100),))
            if shared is not None:
                shared.post_recv(wr)
            elif number == 0:
                end.qp.modify(QPState.INIT, QPAttr(qkey=QKEY))
                end.qp.post_recv(wr)
            else:
                end.qp.post_recv(wr)
    if qp_type is QPType.UD:
        for end in (ends.here, ends.there):
            for state in (QPState.INIT, QPState.RTR, QPState.RTS):
                end.qp.modify(state, QPAttr(qkey=QKEY))
    else:
        ends.here.qp.connect(ends.there.qp)
    return ends


def send(ends: Ends, count: int) -> None:
    ah, there = AH(address=ends.there.context.address), ends.there.qp
    for _ in range(count):
        ends.post(WROpcode.SEND, 10, ah=ah, remote_qpn=there.qp_num, remote_qkey=QKEY)


def check_overrun(cq: CQ, lost: int) -> None:
    assert (cq.overran, cq.lost) == (True, lost)
    for ask in (cq.poll_cq, cq.check, cq.req_notify, lambda: cq.next().send(None)):
        with pytest.raises(VerbsError, match=rf"queue of {cq.cqe} entries overran, {lost} lost: create it larger"):
            ask()


@pytest.mark.parametrize("qp_type", [QPType.RC, QPType.UC, QPType.UD])
def test_of_the_sender(qp_type: QPType) -> None:
    ends = ends_with(here=CQ(3), qp_type=qp_type)
    send(ends, 5)
    ends.run()
    check_overrun(ends.here.cq, 2)
    assert ends.here.qp.state is QPState.ERR
    flushed = [each.status for each in ends.here.recv_cq.poll_cq(99)]
    assert flushed == [WcStatus.WR_FLUSH_ERR] * 20
    assert len(ends.there.recv_cq.poll_cq(99)) == 5  # the other end knows nothing of it
    assert ends.there.qp.state is QPState.RTS
    send(ends, 1)
    ends.run()
    assert ends.here.cq.lost == 3


@pytest.mark.parametrize("srq", [False, True])
@pytest.mark.parametrize("qp_type", [QPType.RC, QPType.UC, QPType.UD])
def test_of_the_receiver(qp_type: QPType, srq: bool) -> None:
    ends = ends_with(there=CQ(3), qp_type=qp_type, srq=srq)
    for _ in range(6):
        send(ends, 1)
        ends.run()
    taken = 4 if srq else 20  # what is left of an SRQ stays there for others
    check_overrun(ends.there.recv_cq, taken - 3)
    assert ends.there.qp.state is QPState.ERR
    statuses = [each.status for each in ends.here.cq.poll_cq(99)]
    if qp_type is QPType.RC:
        assert statuses == [*[WcStatus.SUCCESS] * 4, WcStatus.RETRY_EXC_ERR, WcStatus.WR_FLUSH_ERR]
    else:
        assert statuses == [WcStatus.SUCCESS] * 6


def test_every_queue_pair_of_it_breaks_and_no_other_may_use_it() -> None:
    ends = Ends()
    here, cq = ends.here, CQ(1)
    first, second, third = (here.pd.create_qp(cq) for _ in range(3))
    other = here.pd.create_qp(here.cq, recv_cq=CQ(1))
    for qp in (first, second, other):
        qp.connect(ends.there.pd.create_qp(ends.there.cq))
    here.qp = first
    ends.post(WROpcode.RDMA_WRITE, 1)
    ends.post(WROpcode.RDMA_WRITE, 1)
    ends.run()
    assert [qp.state for qp in (first, second, third)] == [QPState.ERR, QPState.ERR, QPState.RESET]
    assert other.state is QPState.RTS
    first.modify(QPState.RESET)
    refused: list[Callable[[], object]] = [
        *(lambda qp=qp: qp.modify(QPState.INIT) for qp in (first, third)),
        lambda: here.pd.create_qp(cq),
        lambda: here.pd.create_qp(here.cq, recv_cq=cq),
    ]
    for each in refused:
        with pytest.raises(VerbsError, match="overran"):
            each()


@pytest.mark.parametrize("solicited_only", [False, True])
def test_whoever_waits_for_it_hears_of_it(solicited_only: bool) -> None:
    ends = ends_with(there=CQ(2))
    heard: list[str] = []

    async def poll(qp: QP, cq: CQ) -> None:
        await cq.req_notify(solicited_only=solicited_only)
        await ends.engine.sleep(10**9)
        try:
            cq.poll_cq()
        except VerbsError as error:
            heard.append(str(error))
        assert qp.state is QPState.ERR

    ends.engine.spawn(poll(ends.there.qp, ends.there.recv_cq))
    send(ends, 3)
    ends.run()
    assert len(heard) == 1
    assert "overran" in heard[0]


def test_one_that_is_just_large_enough_does_not() -> None:
    ends = ends_with(here=CQ(5))
    send(ends, 5)
    ends.run()
    assert [each.status for each in ends.here.cq.poll_cq(99)] == [WcStatus.SUCCESS] * 5
    with pytest.raises(VerbsError, match="at least 1"):
        CQ(0)
