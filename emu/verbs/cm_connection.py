"""One connection as its communication manager knows it: its state, what it awaits, and the MAD it sends until then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from emu.addresses import Address
from emu.engine import Engine, Future, Timer
from emu.transport.cm import TIMEOUT_UNIT_PS, Mad
from emu.transport.cm_message import Message, Reason, Req
from emu.verbs.qp import QP
from emu.verbs.state import QPAttr


class State(Enum):
    """Where a connection is (IBTA vol. 1, 12.9.3)."""

    IDLE = "idle"
    REQ_SENT = "REQ sent"
    REP_SENT = "REP sent"
    ESTABLISHED = "established"
    DREQ_SENT = "DREQ sent"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class CmConfig:
    """How long a MAD's answer is awaited (a code), and how often it is sent again; Linux's values unless given."""

    timeout_code: int = 20
    retries: int = 15

    @property
    def timeout_ps(self) -> int:
        """How long one try waits, in picoseconds."""
        return TIMEOUT_UNIT_PS << self.timeout_code

    @property
    def limit_ps(self) -> int:
        """When every try has failed, in picoseconds from the first."""
        return self.timeout_ps * (self.retries + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What somebody who asks for a connection says of it."""

    peer: Address
    service_id: int
    path_mtu_bytes: int
    responder_resources: int  # READs and atomics that may be outstanding to them
    initiator_depth: int  # and from them
    private_data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Accept:
    """Connect this queue pair, in RESET or INIT, of the type that is asked for."""

    qp: QP
    private_data: bytes = b""
    first_psn: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    """Do not connect."""

    private_data: bytes = b""
    reason: int = Reason.CONSUMER


class Connection:
    """`settled`: established or not; `ended`: it is over. `private_data` is the peer's."""

    def __init__(
        self,
        engine: Engine,
        qp: QP,
        peer: Address,
        local_id: int,
        config: CmConfig,
        first_psn: int,
        post: Callable[[Mad], object],
        expired: Callable[[Connection], object],
    ) -> None:
        self.qp, self.peer, self.local_id, self.first_psn = qp, peer, local_id, first_psn
        self.config = config
        self.state = State.IDLE
        self.remote_id = self.remote_qpn = self.transaction = 0
        self.private_data, self.reason, self.why = b"", 0, ""
        self.asked: Req | None = None  # what the peer asked, if it did
        self.attr: QPAttr | None = None  # what the queue pair is told on its way to RTS
        self.listener: object = None
        self.settled, self.ended = Future(), Future()
        self.sends = 0  # MADs that await an answer, and their repeats
        self._engine, self._post, self._expired = engine, post, expired
        self._timer = Timer(engine, self._timed_out)
        self._awaiting: Message | None = None
        self._left = 0

    def post(self, message: Message) -> None:
        """Send what needs no answer."""
        self._post(Mad(self.transaction, message))

    def send(self, message: Message) -> None:
        """Send what is sent again until it is answered."""
        self._awaiting, self._left = message, self.config.retries
        self.send_again()

    def send_again(self) -> None:
        """Send the same once more; its time begins anew."""
        if self._awaiting is not None:
            self.sends += 1
            self.post(self._awaiting)
            self._timer.start(self._engine.now_ps + self.config.timeout_ps)

    def establish(self) -> None:
        """Both may use it."""
        self.state = State.ESTABLISHED
        self._timer.stop()
        self.settled.resolve()

    def close(self) -> None:
        """It is over, or never was."""
        self.state = State.CLOSED
        self._timer.stop()
        self.settled.resolve()
        self.ended.resolve()

    def _timed_out(self) -> None:
        if not self._left:
            self._expired(self)
            return
        self._left -= 1
        self.send_again()
