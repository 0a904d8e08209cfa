"""Selective repeat: only what is missing is sent again, the rest waits its turn, and what is believed may be wrong."""

from __future__ import annotations

from typing import Any

import pytest

from emu import opcodes
from emu.frame import Frame
from emu.transport.answer import ReadAnswer
from emu.transport.syndrome import RNR_NAK
from emu.transport.wc import WcStatus
from emu.transport.work import WROpcode
from tests.transport.machines import Machines

MTU = 256
READ, WRITE, SEND, ADD = (
    WROpcode.RDMA_READ,
    WROpcode.RDMA_WRITE,
    WROpcode.SEND,
    WROpcode.ATOMIC_FETCH_AND_ADD,
)


def machines(first_psn: int = 0, **more: Any) -> Machines:
    return Machines(mtu=MTU, first_psn=first_psn, selective=True, **more)


def deliver(both: Machines, frames: list[Frame], *lost: int) -> list[Frame]:
    """Hand frames over, but for some by their PSN; the requester takes all answers, which are returned."""
    answers = [answer for frame in frames if frame.psn not in lost for answer in both.answers(frame)]
    for answer in answers:
        both.take(answer)
    return answers


@pytest.mark.parametrize("opcode", [WRITE, SEND])
@pytest.mark.parametrize("first", [0, 0xFFFFF0])
def test_what_is_lost_is_all_that_is_sent_again(opcode: WROpcode, first: int) -> None:
    both = machines(first)
    both.receive(100 * MTU)
    data = bytes(range(256)) * 40
    both.post(opcode, data)
    lost = [first + 3 & 0xFFFFFF, first + 17 & 0xFFFFFF, first + 18 & 0xFFFFFF]
    answers = deliver(both, both.frames(), *lost)
    assert both.done == []
    assert both.whole == 0
    naks = [answer for answer in answers if answer.aeth is not None and answer.aeth[0] == 0x60]
    assert {nak.psn for nak in naks} == {lost[0]}  # the one expected
    came = [nak.aeth[1] for nak in naks if nak.aeth is not None]
    assert came == [first + place & 0xFFFFFF for place in range(4, 40) if place not in (17, 18)]
    again = both.frames()
    assert [frame.psn for frame in again] == lost
    assert all(frame.ack_request for frame in again)
    deliver(both, again)
    assert [status for _, status in both.done] == [WcStatus.SUCCESS]
    assert both.whole == 1
    assert bytes(both.buffers[0] if opcode is SEND else both.target.buffer)[: len(data)] == data
    assert not both.requester.can_send()
    assert both.requester.deadline_ps == -1


def test_a_loss_is_noticed_once_and_what_is_lost_again_waits_for_the_timeout() -> None:
    both = machines(retry_cnt=1)
    both.post(WRITE, bytes(20 * MTU))
    deliver(both, both.frames(), 5)
    (again,) = both.frames()  # and lost again
    both.post(WRITE, bytes(3 * MTU))
    deliver(both, both.frames())
    assert not both.requester.can_send()
    both.requester.on_deadline(both.requester.deadline_ps)
    assert [frame.psn for frame in both.frames()] == [again.psn] == [5]
    assert both.requester.on_deadline(both.requester.deadline_ps)[0][1] is WcStatus.RETRY_EXC_ERR


def test_order_is_kept_and_messages_end_in_it() -> None:
    both = machines()
    both.receive(MTU, count=2)
    both.post(SEND, b"one")
    both.post(ADD, offset=0, compare_add=1)
    both.post(SEND, b"two")
    both.post(ADD, offset=0, compare_add=1)
    before = int.from_bytes(both.target.buffer[:8], "little")
    frames = both.frames()
    deliver(both, frames[1:])
    assert both.received == []  # all of them wait for the first one
    assert int.from_bytes(both.target.buffer[:8], "little") == before
    deliver(both, both.frames())
    assert [each.byte_len for each in both.received] == [3, 3]
    assert [bytes(buffer[:3]) for buffer in both.buffers] == [b"one", b"two"]
    assert [wqe.wr_id for wqe, _ in both.done] == [0, 1, 2, 3]
    assert [int.from_bytes(both.sinks[number], "little") for number in (1, 3)] == [before, before + 1]


def test_no_more_wait_than_the_window_and_nobodys_are_forgotten() -> None:
    both = machines(window_packets=4)
    both.post(WRITE, bytes(20 * MTU))
    frames = both.frames()
    assert len(frames) == 4
    assert len(deliver(both, frames, 0)) == 3
    strangers = [Frame(both.there, opcodes.WRITE_MIDDLE, psn, bytes(MTU)) for psn in range(10, 40)]
    answered = [both.answer(frame) is not None for frame in strangers]
    assert answered == [True] + [False] * 29
    both.exchange()
    assert [status for _, status in both.done] == [WcStatus.SUCCESS]


def test_what_had_to_be_dropped_after_all_is_sent_again() -> None:
    """The second SEND waits, is said to have come, and then finds no receive."""
    both = machines(min_rnr_timer=1)
    both.receive(MTU)
    both.post(SEND, b"one")
    both.post(SEND, b"two")
    one, two = both.frames()
    deliver(both, [two])
    answers = deliver(both, both.frames())  # the first one, again
    assert any(answer.aeth is not None and answer.aeth[0] == RNR_NAK | 1 for answer in answers)
    assert len(both.done) == 1
    assert not both.requester.can_send()
    both.receive(MTU)
    both.requester.on_deadline(both.requester.deadline_ps)
    again = both.frames()
    assert [frame.psn for frame in again] == [two.psn]
    deliver(both, again)
    assert [status for _, status in both.done] == [WcStatus.SUCCESS] * 2
    assert one.psn == 0


def test_a_wrong_belief_ends_with_the_timeout() -> None:
    """The RNR NAK itself is lost: the requester thinks that the peer has the packet."""
    both = machines(min_rnr_timer=1)
    both.receive(MTU)
    both.post(SEND, b"one")
    both.post(SEND, b"two")
    _, two = both.frames()
    deliver(both, [two])
    (one,) = both.frames()
    both.take(both.answers(one)[0])  # the ACK; what follows is lost
    both.receive(MTU)
    assert not both.requester.can_send()
    both.requester.on_deadline(both.requester.deadline_ps)
    deliver(both, both.frames())
    assert [status for _, status in both.done] == [WcStatus.SUCCESS] * 2


@pytest.mark.parametrize("lost", [(2,), (2, 3, 9), (0, 5, 6), (0, 1, 2, 3)])
def test_only_lost_responses_are_asked_for_again(lost: tuple[int, ...]) -> None:
    both = machines()
    both.post(READ, size=12 * MTU)
    (request,) = both.frames()
    for answer in both.answers(request):
        if answer.psn not in lost:
            both.take(answer)
    again = both.frames()
    runs = [place for place in lost if place - 1 not in lost]
    assert [frame.psn for frame in again] == runs
    asked = [
        (frame.reth[0] - both.target.addr) // MTU + piece
        for frame in again
        if frame.reth
        for piece in range(frame.reth[2] // MTU)
    ]
    assert asked == list(lost)
    deliver(both, again)
    assert [status for _, status in both.done] == [WcStatus.SUCCESS]
    assert both.sinks[0] == both.target.buffer[: 12 * MTU]


def test_no_more_is_asked_for_again_at_a_time_than_the_peer_answers() -> None:
    both = machines(depth=2, dest_depth=2)
    both.post(READ, size=20 * MTU)
    (request,) = both.frames()
    for answer in both.answers(request):
        if answer.psn % 2:
            both.take(answer)
    first = both.frames()
    assert [frame.psn for frame in first] == [0, 2]
    deliver(both, first)
    assert [frame.psn for frame in both.frames()] == [4, 6]


def test_a_lost_request_is_one_whole_request_again() -> None:
    both = machines()
    both.post(WRITE, bytes(MTU))
    both.post(READ, size=5 * MTU, offset=4096)
    both.post(WRITE, bytes(MTU))
    frames = both.frames()
    deliver(both, frames, frames[1].psn)
    again = both.frames()
    assert [(frame.psn, frame.reth) for frame in again] == [(1, frames[1].reth)]
    answer = both.answer(again[0])
    assert isinstance(answer, ReadAnswer)
    assert answer.packets == 5
