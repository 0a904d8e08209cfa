"""What a NIC holds of one connected queue pair."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from emu import opcodes
from emu.congestion.base import RateControl
from emu.engine import Timer
from emu.frame import Envelope, Frame
from emu.transport.answer import AnyAnswer
from emu.transport.memory import MemoryTable
from emu.transport.received import Received
from emu.transport.requester import Completion
from emu.transport.selective import SelectiveRequester, SelectiveResponder
from emu.transport.work import Places, SendWqe

RateMaker = Callable[[], RateControl]


class SendSide(Protocol):
    """A requester of any transport. `finished`: what sending itself has finished; `fetched`: what has come back.

    `landed`: where the payload of the last response went.
    """

    deadline_ps: int
    failed: bool
    fetched: SendWqe | None
    fetched_bytes: int
    is_starved: bool
    landed: Places

    finished: list[Completion]

    def look_again(self) -> None: ...

    def post(self, wqe: SendWqe) -> None: ...
    def withdraw(self) -> list[SendWqe]: ...
    def can_send(self) -> bool: ...
    def next_frame(self, now_ps: int) -> Frame: ...
    def on_acknowledge(self, frame: Frame, now_ps: int) -> list[Completion]: ...
    def on_response(self, frame: Frame, now_ps: int) -> list[Completion]: ...
    def on_deadline(self, now_ps: int) -> list[Completion]: ...
    def flush(self) -> list[Completion]: ...


class ReceiveSide(Protocol):
    """A responder of any transport. `completions`: receives used since they were last taken."""

    completions: list[Received]
    failed: bool
    landed: Places
    message_done: bool

    @property
    def received_bytes(self) -> int: ...
    def on_request(self, frame: Frame) -> AnyAnswer | None: ...
    def flush(self) -> list[Received]: ...


class QueuePairState:
    """Its two machines, its headers, and where it stands in its NIC's turns."""

    __slots__ = (
        "answers",
        "armed_ps",
        "complete",
        "early_limit",
        "envelope",
        "holds_early",
        "is_answering",
        "is_broken",
        "is_mute",
        "memory",
        "mtu_bytes",
        "notice_envelope",
        "on_broken",
        "pacer",
        "parked",
        "queued",
        "rate",
        "receive",
        "requester",
        "responder",
        "starved_ps",
        "timer",
        "transport",
    )

    def __init__(
        self,
        envelope: Envelope,
        requester: SendSide,
        responder: ReceiveSide,
        complete: Callable[[Completion], object],
        receive: Callable[[Received], object],
        transport: int = opcodes.RC,
    ) -> None:
        """`complete` gets each finished work request, `receive` each receive that was used."""
        self.envelope = envelope
        self.requester = requester
        self.responder = responder
        self.complete = complete
        self.receive = receive
        self.transport = transport  # the part of opcodes that says which
        self.on_broken: Callable[[], object] | None = None
        self.is_broken = False  # in error, and flushed
        self.is_mute = False  # in error by itself, or reset: it answers nothing more
        self.parked: list[SendWqe] | None = None  # what waits while the send queue drains; None: it does not drain
        self.holds_early = isinstance(responder, SelectiveResponder)  # and so does its requester
        self.early_limit = responder.hold_packets if isinstance(responder, SelectiveResponder) else 0
        self.answers: deque[AnyAnswer] = deque()  # owed and ready to leave, in order
        self.is_answering = False  # whether it waits for its turn to answer
        self.queued = False  # whether it waits for its turn to send, or for its pacing
        self.armed_ps = -1
        self.timer: Timer | None = None
        self.notice_envelope: Envelope | None = None  # of the CNPs it answers marked frames with
        self.rate: RateControl | None = None  # None: it sends at line rate
        self.memory: MemoryTable | None = None  # its protection domain's; None: no program posts to it
        self.mtu_bytes = 0
        self.starved_ps = (-1, 0)  # since when its bytes are waited for, and what its lane's waits had been by then
        self.pacer: Timer | None = None  # runs while its rate keeps it from sending

    def next_request(self) -> Frame | None:
        """What came before its turn, and now it is."""
        return self.responder.next_held() if isinstance(self.responder, SelectiveResponder) else None

    def next_response(self) -> Frame | None:
        """The same of what comes back."""
        return self.requester.next_held() if isinstance(self.requester, SelectiveRequester) else None
