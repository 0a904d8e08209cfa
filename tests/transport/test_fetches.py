"""READs and atomics: how many may be outstanding, what is lost on the way back, duplicates, fences."""

from __future__ import annotations

import pytest

from emu import opcodes
from emu.frame import Frame
from emu.transport.answer import ReadAnswer
from emu.transport.wc import WcStatus
from emu.transport.work import SendFlags, WROpcode
from tests.transport.machines import Machines

READ, SWAP, ADD = WROpcode.RDMA_READ, WROpcode.ATOMIC_CMP_AND_SWP, WROpcode.ATOMIC_FETCH_AND_ADD
WORD = 2**64
FIRST, MIDDLE = opcodes.READ_RESPONSE_FIRST, opcodes.READ_RESPONSE_MIDDLE
LAST, ONLY = opcodes.READ_RESPONSE_LAST, opcodes.READ_RESPONSE_ONLY


def value_at(machines: Machines, offset: int) -> int:
    return int.from_bytes(machines.target.buffer[offset : offset + 8], "little")


def put(machines: Machines, offset: int, value: int) -> None:
    machines.target.buffer[offset : offset + 8] = value.to_bytes(8, "little")


@pytest.mark.parametrize("opcode", [READ, ADD])
def test_a_fifth_fetch_beyond_a_depth_of_four_waits(opcode: WROpcode) -> None:
    machines = Machines(depth=4)
    for _ in range(6):
        machines.post(opcode, size=8)
    machines.post(WROpcode.RDMA_WRITE, b"behind them")
    first = machines.frames()
    assert [frame.psn for frame in first] == [0, 1, 2, 3]
    for number, frame in enumerate(first):
        for answer in machines.answers(frame):
            machines.take(answer)
        assert [each.psn for each in machines.frames()] == ([4], [5, 6], [], [])[number]


def test_a_read_beyond_what_the_responder_holds_is_refused() -> None:
    machines = Machines(depth=16, dest_depth=4)
    for _ in range(5):
        machines.post(READ, size=4000)
    requests = machines.frames()
    held = [machines.answer(frame) for frame in requests]
    assert held[4] == (16, 0x61, 4)
    assert machines.responder.failed
    assert [answer.msn for answer in held[:4] if isinstance(answer, ReadAnswer)] == [1, 2, 3, 4]


def test_a_read_that_was_answered_makes_room() -> None:
    machines = Machines(depth=16, dest_depth=4)
    for _ in range(5):
        machines.post(READ, size=4000)
    requests = machines.frames()
    assert [len(machines.answers(frame)) for frame in requests] == [4] * 5


@pytest.mark.parametrize("lost", [0, 1, 2, 3])
def test_a_lost_response_is_asked_for_again_from_there(lost: int) -> None:
    machines = Machines(first_psn=0xFFFFFE)
    machines.post(READ, size=3500, offset=100)
    (request,) = machines.frames()
    answers = machines.answers(request)
    for number, answer in enumerate(answers):
        if number != lost:
            machines.take(answer)
    if lost == 3:  # nothing behind it tells: the time must run out
        assert not machines.requester.can_send()
        machines.requester.on_deadline(0)
    (again,) = machines.frames()
    assert again.psn == (0xFFFFFE + lost) & 0xFFFFFF
    assert again.reth == (machines.target.addr + 100 + 1024 * lost, machines.target.rkey, 3500 - 1024 * lost)
    rest = machines.answers(again)
    assert [answer.opcode for answer in rest] == ([FIRST, *[MIDDLE] * (2 - lost), LAST] if lost < 3 else [ONLY])
    assert all(answer.aeth is None or answer.aeth[1] == 1 for answer in rest)
    for answer in rest:
        machines.take(answer)
    assert [status for _, status in machines.done] == [WcStatus.SUCCESS]
    assert machines.sinks[0] == machines.target.buffer[100:3600]


@pytest.mark.parametrize("asked_after", [1, 4])
def test_a_gap_in_responses_is_asked_for_once(asked_after: int) -> None:
    """Also when what was asked for first is still coming in behind the second request."""
    machines = Machines(retry_cnt=1)
    machines.post(READ, size=5000)
    (request,) = machines.frames()
    _, *rest = machines.answers(request)
    for answer in rest[:asked_after]:
        machines.take(answer)
    (again,) = machines.frames()
    assert again.psn == 0
    for answer in rest[asked_after:]:
        machines.take(answer)
    assert machines.frames() == []
    for answer in machines.answers(again):
        machines.take(answer)
    assert [status for _, status in machines.done] == [WcStatus.SUCCESS]


@pytest.mark.parametrize("goes_back_first", [False, True])
def test_an_acknowledgement_of_what_is_behind_a_read_does_not_finish_it(goes_back_first: bool) -> None:
    """Its answer is lost; the acknowledgement may even come after the timeout has gone back."""
    machines = Machines()
    machines.post(READ, size=2048)
    machines.post(WROpcode.RDMA_WRITE, b"behind", offset=4096)
    read, write = machines.frames()
    machines.answers(read)
    (ack,) = machines.answers(write)
    if goes_back_first:
        machines.requester.on_deadline(0)
    assert machines.take(ack) == []
    assert [frame.psn for frame in machines.frames(limit=1)] == [0]
    machines.requester.on_deadline(0)
    machines.exchange()
    assert [(wqe.wr_id, status) for wqe, status in machines.done] == [(0, WcStatus.SUCCESS), (1, WcStatus.SUCCESS)]
    assert machines.sinks[0] == machines.target.buffer[:2048]
    assert machines.whole == 1


def test_a_nak_behind_a_lost_answer_costs_one_try() -> None:
    machines = Machines(retry_cnt=1)
    machines.post(READ, size=100)
    for _ in range(2):
        machines.post(WROpcode.RDMA_WRITE, b"behind")
    read, _, last = machines.frames()
    machines.answers(read)
    (nak,) = machines.answers(last)
    assert machines.take(nak) == []
    assert not machines.requester.failed
    machines.exchange()
    assert len(machines.done) == 3


@pytest.mark.parametrize(
    ("first", "packets", "offset", "size", "is_answered"),
    [
        (0, 3, 0, 3000, True),  # all of it
        (1, 2, 1024, 1976, True),  # the rest of it
        (2, 1, 2048, 952, True),
        (1, 1, 1024, 10, True),  # a piece of it
        (0, 1, 2999, 2, False),  # beyond it
        (3, 1, 0, 10, False),  # under the number of the next message
    ],
)
def test_a_duplicate_read_may_ask_for_a_part(
    first: int, packets: int, offset: int, size: int, is_answered: bool
) -> None:
    machines = Machines()
    machines.post(READ, size=3000, offset=500)
    machines.post(WROpcode.RDMA_WRITE, b"next", offset=5000)
    for frame in machines.frames():
        machines.answers(frame)
    reth = (machines.target.addr + 500 + offset, machines.target.rkey, size)
    again = machines.answers(Frame(machines.there, opcodes.READ_REQUEST, first, ack_request=True, reth=reth))
    assert [answer.psn for answer in again] == (list(range(first, first + packets)) if is_answered else [])
    if is_answered:
        expected = machines.target.buffer[500 + offset : 500 + offset + size]
        assert b"".join(bytes(answer.payload) for answer in again) == expected
    assert machines.responder._expected == 4  # nothing of this was new


def test_a_duplicate_read_of_a_key_that_is_invalid_by_now_is_refused() -> None:
    machines = Machines()
    machines.post(READ, size=3000)
    (request,) = machines.frames()
    machines.answers(request)
    machines.memory.invalidate(machines.target.rkey)
    assert machines.answer(request) == (0, 0x62, 1)


@pytest.mark.parametrize(
    ("opcode", "before", "compare_add", "swap", "after"),
    [
        (ADD, 5, 3, 0, 8),
        (ADD, WORD - 1, 2, 0, 1),
        (ADD, 5, WORD - 1, 0, 4),
        (SWAP, 5, 5, WORD - 7, WORD - 7),
        (SWAP, 5, 6, 9, 5),
    ],
)
def test_an_atomic_acts_once_and_is_answered_the_same_each_time(
    opcode: WROpcode, before: int, compare_add: int, swap: int, after: int
) -> None:
    machines = Machines()
    put(machines, 16, before)
    machines.post(opcode, offset=16, compare_add=compare_add, swap=swap)
    machines.post(WROpcode.RDMA_WRITE, b"next", offset=64)
    atomic, write = machines.frames()
    (first,) = machines.answers(atomic)
    assert value_at(machines, 16) == after
    machines.answers(write)
    put(machines, 16, 77)
    for _ in range(3):
        (again,) = machines.answers(atomic)
        assert (again.psn, again.aeth, again.extension) == (first.psn, first.aeth, (before,))
    assert value_at(machines, 16) == 77
    machines.take(first)
    assert int.from_bytes(machines.sinks[0], "little") == before


def test_as_many_atomics_are_remembered_as_may_be_outstanding() -> None:
    machines = Machines(dest_depth=3)
    put(machines, 0, 100)
    for _ in range(4):
        machines.post(ADD, compare_add=1)
    requests = machines.frames()
    for request in requests:
        machines.answers(request)
    assert [[answer.extension for answer in machines.answers(each)] for each in requests] == [
        [],
        [(101,)],
        [(102,)],
        [(103,)],
    ]
    assert value_at(machines, 0) == 104


@pytest.mark.parametrize("offset", [1, 4, 7])
def test_an_atomic_beside_a_word_is_invalid(offset: int) -> None:
    machines = Machines()
    before = bytes(machines.target.buffer)
    machines.post(ADD, offset=offset, compare_add=1)
    machines.exchange()
    assert [status for _, status in machines.done] == [WcStatus.REM_INV_REQ_ERR]
    assert machines.target.buffer == before


@pytest.mark.parametrize("opcode", [WROpcode.RDMA_WRITE, WROpcode.SEND, READ, ADD])
def test_a_fence_waits_for_every_fetch_before_it(opcode: WROpcode) -> None:
    machines = Machines()
    machines.receive(64, 2)
    for _ in range(2):
        machines.post(READ, size=2000)
    data = b"" if opcode in (READ, ADD) else b"fenced"
    machines.post(opcode, data, size=8, flags=SendFlags.FENCE)
    machines.post(WROpcode.RDMA_WRITE, b"behind")
    reads = machines.frames()
    assert [frame.psn for frame in reads] == [0, 2]
    answers = [answer for frame in reads for answer in machines.answers(frame)]
    for answer in answers[:-1]:
        machines.take(answer)
        assert machines.frames() == []
    machines.take(answers[-1])
    fenced = machines.frames()
    assert [frame.psn for frame in fenced] == [4, 5]
    machines.requester.on_deadline(0)  # sent before, and so sent again though a fetch behind it is outstanding
    assert [frame.psn for frame in machines.frames()] == [4, 5]


def test_without_a_fence_nothing_waits() -> None:
    machines = Machines()
    machines.post(READ, size=2000)
    machines.post(WROpcode.RDMA_WRITE, b"data")
    assert [frame.psn for frame in machines.frames()] == [0, 2]


def test_an_answer_of_another_kind_ends_the_connection() -> None:
    for opcode, answer_opcode in ((READ, opcodes.ATOMIC_ACKNOWLEDGE), (ADD, opcodes.READ_RESPONSE_ONLY)):
        machines = Machines()
        machines.post(opcode, size=8)
        machines.post(WROpcode.RDMA_WRITE, b"data")
        machines.frames()
        answer = Frame(machines.back, answer_opcode, 0, b"" if opcode is READ else bytes(8), aeth=(0x1F, 1))
        answer.extension = (3,) if opcode is READ else None
        done = machines.requester.on_response(answer, 0)
        assert [status for _, status in done] == [WcStatus.BAD_RESP_ERR, WcStatus.WR_FLUSH_ERR]
        assert not any(machines.sinks[0])
