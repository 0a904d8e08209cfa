"""How long the requester waits, how often it tries again, and that every wait ends."""

from __future__ import annotations

import pytest

from emu.transport.requester_config import ACK_TIMEOUT_UNIT_PS
from emu.transport.syndrome import RNR_TIMER_PS
from emu.transport.wc import WcStatus
from emu.transport.work import WROpcode
from emu.units import MS, US
from tests.transport.machines import Machines

RNR_NAK = 0x20


@pytest.mark.parametrize(
    ("code", "wait_ps"), [(0, 655_360 * US), (1, 10 * US), (12, 640 * US), (24, 40_960 * US), (31, 491_520 * US)]
)
def test_a_peer_without_a_receive_is_given_the_time_it_asks_for(code: int, wait_ps: int) -> None:
    machines = Machines(min_rnr_timer=code)
    machines.post(WROpcode.SEND, b"early")
    (frame,) = machines.frames(7)
    (answer,) = machines.answers(frame)
    assert answer.aeth == (RNR_NAK | code, 0)
    machines.take(answer, now_ps=1000)
    assert machines.requester.deadline_ps == 1000 + wait_ps
    assert not machines.requester.can_send()
    machines.receive(16)
    assert machines.requester.on_deadline(machines.requester.deadline_ps) == []
    machines.exchange()
    assert [status for _, status in machines.done] == [WcStatus.SUCCESS]
    assert bytes(machines.buffers[0][:5]) == b"early"
    assert (machines.whole, len(machines.received)) == (1, 1)


def test_there_are_32_such_times() -> None:
    assert len(RNR_TIMER_PS) == 32
    assert list(RNR_TIMER_PS[1:]) == sorted(RNR_TIMER_PS[1:])
    assert RNR_TIMER_PS[0] > RNR_TIMER_PS[31]


@pytest.mark.parametrize("rnr_retry", [0, 1, 6])
def test_rnr_retry_is_how_often_it_tries_again(rnr_retry: int) -> None:
    machines = Machines(rnr_retry=rnr_retry, retry_cnt=0)
    machines.post(WROpcode.SEND, b"early")
    machines.post(WROpcode.SEND, b"later")
    for _ in range(rnr_retry + 1):
        assert machines.done == []
        machines.exchange()
        machines.requester.on_deadline(machines.requester.deadline_ps)
    assert [status for _, status in machines.done] == [WcStatus.RNR_RETRY_EXC_ERR, WcStatus.WR_FLUSH_ERR]


def test_rnr_retry_7_is_endless() -> None:
    machines = Machines(rnr_retry=7, retry_cnt=0)
    machines.post(WROpcode.SEND, b"early")
    for _ in range(1000):
        machines.exchange()
        machines.requester.on_deadline(machines.requester.deadline_ps)
    machines.receive(16)
    machines.exchange()
    assert [status for _, status in machines.done] == [WcStatus.SUCCESS]


def test_the_last_packet_of_a_write_with_immediate_may_find_no_receive() -> None:
    """It is refused and nothing of it written; the packets before it are not sent again."""
    machines = Machines()
    before = bytes(machines.target.buffer)
    machines.post(WROpcode.RDMA_WRITE_WITH_IMM, b"\xa5" * 2500, imm_data=0xFFFFFFFF)
    machines.exchange()
    assert machines.target.buffer == b"\xa5" * 2048 + before[2048:]
    assert not machines.requester.can_send()
    machines.receive(0)
    machines.requester.on_deadline(machines.requester.deadline_ps)
    assert [frame.psn for frame in machines.frames(limit=1)] == [2]
    machines.requester.on_deadline(0)
    machines.exchange()
    assert machines.target.buffer == b"\xa5" * 2500 + before[2500:]
    (received,) = machines.received
    assert (received.byte_len, received.imm_data, received.is_write) == (2500, 0xFFFFFFFF, True)


def test_a_late_copy_that_is_taken_ends_the_wait() -> None:
    """Nothing is outstanding then: to wait on would be to wait for ever."""
    machines = Machines()
    machines.post(WROpcode.SEND, b"early")
    (frame,) = machines.frames()
    (refusal,) = machines.answers(frame)
    machines.take(refusal)
    machines.receive(16)
    (ack,) = machines.answers(frame)
    assert [status for _, status in machines.take(ack)] == [WcStatus.SUCCESS]
    assert machines.requester.deadline_ps == -1
    machines.post(WROpcode.RDMA_WRITE, b"next")
    machines.exchange()
    assert len(machines.done) == 2


def test_a_copy_of_the_refusal_neither_lengthens_the_wait_nor_costs_a_try() -> None:
    machines = Machines(rnr_retry=1)
    machines.post(WROpcode.SEND, b"early")
    (frame,) = machines.frames()
    (refusal,) = machines.answers(frame)
    machines.take(refusal, now_ps=5)
    deadline_ps = machines.requester.deadline_ps
    assert machines.take(refusal, now_ps=9) == []
    assert machines.requester.deadline_ps == deadline_ps


def test_timeout_14_is_67_ms_and_0_never_fires() -> None:
    for code, wait_ps in ((14, 67_108_864_000), (1, 8_192_000), (31, ACK_TIMEOUT_UNIT_PS * 2**31)):
        machines = Machines(ack_timeout_code=code)
        machines.post(WROpcode.RDMA_WRITE, b"data")
        machines.frames(now_ps=3 * MS)
        assert machines.requester.deadline_ps == 3 * MS + wait_ps
    machines = Machines(ack_timeout_code=0)
    machines.post(WROpcode.RDMA_WRITE, b"data")
    machines.frames(now_ps=3 * MS)
    assert machines.requester.deadline_ps == -1


def test_progress_restarts_the_timer_and_nothing_else_does() -> None:
    machines = Machines()
    wait_ps = machines.requester._timeout_ps
    for _ in range(3):
        machines.post(WROpcode.RDMA_WRITE, b"data")
    machines.frames(now_ps=MS)
    assert machines.requester.deadline_ps == MS + wait_ps
    machines.ack(0, msn=1, now_ps=5 * MS)
    assert machines.requester.deadline_ps == 5 * MS + wait_ps
    machines.ack(0, msn=1, now_ps=6 * MS)
    machines.post(WROpcode.RDMA_WRITE, b"more")
    machines.frames(now_ps=7 * MS)
    assert machines.requester.deadline_ps == 5 * MS + wait_ps
    machines.ack(3, msn=4, now_ps=8 * MS)
    assert machines.requester.deadline_ps == -1


@pytest.mark.parametrize("opcode", [WROpcode.RDMA_WRITE, WROpcode.RDMA_READ, WROpcode.ATOMIC_FETCH_AND_ADD])
def test_retry_cnt_2_means_three_tries(opcode: WROpcode) -> None:
    machines = Machines(retry_cnt=2)
    for _ in range(2):
        machines.post(opcode, b"data" if opcode is WROpcode.RDMA_WRITE else b"", size=4)
    tries = 0
    while not machines.done and tries < 9:
        assert [frame.psn for frame in machines.frames()] == [0, 1]
        tries += 1
        machines.done += machines.requester.on_deadline(machines.requester.deadline_ps)
    assert tries == 3
    assert [status for _, status in machines.done] == [WcStatus.RETRY_EXC_ERR, WcStatus.WR_FLUSH_ERR]


def test_what_is_about_to_be_sent_again_is_not_asked_for_twice() -> None:
    """A NAK behind the timeout that went back already, or its copy, costs no try."""
    machines = Machines(retry_cnt=1)
    machines.post(WROpcode.RDMA_WRITE, bytes(3000))
    machines.frames()
    machines.requester.on_deadline(0)
    for _ in range(3):
        assert machines.ack(0, 0x60) == []
    machines.exchange()
    assert [status for _, status in machines.done] == [WcStatus.SUCCESS]


@pytest.mark.parametrize("syndrome", [0x60, 0x61, 0x62, 0x63, 0x2C])
def test_a_refusal_of_what_was_taken_since_is_a_ghost(syndrome: int) -> None:
    machines = Machines(retry_cnt=0)
    machines.post(WROpcode.RDMA_WRITE, bytes(3000))
    machines.frames()
    machines.ack(1)
    assert machines.ack(1, syndrome) == []
    assert not machines.requester.failed
    assert machines.frames() == []
    assert [status for _, status in machines.ack(2, msn=1)] == [WcStatus.SUCCESS]
