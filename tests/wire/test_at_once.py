"""The veth wire's fast path: what is there as soon as it was sent has crossed; all else waits until it is due."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from emu.frame import Frame
from emu.wire import patience, veth
from tests.wire.pair import FOREIGN, Pair
from tests.wire.stub import TOS_OFFSET


def send(pair: Pair, *psns: int) -> list[Frame]:
    """Frames sent while the far end may be read."""
    frames = [pair.frame(psn) for psn in psns]
    assert all([pair.wire.send(frame) for frame in frames])
    return frames


def crossed(pair: Pair, *psns: int) -> bool:
    """Whether frames cross at once, one send and one read each, and nothing is left behind."""
    calls, before = pair.wire.system_calls, pair.wire.crossed
    send(pair, *psns)
    count = len(psns)
    return (pair.wire.system_calls - calls, pair.wire.crossed - before, len(pair.wire.in_flight)) == (
        2 * count,
        count,
        0,
    )


def test_frames_that_cross_are_never_in_flight(pair: Pair) -> None:
    in_flight = pair.wire.in_flight
    frames = [pair.frame(psn) for psn in range(1_000)]
    for frame in frames:
        assert pair.wire.send(frame)
        assert not in_flight
    assert [pair.wire.receive(frame) for frame in frames] == frames
    assert in_flight is pair.wire.in_flight  # ports keep hold of it
    pair.wire.finish()
    wire = pair.wire
    assert (wire.sent, wire.crossed, wire.system_calls) == (1_000, 1_000, 2_001)  # one read more to finish
    assert (wire.lost, wire.late, wire.foreign, wire.disturbed, wire.warnings) == (0, 0, 0, False, [])


def test_frames_of_any_size_cross_through_the_one_buffer(pair: Pair) -> None:
    for size_bytes in (4096, 1, 9_000, 0, 4096, 64):
        frame = pair.frame(1)
        frame.payload = bytes(range(256)) * 40
        frame.payload = frame.payload[:size_bytes]
        assert pair.wire.send(frame)
        assert not pair.wire.in_flight
    assert pair.wire.crossed == 6


def test_behind_one_that_is_missing_all_are_in_flight(pair: Pair) -> None:
    (lost,) = pair.frames(1)
    pair.swallow()
    second, third = send(pair, 2, 3)
    assert list(pair.wire.in_flight) == [lost, second, third]
    assert pair.wire.receive(lost) is None
    assert [pair.wire.receive(frame) for frame in (second, third)] == [second, third]
    assert (pair.wire.lost, pair.wire.late, pair.wire.crossed) == (1, 0, 0)
    assert crossed(pair, 4, 5)


def test_one_that_was_not_there_at_once_but_when_due_is_no_disturbance(pair: Pair) -> None:
    (frame,) = pair.frames(1)
    assert list(pair.wire.in_flight) == [frame]
    assert pair.wire.receive(frame) is frame
    assert crossed(pair, 2)
    pair.wire.finish()
    assert (pair.wire.lost, pair.wire.late, pair.wire.disturbed, pair.wire.warnings) == (0, 0, False, [])


def test_one_that_comes_before_the_next_send_is_in_flight_no_longer(pair: Pair) -> None:
    first, second = pair.frames(1, 2)
    (third,) = send(pair, 3)  # on a busy link there may always be one that is not due
    assert not pair.wire.in_flight
    assert crossed(pair, 4)
    assert [pair.wire.receive(frame) for frame in (first, second, third)] == [first, second, third]
    assert (pair.wire.lost, pair.wire.late, pair.wire.disturbed) == (0, 0, False)


def test_frames_that_all_come_later_than_their_send_lose_nothing(pair: Pair) -> None:
    due: list[Frame] = []
    for psn in range(300):
        due += pair.frames(psn)
        if psn % 3:
            frame = due.pop(0)
            assert pair.wire.receive(frame) is frame
    assert [pair.wire.receive(frame) for frame in due] == due
    pair.wire.finish()
    assert (pair.wire.sent, pair.wire.lost, pair.wire.late, pair.wire.foreign) == (300, 0, 0, 0)
    assert not pair.wire.disturbed


def test_foreign_bytes_in_front_put_ours_in_flight(pair: Pair) -> None:
    pair.near.send(FOREIGN)
    first, second = send(pair, 1, 2)
    assert list(pair.wire.in_flight) == [first, second]
    assert pair.wire.foreign == 0  # judged when it is known that ours came, too
    assert [pair.wire.receive(frame) for frame in (first, second)] == [first, second]
    assert (pair.wire.foreign, pair.wire.lost, pair.wire.late, pair.wire.changed) == (1, 0, 0, 0)
    assert crossed(pair, 3)


def test_foreign_bytes_behind_ours_are_met_by_the_next(pair: Pair) -> None:
    assert crossed(pair, 1)
    pair.near.send(FOREIGN)
    pair.near.send(FOREIGN + b"it")
    (second,) = send(pair, 2)
    pair.near.send(FOREIGN)
    assert pair.wire.receive(second) is second
    assert pair.wire.foreign == 3  # the last one too, or it would keep the next frame from crossing
    assert crossed(pair, 3)


def test_foreign_bytes_read_before_a_send_are_judged_with_the_frame(pair: Pair) -> None:
    pair.frames(1)
    pair.near.send(FOREIGN)
    (second,) = send(pair, 2)  # reads on: the first has come, and a stranger
    assert list(pair.wire.in_flight) == [second]
    assert pair.wire.receive(second) is second
    assert (pair.wire.foreign, pair.wire.lost) == (1, 0)
    assert crossed(pair, 3)


def test_foreign_frames_are_let_in_only_while_a_frame_is_received(pair: Pair) -> None:
    """A port is in the midst of its start while it sends: nobody may act then."""
    taken: list[int] = []
    pair.wire.on_foreign = lambda frame: taken.append(frame.psn)
    for stranger in (77, 78):
        pair.near.send(pair.framing.encode(pair.frame(stranger)))
        (ours,) = send(pair, stranger - 76)
        pair.frames(stranger - 66)
        assert taken == list(range(77, stranger))
        assert pair.wire.receive(ours) is ours
        assert pair.wire.receive(pair.wire.in_flight[0]) is not None
        assert taken == list(range(77, stranger + 1))


def test_a_changed_frame_is_seen_at_once_and_told_when_due(pair: Pair) -> None:
    first = pair.frame(1)
    wire_send = pair.wire._send
    pair.wire._send = lambda data: wire_send(data[:TOS_OFFSET] + b"\x03" + data[TOS_OFFSET + 1 :])  # type: ignore[misc,assignment]
    assert pair.wire.send(first)
    pair.wire._send = wire_send
    assert list(pair.wire.in_flight) == [first]
    (second,) = send(pair, 2)
    changed = pair.wire.receive(first)
    assert changed is not None
    assert (changed.psn, changed.envelope.tos, first.envelope.tos) == (1, 3, 0)
    assert pair.wire.receive(second) is second
    assert crossed(pair, 3)
    assert changed.data is not None
    assert changed.data[TOS_OFFSET] == 3  # a copy: other frames have used the buffer since
    assert (pair.wire.changed, pair.wire.lost, pair.wire.foreign) == (1, 0, 0)


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"more"])
def test_one_of_another_length_has_changed(pair: Pair, change: Callable[[bytes], bytes]) -> None:
    first, wire_send = pair.frame(1), pair.wire._send
    pair.wire._send = lambda data: wire_send(change(data))  # type: ignore[misc,assignment]
    assert pair.wire.send(first)
    pair.wire._send = wire_send
    assert list(pair.wire.in_flight) == [first]
    changed = pair.wire.receive(first)
    assert changed is not None
    assert changed.bad
    assert crossed(pair, 2)


def test_crossing_makes_patient_again(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PATIENCE_S", 0.02)
    waits: list[float] = []
    monkeypatch.setattr(veth, "wait_for_frame", lambda _, timeout_s: waits.append(timeout_s))
    monkeypatch.setattr(patience, "SHORT_PATIENCE_S", 0.005)

    def longest_wait(psn: int) -> float:
        waits.clear()
        (frame,) = pair.frames(psn)
        pair.swallow()
        assert pair.wire.receive(frame) is None
        return max(waits)

    assert longest_wait(1) > 0.005
    assert longest_wait(2) <= 0.005
    assert crossed(pair, 3)
    assert longest_wait(4) > 0.005


def test_one_given_up_that_comes_before_the_next_is_late(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PATIENCE_S", 0.01)
    (first,) = pair.frames(1)
    (data,) = pair.swallow()
    assert pair.wire.receive(first) is None
    pair.near.send(data)
    (second,) = send(pair, 2)
    assert pair.wire.receive(second) is second
    assert (pair.wire.late, pair.wire.lost, pair.wire.foreign) == (1, 1, 0)
    assert crossed(pair, 3)


def test_in_flight_at_the_end_with_some_changed_and_some_foreign(pair: Pair) -> None:
    pair.near.send(FOREIGN)
    send(pair, 1, 2, 3)
    pair.near.send(FOREIGN)
    pair.wire.finish()
    assert (pair.wire.foreign, pair.wire.lost, len(pair.wire.in_flight)) == (2, 0, 0)
