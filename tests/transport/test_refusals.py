"""Which request a refusal is told to; and that copies and answers out of place bring nothing that they should not."""

from __future__ import annotations

import pytest

from emu import opcodes
from emu.frame import Frame
from emu.transport.answer import merge
from emu.transport.wc import WcStatus
from emu.transport.work import WROpcode
from tests.transport.machines import Machines

READ, WRITE, ADD = WROpcode.RDMA_READ, WROpcode.RDMA_WRITE, WROpcode.ATOMIC_FETCH_AND_ADD
BOTH = [False, True]


def statuses(machines: Machines) -> list[tuple[int, WcStatus]]:
    return [(wqe.wr_id, status) for wqe, status in machines.done]


@pytest.mark.parametrize("selective", BOTH)
@pytest.mark.parametrize("fetch", [READ, ADD])
def test_a_refusal_fails_what_it_names_and_not_the_fetch_before_it(fetch: WROpcode, selective: bool) -> None:
    """The oldest was told so, a READ that nobody had refused, though its answer was on the way."""
    machines = Machines(selective=selective)
    machines.post(fetch, size=8)
    machines.post(WRITE, b"evil", rkey=1)
    machines.post(WRITE, b"next")
    fetch_frame, bad, _ = machines.frames()
    (answer,) = machines.answers(fetch_frame)
    (nak,) = machines.answers(bad)
    assert machines.take(nak) == []  # what came before it is not all here
    machines.take(answer)
    assert statuses(machines) == [(0, WcStatus.SUCCESS), (1, WcStatus.REM_ACCESS_ERR), (2, WcStatus.WR_FLUSH_ERR)]


@pytest.mark.parametrize("selective", BOTH)
def test_a_fetch_whose_answer_was_lost_before_a_refusal_ends_by_its_tries(selective: bool) -> None:
    """The responder is in error and answers no more, so it fails too; what was refused is told so all the same."""
    machines = Machines(selective=selective, retry_cnt=2)
    machines.post(READ, size=8)
    machines.post(WRITE, b"evil", rkey=1)
    machines.post(WRITE, b"next")
    read, bad, _ = machines.frames()
    machines.answers(read)  # and lost
    (nak,) = machines.answers(bad)
    machines.take(nak)
    for _ in range(4):
        for frame in machines.frames():
            assert machines.answers(frame) == []
        if not machines.requester.failed:
            machines.done += machines.requester.on_deadline(machines.requester.deadline_ps)
    assert statuses(machines) == [(0, WcStatus.RETRY_EXC_ERR), (1, WcStatus.REM_ACCESS_ERR), (2, WcStatus.WR_FLUSH_ERR)]


@pytest.mark.parametrize("selective", BOTH)
def test_a_refusal_finishes_what_was_before_it(selective: bool) -> None:
    machines = Machines(selective=selective, ack_every_packets=64)
    for data in (b"one", b"two"):
        machines.post(WRITE, data)
    machines.post(WRITE, b"evil", rkey=1)
    *_, bad = [machines.answers(frame) for frame in machines.frames()]
    machines.take(bad[0])
    assert statuses(machines) == [(0, WcStatus.SUCCESS), (1, WcStatus.SUCCESS), (2, WcStatus.REM_ACCESS_ERR)]


def reading(machines: Machines, psn: int, size: int, offset: int) -> Frame:
    reth = (machines.target.addr + offset, machines.target.rkey, size)
    return Frame(machines.there, opcodes.READ_REQUEST, psn, ack_request=True, reth=reth)


@pytest.mark.parametrize(
    ("psn", "size", "offset"),
    [
        (2, 3000, 0),  # all of it under the number of its last packet: beyond the numbers it has
        (1, 3000, 0),
        (1, 1024, 0),  # bytes that another packet brought
        (0, 1024, 1024),
        (3, 0, 3072),  # nothing, under the number of the message behind it
        (0, 3001, 0),  # more than was asked for
        (0, 8, 4096),
    ],
)
def test_a_copy_of_a_read_is_answered_only_within_its_numbers(psn: int, size: int, offset: int) -> None:
    """Its responses took the numbers of later packets, which the requester believed."""
    machines = Machines()
    machines.post(READ, size=3000)
    machines.post(WRITE, b"behind", offset=9000)
    for frame in machines.frames():
        machines.answers(frame)
    assert machines.answers(reading(machines, psn, size, offset)) == []
    assert machines.responder._expected == 4


@pytest.mark.parametrize(
    "order",
    [
        (opcodes.READ_RESPONSE_LAST, 0, 0),
        (opcodes.READ_RESPONSE_MIDDLE, 0, 0),
        (opcodes.READ_RESPONSE_FIRST, 1, 1),
        (opcodes.READ_RESPONSE_MIDDLE, 2, 2),
        (opcodes.READ_RESPONSE_ONLY, 0, 0),
        (opcodes.READ_RESPONSE_LAST, 1, 1),
    ],
)
def test_a_response_of_another_place_is_a_bad_response(order: tuple[int, int, int]) -> None:
    opcode, psn, before = order
    machines = Machines()
    machines.post(READ, size=3072)
    (request,) = machines.frames()
    answers = machines.answers(request)
    for answer in answers[:before]:
        machines.take(answer)
    wrong = Frame(machines.back, opcode, psn, bytes(1024), aeth=(0x1F, 1))
    wrong.carries_data = True
    machines.take(wrong)
    assert statuses(machines) == [(0, WcStatus.BAD_RESP_ERR)]
    assert not any(machines.sinks[0][1024 * before :])


def test_an_rnr_nak_that_waits_to_leave_is_not_hidden_by_a_copys_acknowledgement() -> None:
    """It is said once: hidden, the requester waited for its timeout, or for ever with a timeout of 0."""
    machines = Machines()
    machines.post(WRITE, b"data")
    machines.post(WROpcode.SEND, b"text")
    first, second = machines.frames()
    machines.answer(first)
    refused, again = machines.answer(second), machines.answer(first)
    assert (refused, again) == ((1, 0x2C, 1), (0, 0x1F, 1))
    assert isinstance(refused, tuple) and isinstance(again, tuple)
    assert merge(refused, again) == refused
