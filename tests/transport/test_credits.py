"""End-to-end credits: the requester sends no more messages than the peer has receives, but for one that asks."""

from __future__ import annotations

import pytest

from emu.transport.receive_queue import ReceiveQueue
from emu.transport.received import ResponderConfig
from emu.transport.responder import Responder
from emu.transport.syndrome import credit_code
from emu.transport.wc import WcStatus
from emu.transport.work import WROpcode
from tests.transport.machines import NO_CREDIT, Machines

SEND, WRITE = WROpcode.SEND, WROpcode.RDMA_WRITE


def credited(code: int, msn: int, sends: int = 10) -> Machines:
    """The first message is acknowledged, with such credits; the rest wait to be sent."""
    machines = Machines(credits=True)
    machines.post(WRITE, b"first")
    machines.frames()
    machines.ack(0, code, msn)
    for _ in range(sends):
        machines.post(SEND, b"message")
    return machines


@pytest.mark.parametrize(("code", "credits"), [(1, 1), (2, 2), (4, 4), (5, 6)])
def test_as_many_messages_go_as_there_are_credits(code: int, credits: int) -> None:
    """Limit: MSN + credits; the message after the acknowledged one is number 2."""
    machines = credited(code, msn=1)
    assert [frame.psn for frame in machines.frames()] == list(range(1, 1 + credits))


def test_one_goes_beyond_to_ask_when_all_before_it_is_acknowledged() -> None:
    machines = credited(0, msn=1)
    assert [frame.psn for frame in machines.frames()] == [1]
    assert [status for _, status in machines.ack(1, 3, msn=2)] == [WcStatus.SUCCESS]
    assert [frame.psn for frame in machines.frames()] == [2, 3, 4]
    machines.ack(4, 0, msn=5)
    assert [frame.psn for frame in machines.frames()] == [5]
    machines.ack(4, 1, msn=5)  # the same message number, and a receive was posted: it has the one that asks
    assert machines.frames() == []
    machines.ack(5, 0, msn=6)
    assert [frame.psn for frame in machines.frames()] == [6]


def test_what_takes_no_receive_needs_no_credit() -> None:
    machines = credited(0, msn=1, sends=0)
    for opcode in (WRITE, WROpcode.RDMA_READ, WROpcode.ATOMIC_FETCH_AND_ADD, SEND, WRITE):
        machines.post(opcode, b"" if opcode is WROpcode.RDMA_READ else b"data", size=4)
    # The SEND is not the oldest unacknowledged, so it may not ask; what is behind it keeps its place.
    assert [frame.psn for frame in machines.frames()] == [1, 2, 3]


def test_a_write_with_immediate_needs_one() -> None:
    machines = credited(0, msn=1, sends=1)
    machines.post(WROpcode.RDMA_WRITE_WITH_IMM, b"data")
    assert [frame.psn for frame in machines.frames()] == [1]


def test_code_31_lifts_the_limit() -> None:
    machines = credited(1, msn=1)
    assert len(machines.frames()) == 1
    machines.ack(1, NO_CREDIT, msn=2)
    assert len(machines.frames()) == 9


def test_who_does_not_heed_credits_sends_all() -> None:
    machines = Machines()
    for _ in range(5):
        machines.post(SEND, b"message")
    machines.ack(0, 0)
    assert len(machines.frames()) == 5


def test_an_older_acknowledgement_takes_no_credit_back() -> None:
    machines = credited(4, msn=1)
    machines.ack(0, 1, msn=1)
    assert len(machines.frames()) == 4


def test_a_refused_asker_is_sent_again_after_its_wait() -> None:
    machines = credited(0, msn=1, sends=2)
    (asker,) = machines.frames()
    machines.ack(asker.psn, 0x2C, msn=1)
    assert machines.frames() == []
    machines.requester.on_deadline(machines.requester.deadline_ps)
    assert [frame.psn for frame in machines.frames()] == [1]


def test_the_largest_code_that_grants_no_more_is_sent() -> None:
    assert [credit_code(receives) for receives in (0, 1, 4, 5, 6, 7, 8, 40_000)] == [0, 1, 4, 4, 5, 5, 6, 30]


def test_a_shared_queue_says_nothing() -> None:
    machines = Machines()
    machines.post(WRITE, b"data")
    config = ResponderConfig(path_mtu_bytes=1024, end_to_end_credits=True)
    for shared in (False, True):
        responder = Responder(machines.memory, config, ReceiveQueue(9, is_shared=shared))
        machines.requester.on_deadline(0)
        (frame,) = machines.frames()
        assert responder.on_request(frame) == (0, NO_CREDIT if shared else 0, 1)


@pytest.mark.parametrize("receives", [1, 2, 3, 7])
def test_with_credits_no_message_but_the_asker_finds_no_receive(receives: int) -> None:
    """Each round the peer has so many receives; only the one that asks may be refused."""
    machines = Machines(credits=True)
    machines.receive(64, 1)
    for _ in range(40):
        machines.post(SEND, b"message")
    first = machines.frames(limit=1)[0]  # before it the peer has said nothing, and all could go
    for answer in machines.answers(first):
        machines.take(answer)
    refused = 0
    while len(machines.done) < 40:
        while frames := machines.frames():
            for frame in frames:
                for answer in machines.answers(frame):
                    assert answer.aeth is not None
                    refused += answer.aeth[0] >> 5 == 1
                    machines.take(answer)
        machines.receive(64, receives)
        machines.requester.on_deadline(0)
    assert [wqe.wr_id for wqe, _ in machines.done] == list(range(40))
    assert 0 < refused <= -(-39 // receives) + 1
