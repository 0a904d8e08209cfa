"""The veth wire's judgement on frames in flight, over a socket pair: needs no namespaces."""

from __future__ import annotations

import threading
import time

import pytest

from emu.errors import InvariantBroken
from emu.frame import Frame, Message
from emu.wire import patience, veth
from tests.wire.pair import FOREIGN, Pair
from tests.wire.stub import TOS_OFFSET, make_frame


def test_the_same_frames_come_out_in_order_their_bytes_made_once(pair: Pair) -> None:
    frames = pair.frames(*range(100))
    assert list(pair.wire.in_flight) == frames
    assert [pair.wire.receive(frame) for frame in frames] == frames
    assert pair.framing.encoded == 100
    frames[0].data = b"bytes are there already" * 3
    pair.hold(frames[0])
    assert pair.wire.receive(frames[0]) is frames[0]
    assert pair.framing.encoded == 100
    pair.wire.finish()
    assert (pair.wire.lost, pair.wire.late, pair.wire.foreign, pair.wire.warnings) == (0, 0, 0, [])
    assert not pair.wire.disturbed
    assert pair.wire.system_calls >= 202


def test_a_younger_frame_may_be_due_first(pair: Pair) -> None:
    first, second, third = pair.frames(1, 2, 3)
    pair.swallow(1)
    assert pair.wire.receive(second) is second
    assert pair.wire.receive(third) is third
    assert pair.wire.receive(first) is None  # known since the second was looked for
    assert (pair.wire.lost, pair.wire.late, pair.wire.foreign) == (1, 0, 0)


def test_bytes_in_another_order_are_noticed(pair: Pair) -> None:
    first, second = pair.frames(1, 2)
    for data in reversed(pair.swallow(2)):
        pair.near.send(data)
    assert pair.wire.receive(first) is None  # the wire is first in, first out: what was overtaken is gone
    assert pair.wire.receive(second) is second
    assert (pair.wire.lost, pair.wire.late, pair.wire.foreign, pair.wire.disturbed) == (1, 1, 0, True)


def test_a_frame_whose_successor_came_is_lost_at_once(pair: Pair) -> None:
    first, second, third = pair.frames(1, 2, 3)
    pair.swallow(2)
    started = time.monotonic()
    assert pair.wire.receive(first) is None
    assert pair.wire.receive(second) is None
    assert time.monotonic() - started < patience.PATIENCE_S / 2
    assert pair.wire.receive(third) is third
    assert (pair.wire.lost, pair.wire.disturbed, len(pair.wire.warnings)) == (2, True, 1)


def test_patience_is_long_once_and_long_again_after_an_arrival(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PATIENCE_S", 0.2)

    def wait_for(frame: Frame) -> float:
        pair.swallow()
        started = time.monotonic()
        assert pair.wire.receive(frame) is None
        return time.monotonic() - started

    assert wait_for(*pair.frames(1)) >= 0.19
    assert 0.009 <= wait_for(*pair.frames(2)) < 0.15
    assert 0.009 <= wait_for(*pair.frames(3)) < 0.15
    arrived = pair.frames(4)[0]
    assert pair.wire.receive(arrived) is arrived
    assert wait_for(*pair.frames(5)) >= 0.19
    assert pair.wire.lost == 4


def test_a_late_frame_is_waited_for(pair: Pair) -> None:
    (frame,) = pair.frames(1)
    (data,) = pair.swallow()
    timer = threading.Timer(0.05, pair.near.send, (data,))
    timer.start()
    assert pair.wire.receive(frame) is frame
    timer.join()
    assert (pair.wire.late, pair.wire.lost, pair.wire.disturbed) == (1, 0, False)


def test_what_comes_after_it_was_given_up_is_late_not_foreign(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PATIENCE_S", 0.01)
    (first,) = pair.frames(1)
    (data,) = pair.swallow()
    assert pair.wire.receive(first) is None
    pair.near.send(data)
    (second,) = pair.frames(2)
    assert pair.wire.receive(second) is second
    (third,) = pair.frames(3)
    (data,) = pair.swallow()
    assert pair.wire.receive(third) is None
    pair.near.send(data)
    pair.wire.finish()
    assert (pair.wire.late, pair.wire.lost, pair.wire.foreign) == (2, 2, 0)


def test_foreign_frames_are_counted_and_ours_still_arrive(pair: Pair) -> None:
    pair.near.send(FOREIGN)
    first, second = pair.frames(1, 2)
    pair.near.send(FOREIGN)
    assert pair.wire.receive(first) is first
    assert pair.wire.foreign == 1
    assert pair.wire.receive(second) is second
    pair.wire.finish()
    assert (pair.wire.foreign, pair.wire.lost, len(pair.wire.warnings)) == (2, 0, 1)
    assert "foreign" in pair.wire.warnings[0]


def test_foreign_frames_that_are_frames_can_be_taken_in(pair: Pair) -> None:
    taken: list[Frame] = []
    pair.wire.on_foreign = taken.append
    pair.near.send(FOREIGN)
    pair.near.send(pair.framing.encode(make_frame(pair.framing, 77)))
    pair.wire.poll()
    assert [frame.psn for frame in taken] == [77]
    (ours,) = pair.frames(1)
    pair.wire.poll()  # not while something of ours is in flight
    assert pair.wire.receive(ours) is ours
    assert pair.wire.foreign == 2


def test_a_copy_of_ours_with_other_content_is_foreign_if_ours_comes_too(pair: Pair) -> None:
    pair.near.send(pair.framing.encode(make_frame(pair.framing, 1, b"payload X " * 20)))
    (ours,) = pair.frames(1)
    assert pair.wire.receive(ours) is ours
    assert (pair.wire.foreign, pair.wire.changed) == (1, 0)


def test_a_frame_lost_behind_a_foreign_one_is_lost(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PATIENCE_S", 0.02)
    (ours,) = pair.frames(1)
    pair.swallow()
    pair.near.send(FOREIGN)
    assert pair.wire.receive(ours) is None
    assert (pair.wire.foreign, pair.wire.lost) == (1, 1)


def test_a_change_with_a_right_crc_is_read_again(pair: Pair) -> None:
    message = Message(None, 0, 7, 0)
    frame = make_frame(pair.framing, 5)
    frame.message, frame.carries_data, frame.hop, frame.parts = message, True, 2, 12_345
    frame.ser_ps, frame.eligible_ps, frame.waits_mark, frame.ingress = 123, 456, 7, object()
    pair.hold(frame)
    (data,) = pair.swallow()
    pair.near.send(data[:TOS_OFFSET] + b"\x03" + data[TOS_OFFSET + 1 :])
    changed = pair.wire.receive(frame)
    assert changed is not None
    assert changed is not frame
    assert (changed.envelope.tos, changed.psn, changed.bad) == (3, 5, False)
    for name in (
        "message",
        "carries_data",
        "hop",
        "parts",
        "ser_ps",
        "eligible_ps",
        "waits_mark",
        "ingress",
        "wire_bytes",
    ):
        assert getattr(changed, name) == getattr(frame, name)
    assert changed.data != frame.data
    assert (pair.wire.changed, pair.wire.lost, pair.wire.foreign, pair.wire.disturbed) == (1, 0, 0, True)


@pytest.mark.parametrize("place", [0, 13, 20, -1])
def test_a_change_with_a_wrong_crc_is_marked_bad(pair: Pair, place: int) -> None:
    frame, after = pair.frames(5, 6)
    data, unchanged = pair.swallow(2)
    damaged = bytearray(data)
    damaged[place] ^= 0x10
    pair.near.send(damaged)
    pair.near.send(unchanged)
    changed = pair.wire.receive(frame)
    assert changed is not None
    assert (changed.bad, changed.data, changed.psn) == (True, bytes(damaged), 5)
    assert (frame.bad, frame.data) == (False, data)
    assert pair.wire.receive(after) is after


def test_a_changed_frame_is_not_taken_for_its_lost_neighbour(pair: Pair) -> None:
    lost, frame = pair.frames(1, 2)
    _, data = pair.swallow(2)
    pair.near.send(data[:TOS_OFFSET] + b"\x03" + data[TOS_OFFSET + 1 :])
    assert pair.wire.receive(lost) is None
    changed = pair.wire.receive(frame)
    assert changed is not None
    assert (changed.psn, changed.envelope.tos) == (2, 3)
    assert (pair.wire.lost, pair.wire.changed, pair.wire.foreign) == (1, 1, 0)


def test_frames_in_flight_at_the_end_are_no_error(pair: Pair) -> None:
    pair.frames(*range(100))
    pair.swallow(3)
    pair.wire.finish()
    assert (pair.wire.foreign, pair.wire.lost, pair.wire.disturbed) == (0, 0, False)


def test_an_overrun_by_our_own_frames_is_a_bug(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(veth, "dropped_frames", lambda _: 3)
    with pytest.raises(InvariantBroken, match="3 frames overran"):
        pair.wire.finish()
    pair.near.send(FOREIGN)
    pair.wire.finish()
    assert any("overran" in warning for warning in pair.wire.warnings)
