"""A veth wire over a socket pair that stands in for the veth, and ways to do mischief at both its ends."""

from __future__ import annotations

import socket
from typing import cast

from emu.frame import Frame
from emu.wire.veth import VethWire
from tests.wire.stub import StubFraming, make_frame

FOREIGN = b"\xff" * 12 + b"\x08\x06" + b"who has 10.0.0.2? tell"


class Gate:
    """The far end's socket; while it is shut, nothing has come out yet."""

    def __init__(self, far: socket.socket) -> None:
        self.far, self.shut = far, False
        self.getsockopt, self.fileno = far.getsockopt, far.fileno

    @classmethod
    def before(cls, wire: VethWire) -> Gate:
        """Put one before a wire's far end."""
        gate = cls(wire.receiver)
        wire.receiver = cast(socket.socket, gate)
        wire._read_into = gate.recv_into  # type: ignore[assignment]
        return gate

    def recv(self, size: int) -> bytes:
        """As a socket's."""
        if self.shut:
            raise BlockingIOError
        return self.far.recv(size)

    def recv_into(self, buffer: bytearray) -> int:
        """As a socket's."""
        if self.shut:
            raise BlockingIOError
        return self.far.recv_into(buffer)

    def swallow(self, count: int = 1) -> list[bytes]:
        """Take bytes away before the wire sees them."""
        return [self.far.recv(9216) for _ in range(count)]


class Pair:
    """A wire and its two ends."""

    def __init__(self, near: socket.socket, far: socket.socket) -> None:
        self.near = near
        self.framing = StubFraming()
        self.wire = VethWire("h0-leaf0", near, far, self.framing)
        self.gate = Gate.before(self.wire)
        self.swallow = self.gate.swallow

    def frame(self, psn: int) -> Frame:
        """A frame not sent yet."""
        return make_frame(self.framing, psn, b"payload %d " % psn * 20)

    def hold(self, *frames: Frame) -> None:
        """Send frames that have not come out yet: all are in flight."""
        self.gate.shut = True
        assert all([self.wire.send(frame) for frame in frames])
        self.gate.shut = False

    def frames(self, *psns: int) -> list[Frame]:
        """Frames sent that are still on their way."""
        frames = [self.frame(psn) for psn in psns]
        self.hold(*frames)
        return frames
