"""What eats frames in silence costs seconds, not minutes, and a wire that works again is waited for again."""

from __future__ import annotations

import time

import pytest

from emu.wire import patience
from emu.wire.patience import Patience
from tests.wire.pair import Pair


def test_long_once_then_short_then_a_look() -> None:
    waits, own = [], Patience()
    for _ in range(40):
        waits.append(own.seconds(7))
        own.was_in_vain(7, waits[-1])
    assert waits == [1.0] + [0.01] * 15 + [0.0] * 24
    assert own.seconds(8) == 1.0  # one has come out since
    own.was_in_vain(8, 1.0)
    assert own.seconds(8) == 0.01


def test_in_all_it_is_bounded_however_often_something_comes_in_between() -> None:
    own, waited_s = Patience(), 0.0
    for delivered in range(10_000):
        seconds = own.seconds(delivered)
        waited_s += seconds
        own.was_in_vain(delivered, seconds)
    assert waited_s == 10.0
    own.paid()
    assert own.seconds(10_000) == 1.0


def test_a_window_eaten_in_silence_takes_no_minutes(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PATIENCE_S", 0.05)
    started = time.monotonic()
    for psn in range(2_048):
        (frame,) = pair.frames(psn)
        pair.swallow()
        assert pair.wire.receive(frame) is None
    assert time.monotonic() - started < 5  # 20 s at 10 ms each
    assert pair.wire.lost == 2_048
    (frame,) = pair.frames(2_048)
    assert pair.wire.receive(frame) is frame
    started = time.monotonic()
    (frame,) = pair.frames(2_049)
    pair.swallow()
    assert pair.wire.receive(frame) is None
    assert time.monotonic() - started >= 0.04


def test_frames_that_come_late_after_an_eater_are_known_and_waited_for_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "PATIENCE_S", 0.02)
    monkeypatch.setattr(patience, "SHORT_PATIENCE_S", 0.001)
    late: list[bytes] = []
    for psn in range(1_000):
        (frame,) = pair.frames(psn)
        late += pair.swallow()
        assert pair.wire.receive(frame) is None
    for data in late[-200:]:
        pair.near.send(data)
        pair.wire.poll()
    assert (pair.wire.late, pair.wire.foreign) == (200, 0)
    started = time.monotonic()
    (frame,) = pair.frames(1_000)
    pair.swallow()
    assert pair.wire.receive(frame) is None
    assert time.monotonic() - started >= 0.015
