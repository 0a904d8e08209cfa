"""What a NIC holds of one connected queue pair."""

from __future__ import annotations

from collections.abc import Callable

from emu.congestion.base import RateControl
from emu.engine import Timer
from emu.frame import Envelope
from emu.transport.requester import Completion, Requester
from emu.transport.responder import Answer, Responder

RateMaker = Callable[[], RateControl]


class QueuePairState:
    """Its two machines, its headers, and where it stands in its NIC's turns."""

    __slots__ = (
        "answer",
        "armed_ps",
        "complete",
        "envelope",
        "make_rate",
        "notice_envelope",
        "pacer",
        "queued",
        "rate",
        "requester",
        "responder",
        "timer",
    )

    def __init__(
        self,
        envelope: Envelope,
        requester: Requester,
        responder: Responder,
        complete: Callable[[Completion], object],
    ) -> None:
        self.envelope = envelope
        self.requester = requester
        self.responder = responder
        self.complete = complete
        self.answer: Answer | None = None  # owed and ready to leave; a newer one is merged into it
        self.queued = False  # whether it waits for its turn to send, or for its pacing
        self.armed_ps = -1
        self.timer: Timer | None = None
        self.notice_envelope: Envelope | None = None  # of the CNPs it answers marked frames with
        self.make_rate: RateMaker | None = None  # called before it first sends
        self.rate: RateControl | None = None  # None: it sends at line rate
        self.pacer: Timer | None = None  # runs while its rate keeps it from sending
