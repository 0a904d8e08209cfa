"""Where a link ends at a node: what comes in is counted there, and what the peer's flow control says is heard there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from emu.engine import Engine
from emu.frame import ControlFrame, Frame


class Forwarder(Protocol):
    """The switch behind an ingress."""

    def receive(self, frame: Frame) -> None:
        """A frame comes out of the pipeline."""

    def refuse(self, frame: Frame, *, lossless: bool, place: str) -> None:
        """There was no room for a frame."""


class Beside(Protocol):
    """The egress beside an ingress, as far as it is needed here."""

    name: str
    rate_bps: int
    credit_frames: int
    pause_frames: int

    def kick(self) -> None: ...
    def recheck(self) -> None: ...
    def hand_over(self, frame: ControlFrame, delay_ps: int) -> None: ...


class Ingress:
    """A link without flow control: nothing is counted and nothing is said. Others derive from it."""

    __slots__ = ("_engine", "due", "number", "port")

    grants_credits = False

    def __init__(self, engine: Engine, number: int, port: Beside) -> None:
        self._engine = engine
        self.number = number  # of the port, at its node
        self.port = port  # the egress beside it, which leads to the peer
        self.due = 0  # other than 0: a control frame should leave as soon as the wire is free

    def control_frame(self) -> ControlFrame:
        """The one that leaves now; only while one is `due`."""
        raise NotImplementedError

    def on_control(self, control: Any) -> None:
        """The last bit of a control frame from the peer is in; one that is not understood is ignored."""

    def on_counts(self, control: Any) -> None:
        """The last bit of a control frame that is to be heard late is in: what is true of this instant alone."""

    def on_late(self, control: Any) -> None:
        """Such a frame is heard."""
        self.on_control(control)

    def interpose(self, between: Forwarder) -> bool:
        """Whether what was counted in here goes on by `between`, from now on; else nothing is counted in here."""
        return False

    def copy_in(self, frame: Frame) -> bool:
        """A copy of a frame that came in here, and that nobody sent, is to go on too; returns whether it may."""
        return True

    def on_stranger(self, control: Any) -> None:
        """A control frame that nobody in the model sent."""

    def take_in(self, frame: Frame, deliver: Callable[[Frame], object]) -> None:
        """A frame that nobody in the model sent is in, to be treated like any other."""
        frame.ingress = self
        deliver(frame)

    def may_start(self, frame: Frame) -> bool:
        """Whether the peer lets this frame start now."""
        return True

    def started(self, frame: Frame) -> None:
        """Its first bit leaves."""

    def release(self, frame: Frame) -> None:
        """The last bit of a frame that came in here is out again, or it was dropped."""

    def paused_ps(self) -> int:
        """For how long the peer's pauses were in force so far, the priorities' added up."""
        return 0

    def lost(self, frame: Frame) -> None:
        """A frame that left by the port beside was lost on the link."""
