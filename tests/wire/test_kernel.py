"""What the kernel may answer to a send or a receive, and how much the wire leaves with it; over made-up sockets."""

from __future__ import annotations

import errno
from collections import deque

import pytest

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


@pytest.mark.parametrize("reason", [errno.ENOBUFS, errno.ENETDOWN, errno.ENXIO, errno.EAGAIN])
def test_a_refused_frame_is_lost_now(reason: int) -> None:
    framing, near, far = StubFraming(), Broken(reason, reason, b"taken"), Broken()
    wire = VethWire("h0-leaf0", near, far, framing)  # type: ignore[arg-type]
    first, second, third = (make_frame(framing, psn) for psn in range(3))
    assert (wire.send(first), wire.send(second), wire.send(third)) == (False, False, True)
    assert third.data is not None
    far.outcomes = [third.data]
    assert wire.receive(third) is third
    assert (wire.refused, wire.lost, wire.disturbed, len(wire.warnings)) == (2, 2, True, 1)


def test_other_errors_are_not_swallowed() -> None:
    framing = StubFraming()
    wire = VethWire("h0-leaf0", Broken(errno.EINVAL), Broken(), framing)  # type: ignore[arg-type]
    with pytest.raises(OSError):
        wire.send(make_frame(framing, 1))


def test_a_pending_enetdown_is_read_over() -> None:
    framing, far = StubFraming(), Broken()
    wire = VethWire("h0-leaf0", Broken(b"taken", b"taken"), far, framing)  # type: ignore[arg-type]
    first, second = make_frame(framing, 1), make_frame(framing, 2)
    wire.send(first)
    wire.send(second)
    assert first.data is not None
    assert second.data is not None
    far.outcomes = [errno.ENETDOWN, first.data, second.data, errno.EAGAIN]
    assert wire.receive(first) is first
    assert wire.receive(second) is second
    assert wire.lost == 0


class Kernel(deque[bytes]):
    """Both sockets of a wire: a queue that remembers how long it was."""

    longest = 0
    shut = False  # nothing comes out yet

    def send(self, data: bytes) -> int:
        self.append(data)
        self.longest = max(self.longest, len(self))
        return len(data)

    def recv(self, size: int) -> bytes:
        if not self or self.shut:
            raise BlockingIOError
        return self.popleft()

    def recv_into(self, buffer: bytearray) -> int:
        data = self.recv(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def getsockopt(self, level: int, option: int) -> int:
        return 212_992


@pytest.mark.parametrize(("size_bytes", "frames"), [(9000, 2), (4096, 5), (64, 32)])
def test_a_quarter_of_the_buffer_at_most_waits_in_the_kernel(size_bytes: int, frames: int) -> None:
    framing, kernel = StubFraming(), Kernel()
    wire = VethWire("h0-leaf0", kernel, kernel, framing)  # type: ignore[arg-type]
    flight = [make_frame(framing, psn, bytes(size_bytes)) for psn in range(100)]
    assert all([wire.send(frame) for frame in flight])
    assert [wire.receive(frame) for frame in flight] == flight
    assert (kernel.longest, wire.system_calls, wire.lost) == (frames, 200, 0)
