"""What the kernel may answer to a send or a receive, and how much the wire leaves with it; over made-up sockets."""

from __future__ import annotations

import errno
from collections import deque

import pytest

from emu.frame import Frame
from emu.wire import patience, veth
from emu.wire.veth import VethWire
from tests.wire.stub import StubFraming, make_frame


class Broken:
    """A socket whose calls end as told."""

    def __init__(self, *outcomes: int | bytes) -> None:
        self.outcomes = list(outcomes)

    def _next(self) -> bytes:
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, int):
            raise OSError(outcome, "")
        return outcome

    def send(self, data: bytes) -> int:
        return len(self._next() and data)

    def recv(self, size: int) -> bytes:
        return self._next()

    def recv_into(self, buffer: bytearray) -> int:
        data = self._next()
        buffer[: len(data)] = data
        return len(data)

    def getsockopt(self, level: int, option: int) -> int:
        return 212_992


def wire_of(near: Broken, far: Broken, framing: StubFraming) -> VethWire:
    return VethWire("h0-leaf0", near, far, framing)  # type: ignore[arg-type]


def frames_of(framing: StubFraming, count: int) -> tuple[list[Frame], list[bytes]]:
    frames = [make_frame(framing, psn) for psn in range(count)]
    return frames, [framing.encode(frame) for frame in frames]


@pytest.mark.parametrize(
    ("reason", "tries"), [(errno.ENOBUFS, 1), (errno.ENETDOWN, 2), (errno.ENXIO, 1), (errno.EAGAIN, 1)]
)
def test_a_refused_frame_is_lost_now(reason: int, tries: int) -> None:
    framing = StubFraming()
    frames, (*_, third) = frames_of(framing, 3)
    near = Broken(*[reason] * 2 * tries, b"taken")
    wire = wire_of(near, Broken(third), framing)
    assert [wire.send(frame) for frame in frames] == [False, False, True]
    assert not wire.in_flight
    assert (wire.refused, wire.lost, wire.crossed, wire.disturbed, len(wire.warnings)) == (2, 2, 1, True, 1)
    assert wire.system_calls == 2 * tries + 2
    assert near.outcomes == []


def test_other_errors_are_not_swallowed() -> None:
    framing = StubFraming()
    wire = VethWire("h0-leaf0", Broken(errno.EINVAL), Broken(), framing)  # type: ignore[arg-type]
    with pytest.raises(OSError):
        wire.send(make_frame(framing, 1))


def test_a_read_that_fails_otherwise_is_not_swallowed() -> None:
    framing = StubFraming()
    wire = wire_of(Broken(b"taken"), Broken(errno.EBADF), framing)
    with pytest.raises(OSError):
        wire.send(make_frame(framing, 1))


def test_an_end_that_is_up_again_takes_a_frame_after_one_enetdown() -> None:
    framing = StubFraming()
    (frame,), (data,) = frames_of(framing, 1)
    wire = wire_of(Broken(errno.ENETDOWN, b"taken"), Broken(data), framing)
    assert wire.send(frame)
    assert (wire.refused, wire.lost, len(wire.in_flight), wire.system_calls) == (0, 0, 0, 3)
    assert wire.disturbed
    assert wire.warnings == ["wire h0-leaf0: its interface went down"]


def test_a_pending_enetdown_is_read_over_when_the_frame_is_due() -> None:
    framing = StubFraming()
    (frame,), (data,) = frames_of(framing, 1)
    wire = wire_of(Broken(b"taken"), Broken(errno.ENETDOWN, data, errno.EAGAIN), framing)
    assert wire.send(frame)
    assert list(wire.in_flight) == [frame]
    assert wire.receive(frame) is frame
    assert (wire.lost, wire.late, wire.disturbed) == (0, 0, True)
    assert wire.warnings == ["wire h0-leaf0: the interface at its far end went down"]


def test_a_pending_enetdown_is_read_over_before_the_next_send() -> None:
    framing = StubFraming()
    frames, (first, second) = frames_of(framing, 2)
    wire = wire_of(Broken(b"taken", b"taken"), Broken(errno.ENETDOWN, first, errno.EAGAIN, second), framing)
    assert all([wire.send(frame) for frame in frames])
    assert not wire.in_flight
    assert [wire.receive(frame) for frame in frames] == frames
    assert (wire.crossed, wire.lost, wire.late) == (1, 0, 0)


def test_an_enetdown_and_nothing_behind_it_is_a_lost_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PATIENCE_S", 0)
    framing = StubFraming()
    (frame,), _ = frames_of(framing, 1)
    wire = wire_of(Broken(b"taken"), Broken(errno.EAGAIN, errno.ENETDOWN, errno.EAGAIN), framing)
    assert wire.send(frame)
    assert wire.receive(frame) is None
    assert (wire.lost, wire.refused) == (1, 0)


class Deferring:
    """Both sockets of a wire whose frames come out some time after they were sent: while somebody waits for them."""

    def __init__(self, buffer_bytes: int) -> None:
        self.buffer_bytes = buffer_bytes
        self.underway: deque[bytes] = deque()
        self.there: deque[bytes] = deque()
        self.longest = 0

    def send(self, data: bytes) -> int:
        self.underway.append(data)
        self.longest = max(self.longest, len(self.underway) + len(self.there))
        return len(data)

    def recv(self, size: int) -> bytes:
        if not self.there:
            raise BlockingIOError
        return self.there.popleft()

    def recv_into(self, buffer: bytearray) -> int:
        data = self.recv(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def getsockopt(self, level: int, option: int) -> int:
        return self.buffer_bytes

    def wait(self, *_: object) -> None:
        self.there += self.underway
        self.underway.clear()


@pytest.mark.parametrize(("buffer_bytes", "frames"), [(2_304, 1), (212_992, 2), (425_984, 5), (1 << 23, 32)])
def test_a_quarter_of_the_buffer_at_most_waits_in_the_kernel(
    buffer_bytes: int, frames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    framing, kernel = StubFraming(), Deferring(buffer_bytes)
    monkeypatch.setattr(veth, "wait_for_frame", kernel.wait)
    wire = VethWire("h0-leaf0", kernel, kernel, framing)  # type: ignore[arg-type]
    flight = [make_frame(framing, psn, bytes(9000)) for psn in range(100)]
    assert all([wire.send(frame) for frame in flight])
    assert [wire.receive(frame) for frame in flight] == flight
    assert (kernel.longest, wire.lost, wire.disturbed) == (frames, 0, False)


def test_frames_that_never_come_are_not_waited_for_at_each_send(monkeypatch: pytest.MonkeyPatch) -> None:
    framing, kernel, waits = StubFraming(), Deferring(212_992), []
    monkeypatch.setattr(patience, "PATIENCE_S", 0)
    monkeypatch.setattr(patience, "SHORT_PATIENCE_S", 0)
    monkeypatch.setattr(veth, "wait_for_frame", lambda *_: waits.append(1))
    wire = VethWire("h0-leaf0", kernel, kernel, framing)  # type: ignore[arg-type]
    flight = [make_frame(framing, psn) for psn in range(10)]
    assert all([wire.send(frame) for frame in flight])
    assert len(waits) == 8  # two fit
    assert wire.receive(flight[0]) is None
    assert wire.send(make_frame(framing, 10))
    assert len(waits) == 8
