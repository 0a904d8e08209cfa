"""The requester by itself: segmentation, numbering, asking for acknowledgements, going back, giving up."""

from __future__ import annotations

import pytest

from emu import opcodes
from emu.transport.requester_config import ACK_TIMEOUT_UNIT_PS
from emu.transport.wc import WcStatus
from tests.transport.pair import Pair

FIRST, MIDDLE, LAST, ONLY = (
    opcodes.WRITE_FIRST,
    opcodes.WRITE_MIDDLE,
    opcodes.WRITE_LAST,
    opcodes.WRITE_ONLY,
)
NO_CREDIT = 0x1F


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, [ONLY]),
        (1, [ONLY]),
        (1023, [ONLY]),
        (1024, [ONLY]),
        (1025, [FIRST, LAST]),
        (2048, [FIRST, LAST]),
        (2049, [FIRST, MIDDLE, LAST]),
        (9001, [FIRST] + [MIDDLE] * 7 + [LAST]),
    ],
)
def test_a_message_is_cut_to_the_path_mtu(size: int, expected: list[int]) -> None:
    pair = Pair(mtu=1024)
    pair.post(bytes(size))
    frames = pair.frames()
    assert [frame.opcode for frame in frames] == expected
    assert sum(len(frame.payload) for frame in frames) == size
    assert all(len(frame.payload) == 1024 for frame in frames[:-1])
    assert frames[0].reth == (pair.target.addr, pair.target.rkey, size)
    assert all(frame.reth is None for frame in frames[1:])


def test_only_the_last_packet_asks_for_an_acknowledgement() -> None:
    pair = Pair()
    pair.post(bytes(4000))
    assert [frame.ack_request for frame in pair.frames()] == [False, False, False, True]


def test_a_long_message_asks_every_so_often() -> None:
    pair = Pair(ack_every=4, target_bytes=20 * 1024)
    pair.post(bytes(10 * 1024))
    asked = [number for number, frame in enumerate(pair.frames()) if frame.ack_request]
    assert asked == [3, 7, 9]


def test_a_full_window_stops_and_asks() -> None:
    pair = Pair(window=3, ack_every=3)
    pair.post(bytes(10 * 1024))
    frames = pair.frames()
    assert [frame.ack_request for frame in frames] == [False, False, True]
    pair.answer((2, NO_CREDIT, 0))
    assert [frame.psn for frame in pair.frames()] == [3, 4, 5]


def test_psns_wrap_at_24_bits() -> None:
    pair = Pair(first_psn=0xFFFFFD)
    pair.post(bytes(3000))
    pair.post(bytes(2048))
    assert [frame.psn for frame in pair.frames()] == [0xFFFFFD, 0xFFFFFE, 0xFFFFFF, 0, 1]
    assert [status for _, status in pair.answer((0xFFFFFF, NO_CREDIT, 1))] == [WcStatus.SUCCESS]
    assert [status for _, status in pair.answer((1, NO_CREDIT, 2))] == [WcStatus.SUCCESS]


def test_one_acknowledgement_finishes_all_before_it() -> None:
    pair = Pair()
    wqes = [pair.post(bytes(10)) for _ in range(3)]
    pair.frames()
    assert [wqe for wqe, _ in pair.answer((1, NO_CREDIT, 2))] == wqes[:2]
    assert [wqe for wqe, _ in pair.answer((2, NO_CREDIT, 3))] == wqes[2:]


def test_ghost_acknowledgements_change_nothing() -> None:
    pair = Pair()
    pair.post(bytes(10))
    pair.frames()
    assert pair.answer((5, NO_CREDIT, 9)) == []
    assert pair.requester.deadline_ps > 0


def test_a_sequence_nak_goes_back_to_the_packet_it_names() -> None:
    pair = Pair()
    pair.post(bytes(5 * 1024))
    pair.frames()
    assert pair.answer((2, 0x60, 0)) == []
    again = pair.frames()
    assert [(frame.psn, frame.opcode) for frame in again] == [(2, MIDDLE), (3, MIDDLE), (4, LAST)]
    assert again[0].message is not None
    assert again[0].message.retransmitted == 3


def test_a_timeout_goes_back_to_the_oldest() -> None:
    pair = Pair(timeout_code=10)
    pair.post(bytes(3 * 1024))
    pair.frames(now_ps=7)
    assert pair.requester.deadline_ps == 7 + (ACK_TIMEOUT_UNIT_PS << 10)
    assert pair.requester.on_deadline(pair.requester.deadline_ps) == []
    assert [frame.psn for frame in pair.frames()] == [0, 1, 2]


def test_timeout_code_zero_never_fires() -> None:
    pair = Pair(timeout_code=0)
    pair.post(bytes(10))
    pair.frames()
    assert pair.requester.deadline_ps == -1


@pytest.mark.parametrize("retry_cnt", [0, 2, 7])
def test_retry_cnt_tries_again_that_often_then_fails(retry_cnt: int) -> None:
    pair = Pair(retry_cnt=retry_cnt)
    first, second = pair.post(bytes(10)), pair.post(bytes(10))
    for _ in range(retry_cnt):
        assert len(pair.frames()) == 2
        assert pair.requester.on_deadline(0) == []
    assert len(pair.frames()) == 2
    done = pair.requester.on_deadline(0)
    assert done == [(first, WcStatus.RETRY_EXC_ERR), (second, WcStatus.WR_FLUSH_ERR)]
    assert not pair.requester.can_send()
    assert pair.requester.deadline_ps == -1


def test_progress_gives_back_all_tries() -> None:
    pair = Pair(retry_cnt=1)
    pair.post(bytes(2048))
    pair.frames()
    assert pair.requester.on_deadline(0) == []
    pair.frames()
    pair.answer((0, NO_CREDIT, 0))
    assert pair.requester.on_deadline(0) == []
    pair.frames()
    assert [status for _, status in pair.requester.on_deadline(0)] == [WcStatus.RETRY_EXC_ERR]


@pytest.mark.parametrize(
    ("syndrome", "status"),
    [(0x61, WcStatus.REM_INV_REQ_ERR), (0x62, WcStatus.REM_ACCESS_ERR), (0x63, WcStatus.REM_OP_ERR)],
)
def test_fatal_naks_fail_the_oldest_and_flush_the_rest(syndrome: int, status: WcStatus) -> None:
    pair = Pair()
    wqes = [pair.post(bytes(10)) for _ in range(3)]
    pair.frames()
    assert pair.answer((1, syndrome, 1)) == [
        (wqes[0], WcStatus.SUCCESS),
        (wqes[1], status),
        (wqes[2], WcStatus.WR_FLUSH_ERR),
    ]


def test_the_timer_stops_when_nothing_is_outstanding() -> None:
    pair = Pair()
    pair.post(bytes(10))
    pair.frames(now_ps=5)
    pair.answer((0, NO_CREDIT, 1), now_ps=9)
    assert pair.requester.deadline_ps == -1


def test_an_acknowledgement_of_an_earlier_copy_skips_what_would_be_sent_again() -> None:
    pair = Pair()
    pair.post(bytes(4 * 1024))
    last = pair.post(bytes(10))
    pair.frames()
    pair.requester.on_deadline(0)
    assert pair.requester.next_frame(0).psn == 0
    pair.answer((3, NO_CREDIT, 1))
    assert [frame.psn for frame in pair.frames()] == [4]
    assert pair.answer((4, NO_CREDIT, 2)) == [(last, WcStatus.SUCCESS)]
