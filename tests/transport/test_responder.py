"""The responder by itself, and both machines against each other over a channel that loses and repeats."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu import opcodes
from emu.frame import Frame
from emu.transport.memory import Access
from emu.transport.responder import merge
from emu.transport.wc import WcStatus
from tests.transport.pair import Pair


def write(pair: Pair, psn: int, opcode: int = opcodes.WRITE_ONLY, data: bytes = b"abcd", length: int = -1) -> Frame:
    """A request frame as a peer might make it."""
    starts = opcode in (opcodes.WRITE_ONLY, opcodes.WRITE_FIRST)
    size = len(data) if length < 0 else length
    reth = (pair.target.addr, pair.target.rkey, size) if starts else None
    return Frame(pair.there, opcode, psn, data, ack_request=True, reth=reth)


def test_a_write_lands_and_is_acknowledged() -> None:
    pair = Pair()
    assert pair.responder.on_request(write(pair, 0)) == (0, 0x1F, 1)
    assert pair.responder.message_done
    assert pair.target.buffer[:4] == b"abcd"


def test_no_acknowledgement_is_owed_unless_asked_for() -> None:
    pair = Pair()
    frame = write(pair, 0)
    frame.ack_request = False
    assert pair.responder.on_request(frame) is None


def test_a_gap_is_refused_once_until_it_is_filled() -> None:
    pair = Pair()
    assert pair.responder.on_request(write(pair, 2)) == (0, 0x60, 0)
    assert pair.responder.on_request(write(pair, 3)) is None
    assert pair.target.buffer[:4] == bytes(4)
    assert pair.responder.on_request(write(pair, 0)) == (0, 0x1F, 1)
    assert pair.responder.on_request(write(pair, 2)) == (1, 0x60, 1)


def test_a_duplicate_is_acknowledged_and_changes_nothing() -> None:
    pair = Pair()
    pair.responder.on_request(write(pair, 0))
    assert pair.responder.on_request(write(pair, 0, data=b"EVIL")) == (0, 0x1F, 1)
    assert not pair.responder.message_done
    assert pair.target.buffer[:4] == b"abcd"


@pytest.mark.parametrize("offset", [-1, 1 << 16, (1 << 16) - 3])
def test_bytes_out_of_bounds_are_refused_and_not_written(offset: int) -> None:
    pair = Pair()
    frame = write(pair, 0)
    frame.reth = (pair.target.addr + offset, pair.target.rkey, 4)
    assert pair.responder.on_request(frame) == (0, 0x62, 0)
    assert pair.responder.failed
    assert not any(pair.target.buffer)


def test_a_wrong_key_and_a_missing_right_are_refused() -> None:
    pair = Pair()
    readable = pair.memory.register(16, Access.REMOTE_READ)
    for rkey in (0xBAD, readable.rkey):
        other = Pair()
        other.memory.register(16, Access.REMOTE_READ)
        frame = write(other, 0)
        frame.reth = (readable.addr, rkey, 4)
        assert other.responder.on_request(frame) == (0, 0x62, 0)


@pytest.mark.parametrize(
    ("opcode", "data", "length"),
    [
        (opcodes.WRITE_MIDDLE, bytes(1024), 2048),  # no message has begun
        (opcodes.WRITE_LAST, bytes(4), 4),
        (opcodes.WRITE_FIRST, bytes(1000), 2000),  # a First carries a whole MTU
        (opcodes.WRITE_FIRST, bytes(1024), 1024),  # nothing would be left for the rest
        (opcodes.WRITE_ONLY, bytes(4), 8),  # another length than it says
        (opcodes.WRITE_ONLY, bytes(2000), 2000),  # longer than the MTU
        (opcodes.READ_REQUEST, b"", 0),  # without a RETH
    ],
)
def test_malformed_requests_are_invalid(opcode: int, data: bytes, length: int) -> None:
    pair = Pair()
    answer = pair.responder.on_request(write(pair, 0, opcode, data, length))
    assert answer == (0, 0x61, 0)
    assert pair.responder.on_request(write(pair, 0)) is None  # in the error state now


@pytest.mark.parametrize(
    ("pending", "answer", "merged"),
    [
        ((3, 0x1F, 1), (7, 0x1F, 2), (7, 0x1F, 2)),  # the newer says all
        ((3, 0x60, 1), (2, 0x1F, 1), (3, 0x60, 1)),  # a duplicate's ACK does not hide the NAK
        ((0, 0x60, 1), (0xFFFFFF, 0x1F, 1), (0, 0x60, 1)),  # nor across the wrap
        ((3, 0x60, 1), (3, 0x1F, 2), (3, 0x1F, 2)),  # the packet it asked for has come
        ((3, 0x2C, 1), (2, 0x1F, 1), (3, 0x2C, 1)),  # nor an RNR NAK, which is said once too
        ((3, 0x20, 1), (3, 0x1F, 2), (3, 0x1F, 2)),
        ((2, 0x1F, 1), (3, 0x62, 1), (3, 0x62, 1)),  # a refusal replaces an ACK, which it implies
    ],
)
def test_two_acknowledgements_owed_become_one(
    pending: tuple[int, int, int], answer: tuple[int, int, int], merged: tuple[int, int, int]
) -> None:
    assert merge(pending, answer) == merged


def test_a_write_of_nothing_needs_no_key() -> None:
    pair = Pair()
    frame = write(pair, 0, data=b"")
    frame.reth = (0, 0, 0)
    assert pair.responder.on_request(frame) == (0, 0x1F, 1)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    sizes=st.lists(st.integers(0, 5000), min_size=1, max_size=6),
    loss=st.sampled_from([0.0, 0.05, 0.2]),
    first_psn=st.sampled_from([0, 0xFFFFF0]),
)
def test_every_message_arrives_once_over_a_bad_channel(
    seed: int, sizes: list[int], loss: float, first_psn: int
) -> None:
    """Frames are lost and repeated both ways, in order: all complete, in order, and memory is right."""
    dice = Random(seed)
    pair = Pair(mtu=256, window=16, ack_every=4, first_psn=first_psn, retry_cnt=7)
    data = [dice.randbytes(size) for size in sizes]
    offsets = [sum(sizes[:number]) for number in range(len(sizes))]
    wqes = [pair.post(bytes_, offset) for bytes_, offset in zip(data, offsets, strict=True)]
    done, finished = [], 0
    for _ in range(5000):
        progress = [frame for frame in pair.frames() for _ in range(dice.choice((1, 1, 1, 2)))]
        answers = []
        for frame in progress:
            if dice.random() >= loss:
                answers.append(pair.responder.on_request(frame))
                finished += pair.responder.message_done
        for answer in answers:
            if answer is not None and dice.random() >= loss:
                done += pair.answer(answer)
        if len(done) == len(wqes):
            break
        pair.requester._tries_left = 7  # this channel is bad for as long as it takes
        done += pair.requester.on_deadline(0)
    assert done == [(wqe, WcStatus.SUCCESS) for wqe in wqes]
    assert finished == len(wqes)
    for bytes_, offset in zip(data, offsets, strict=True):
        assert pair.target.buffer[offset : offset + len(bytes_)] == bytes_
