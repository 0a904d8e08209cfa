"""Numbers that wrap: PSN, MSN, SSN, and the order of work requests across the wraps."""

from __future__ import annotations

import pytest

from emu import opcodes
from emu.frame import Message
from emu.transport.answer import ReadAnswer
from emu.transport.memory import MemoryRegion
from emu.transport.psn import HALF, PSN_MASK, expand
from emu.transport.wc import WcStatus
from emu.transport.work import Scatter, SendWqe, WROpcode
from tests.transport.machines import ALL, Machines

HUGE_BYTES = 2**31  # the longest message there is: 2^23 packets of 256 bytes


class Void(Scatter):
    """Room for the longest message, of which nothing is kept."""

    def __init__(self) -> None:
        super().__init__(())
        self.length = HUGE_BYTES

    def write(self, offset: int, data: object) -> None:
        """Forget it."""


class Endless(MemoryRegion):
    """The longest message's worth of zeros."""

    def __init__(self, key: int) -> None:
        super().__init__(bytearray(1024), 0, key, ALL)
        self.length = HUGE_BYTES

    def slice(self, addr: int, length: int) -> memoryview:
        """Zeros."""
        return self.view[:length]


def numbers(machines: Machines) -> list[tuple[str, int, bool]]:
    """Name, PSN and AckReq of all that goes to and fro, in order."""
    seen = []
    while frames := machines.frames(limit=1):
        answers = machines.answers(frames[0])
        seen += [
            (opcodes.NAMES[frame.opcode].removeprefix("RC "), frame.psn, frame.ack_request)
            for frame in (*frames, *answers)
        ]
        for answer in answers:
            machines.take(answer)
    return seen


def test_numbers_are_those_of_the_captured_wrap() -> None:
    """As rxe61__rc_psn_wrap has them."""
    machines = Machines(first_psn=0xFFFFFD)
    machines.receive(10)
    machines.post(WROpcode.RDMA_WRITE, bytes(3000))
    machines.post(WROpcode.RDMA_READ, size=4097)
    machines.post(WROpcode.RDMA_WRITE, bytes(2048))
    machines.post(WROpcode.SEND, bytes(10))
    assert numbers(machines) == [
        ("RDMA Write First", 0xFFFFFD, False),
        ("RDMA Write Middle", 0xFFFFFE, False),
        ("RDMA Write Last", 0xFFFFFF, True),
        ("Acknowledge", 0xFFFFFF, False),
        ("RDMA Read Request", 0, True),
        ("RDMA Read Response First", 0, False),
        ("RDMA Read Response Middle", 1, False),
        ("RDMA Read Response Middle", 2, False),
        ("RDMA Read Response Middle", 3, False),
        ("RDMA Read Response Last", 4, False),
        ("RDMA Write First", 5, False),
        ("RDMA Write Last", 6, True),
        ("Acknowledge", 6, False),
        ("SEND Only", 7, True),
        ("Acknowledge", 7, False),
    ]
    assert [(wqe.wr_id, status) for wqe, status in machines.done] == [(n, WcStatus.SUCCESS) for n in range(4)]


@pytest.mark.parametrize(
    ("psn", "near", "number"),
    [
        (0, 0xFFFFFF, 0x1000000),
        (0xFFFFFF, 0x1000000, 0xFFFFFF),
        (0xFFFFFF, 0, -1),
        (5, 3 * 2**24 + 7, 3 * 2**24 + 5),
        (HALF - 1, 0, HALF - 1),
        (HALF, 0, -HALF),
    ],
)
def test_the_closest_number_is_meant(psn: int, near: int, number: int) -> None:
    assert expand(psn, near) == number
    assert number & PSN_MASK == psn


def jump(machines: Machines, wqe: SendWqe, answer: ReadAnswer, left: int) -> None:
    """All but the last `left` responses have come: their millions are not made one by one."""
    answer.sent = wqe.received = wqe.packets - left
    machines.requester._advance(wqe.first + wqe.received, 0)


def read_huge(machines: Machines, key: int, size: int) -> SendWqe:
    wqe = SendWqe(Message(None, 0, size, 0), machines.posted, b"", 0, key, opcode=WROpcode.RDMA_READ, sink=Void())
    wqe.size_bytes = size
    machines.posted += 1
    machines.requester.post(wqe)
    return wqe


@pytest.mark.parametrize("first_psn", [0, 0x7FFFF0, 0xFFFFF0])
def test_work_goes_on_in_order_across_many_wraps(first_psn: int) -> None:
    """Six times: the longest READ, all of whose last responses come, and small messages between; one is lost."""
    machines = Machines(mtu=256, first_psn=first_psn, retry_cnt=1)
    region = Endless(0x99)
    machines.memory._regions[region.rkey] = region
    machines.receive(1024, 60)
    packets = 0
    for turn in range(6):
        wqe = read_huge(machines, region.rkey, HUGE_BYTES - turn)
        (request,) = machines.frames()
        answer = machines.answer(request)
        assert isinstance(answer, ReadAnswer)
        jump(machines, wqe, answer, left=3)
        for _ in range(3):
            machines.take(answer.next_frame(machines.back))
        packets += wqe.packets
        for size in (0, 1, 255, 256, 257, 1000):
            machines.post(WROpcode.SEND, bytes([turn]) * size)
            packets += max(1, -(-size // 256))
        lost, *rest = machines.frames()
        assert lost.psn == first_psn + packets - 10 & PSN_MASK
        for frame in rest:
            for nak in machines.answers(frame):
                assert nak.aeth == (0x60, turn * 7 + 1)
                machines.take(nak)
        machines.exchange()
    assert [wqe.wr_id for wqe, _ in machines.done] == list(range(42))
    assert {status for _, status in machines.done} == {WcStatus.SUCCESS}
    assert machines.requester._acked == machines.responder._expected == first_psn + packets > 3 * 2**24
    assert [received.byte_len for received in machines.received] == [0, 1, 255, 256, 257, 1000] * 6


def test_numbers_half_of_all_apart_are_never_outstanding() -> None:
    """They could not be told from old ones: the READ that would go too far waits."""
    machines = Machines(mtu=256)
    key = 0x99
    machines.memory._regions[key] = Endless(key)
    machines.post(WROpcode.RDMA_WRITE, bytes(10))
    huge = read_huge(machines, key, HUGE_BYTES)
    assert [frame.psn for frame in machines.frames()] == [0]
    assert not machines.requester.can_send()
    machines.ack(0, msn=1)
    assert [frame.psn for frame in machines.frames()] == [1]
    machines.post(WROpcode.RDMA_WRITE, bytes(10))
    assert machines.frames() == []  # the window is full of the READ
    machines.requester.on_deadline(0)
    (again,) = machines.frames()
    assert (again.psn, again.reth) == (1, (0, key, HUGE_BYTES))
    assert huge.message.retransmitted == 1


def test_message_numbers_wrap_under_load() -> None:
    """MSN and SSN start 20 messages before their wrap, with credits counted from them."""
    machines = Machines(mtu=256, credits=True, first_psn=0xFFFF00)
    machines.responder._msn = machines.requester._ssn = 0xFFFFEC
    seen = []
    for turn in range(25):
        machines.receive(1000, 3)
        for size in (1000, 10, 0):
            machines.post(WROpcode.SEND, bytes([turn]) * size)
        while frames := machines.frames(limit=1):
            for answer in machines.answers(frames[0]):
                assert answer.aeth is not None
                assert answer.aeth[0] < 0x1F
                seen.append(answer.aeth[1])
                machines.take(answer)
    assert seen == [0xFFFFEC + number & PSN_MASK for number in range(1, 76)]
    assert [wqe.wr_id for wqe, _ in machines.done] == list(range(75))
    assert len(machines.received) == 75
