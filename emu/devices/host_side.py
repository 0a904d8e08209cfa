"""What a NIC knows of the host that it sits in: where work requests come from, and where bytes and CQEs go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from emu.devices.queue_pair import QueuePairState
from emu.frame import Frame
from emu.transport.answer import AnyAnswer
from emu.transport.received import Received
from emu.transport.requester import Completion
from emu.transport.work import Places, SendWqe


class HostSide(Protocol):
    """Between a program and its NIC. Without one, fixed legs stand for it (`NicTiming`)."""

    def attach(self, qp_num: int, state: QueuePairState) -> None:
        """A queue pair may post from now on."""

    def detach(self, state: QueuePairState) -> None:
        """A queue pair is reset: nothing comes of what it posted."""

    def post(self, state: QueuePairState, wqe: SendWqe) -> None:
        """The program posts a work request now."""

    def land(self, places: Places, frame: Frame, *, ends: bool) -> None:
        """The NIC took the frame, and its payload for those places; `ends`: with it its message is whole."""

    def finished(self, state: QueuePairState, done: Sequence[Completion]) -> None:
        """The transport has finished work requests, in their order."""

    def received(self, state: QueuePairState, receives: Sequence[Received]) -> None:
        """The transport has used receives, in their order."""

    def owe(self, state: QueuePairState, answer: AnyAnswer) -> None:
        """Read what the answer brings; then, and after those before it, the NIC owes it."""
