"""Connections made in model time: REQ, REP and RTU over QP1, sent again until answered; REJ, DREQ and DREP.

IBTA vol. 1, 12.9, without a TIMEWAIT: numbers of queue pairs and communications are never used twice here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from emu.addresses import Address
from emu.engine import Future
from emu.errors import ScenarioError, VerbsError
from emu.transport import cm
from emu.transport.cm import Mad
from emu.transport.cm_message import Drep, Dreq, Reason, Rej, Rejected, Rep, Req, Rtu, Service
from emu.verbs.cm_connection import Accept, CmConfig, Connection, Reject, Request, State
from emu.verbs.cm_terms import attr_of, rep_of, req_of, request_of
from emu.verbs.domain import Device
from emu.verbs.gsi import Gsi
from emu.verbs.qp import QP
from emu.verbs.state import QPState, QPType

__all__ = ["Accept", "CmConfig", "Connection", "Listener", "Manager", "Managers", "NotConnected", "Reject", "Request"]

SERVICES = {QPType.RC: Service.RC, QPType.UC: Service.UC}
QueuePairs = dict[tuple[int, int], QP]
"""By LID and number: a peer's queue pair, where results want to know more of it than messages say."""


class NotConnected(VerbsError):  # noqa: N818 - a state of affairs
    """A connection was refused, or nobody answered in time; `reason` is a REJ's, `private_data` what came with it."""

    def __init__(self, text: str, reason: int, private_data: bytes = b"") -> None:
        super().__init__(text)
        self.reason, self.private_data = reason, private_data


class Listener:
    """Waits for connections to a service; `accept` says what becomes of each request."""

    def __init__(self, accept: Callable[[Request], Accept | Reject]) -> None:
        self.accept = accept
        self._made: deque[Connection] = deque()
        self._waiter: Future | None = None

    async def next(self) -> Connection:
        """The next connection that is established (one coroutine may wait at a time)."""
        while not self._made:
            self._waiter = Future()
            await self._waiter
        return self._made.popleft()

    def add(self, connection: Connection) -> None:
        """One is established."""
        self._made.append(connection)
        if self._waiter is not None:
            waiter, self._waiter = self._waiter, None
            waiter.resolve()


class Manager:
    """One host's communication manager."""

    def __init__(self, context: Device, queue_pairs: QueuePairs) -> None:
        """Raises VerbsError where the host has one already."""
        self._context, self._queue_pairs = context, queue_pairs
        self.gsi = Gsi(context, self._take)
        self._listeners: dict[int, Listener] = {}
        self._connections: dict[int, Connection] = {}  # by our number
        self._asked: dict[tuple[int, int], Connection] = {}  # by who asked, and their number
        self._next_id = context.address.lid << 16 | 1

    def listen(self, service_id: int, accept: Callable[[Request], Accept | Reject]) -> Listener:
        """Take requests for a service. Raises VerbsError where somebody does already."""
        if service_id in self._listeners:
            raise VerbsError(f"service {service_id:#x} has a listener already")
        listener = self._listeners[service_id] = Listener(accept)
        return listener

    async def connect(
        self,
        qp: QP,
        peer: Address,
        service_id: int,
        *,
        private_data: bytes = b"",
        first_psn: int = 0,
        config: CmConfig | None = None,
    ) -> Connection:
        """Connect a queue pair in RESET or INIT; it is in RTS then. Returns within `config.limit_ps`.

        Raises NotConnected when refused or not answered; VerbsError for a queue pair that cannot be connected.
        """
        if qp.qp_type not in SERVICES or qp.state not in (QPState.RESET, QPState.INIT):
            raise VerbsError(
                f"queue pair {qp.qp_num:#x} is {qp.qp_type.name} in {qp.state.name}: RC or UC, not ready yet"
            )
        connection = self._open(qp, peer, config or CmConfig(), first_psn)
        connection.transaction = connection.local_id
        if qp.state is QPState.RESET:
            qp.modify(QPState.INIT)
        req = req_of(connection, self._context, service_id, SERVICES[qp.qp_type], self._level(qp), private_data)
        connection.state = State.REQ_SENT
        began_ps, taps = self._context.engine.now_ps, self._context.taps
        connection.send(req)
        await connection.settled
        if taps.connection_settled:
            took_ps = self._context.engine.now_ps - began_ps
            taps.connection_settled(self._context.name, peer.name, took_ps, connection.why)
        if connection.state is not State.ESTABLISHED:
            raise NotConnected(connection.why, connection.reason, connection.private_data)
        return connection

    async def disconnect(self, connection: Connection) -> None:
        """End it: the queue pair goes to the error state, and so does the peer's when it hears of it, or never does."""
        if connection.state is State.ESTABLISHED:
            connection.state = State.DREQ_SENT
            connection.qp.modify(QPState.ERR)
            dreq = Dreq(local_id=connection.local_id, remote_id=connection.remote_id, remote_qpn=connection.remote_qpn)
            connection.send(dreq)
        await connection.ended

    def _open(self, qp: QP, peer: Address, config: CmConfig, first_psn: int) -> Connection:
        def post(mad: Mad) -> None:
            self.gsi.send(peer, mad)

        connection = Connection(self._context.engine, qp, peer, self._next_id, config, first_psn, post, self._expired)
        self._connections[self._next_id] = connection
        self._queue_pairs[self._context.address.lid, qp.qp_num] = qp
        self._next_id += 1
        return connection

    def _level(self, qp: QP) -> int:
        return self.gsi.priority if qp.priority is None else qp.priority

    def _take(self, sender: Address, mad: Mad) -> None:
        message = mad.message
        match message:
            case Req():
                self._on_req(sender, mad.transaction, message)
            case Rep():
                self._on_rep(sender, mad.transaction, message)
            case Rtu():
                self._on_rtu(message)
            case Rej():
                self._on_rej(sender, message)
            case Dreq():
                self._on_dreq(sender, mad.transaction, message)
            case Drep():
                connection = self._find(message.remote_id, message.local_id)
                if connection is not None and connection.state is State.DREQ_SENT:
                    self._close(connection)

    def _find(self, local_id: int, remote_id: int) -> Connection | None:
        """The connection of that number, if the peer's number is right."""
        connection = self._connections.get(local_id)
        return connection if connection is not None and connection.remote_id == remote_id else None

    def _on_req(self, sender: Address, transaction: int, req: Req) -> None:
        known = self._asked.get((sender.lid, req.local_id))
        if known is not None:
            if known.state is State.REP_SENT:
                known.send_again()
            return
        listener = self._listeners.get(req.service_id)
        if listener is None:
            self._reject(sender, transaction, req, Reason.INVALID_SERVICE_ID)
        elif cm.MTU_BYTES.get(req.mtu_code, 1 << 16) > self._context.config.path_mtu_bytes:
            self._reject(sender, transaction, req, Reason.INVALID_PATH_MTU)
        elif not self._has_level(sender, req.primary.sl):
            self._reject(sender, transaction, req, Reason.INVALID_SL)
        else:
            answer = listener.accept(request_of(sender, req))
            if isinstance(answer, Reject):
                self._reject(sender, transaction, req, answer.reason, answer.private_data)
            elif SERVICES.get(answer.qp.qp_type) != req.service:
                self._reject(sender, transaction, req, Reason.INVALID_SERVICE_TYPE)
            else:
                self._grant(sender, transaction, req, answer, listener)

    def _has_level(self, peer: Address, level: int) -> bool:
        """Whether frames to that peer may have this SL or 802.1p priority."""
        try:
            self._context.envelopes(self._context.address, peer, cm.GSI_QP, cm.GSI_QP, level)
        except ScenarioError:
            return False
        return True

    def _grant(self, sender: Address, transaction: int, req: Req, answer: Accept, listener: Listener) -> None:
        qp = answer.qp
        if qp.state is QPState.RESET:
            qp.modify(QPState.INIT)
        config = CmConfig(timeout_code=req.local_timeout, retries=req.max_cm_retries)
        connection = self._open(qp, sender, config, answer.first_psn)
        connection.transaction, connection.remote_id = transaction, req.local_id
        connection.remote_qpn, connection.private_data = req.qpn, req.private_data
        connection.asked, connection.listener = req, listener
        self._asked[sender.lid, req.local_id] = connection
        qp.priority = req.primary.sl
        qp.peer = self._queue_pairs.get((sender.lid, req.qpn))
        rep = rep_of(connection, self._context, req, answer.private_data)
        connection.attr = attr_of(connection, self._context, req, rep)
        qp.modify(QPState.RTR, connection.attr)
        connection.state = State.REP_SENT
        connection.send(rep)

    def _on_rep(self, sender: Address, transaction: int, rep: Rep) -> None:
        connection = self._connections.get(rep.remote_id)
        if connection is None or connection.state not in (State.REQ_SENT, State.ESTABLISHED):
            rej = Rej(
                local_id=rep.remote_id, remote_id=rep.local_id, rejected=Rejected.REP, reason=Reason.INVALID_COMM_ID
            )
            self.gsi.send(sender, Mad(transaction, rej))
            return
        if connection.state is State.REQ_SENT:
            connection.remote_id, connection.remote_qpn = rep.local_id, rep.qpn
            connection.private_data = rep.private_data
            attr = attr_of(connection, self._context, None, rep)
            connection.qp.peer = self._queue_pairs.get((sender.lid, rep.qpn))
            connection.qp.modify(QPState.RTR, attr)
            connection.qp.modify(QPState.RTS, attr)
        if connection.remote_id == rep.local_id:  # also when it comes again: the RTU was lost
            connection.post(Rtu(local_id=connection.local_id, remote_id=connection.remote_id))
        if connection.state is State.REQ_SENT:
            connection.establish()  # last, so that no data goes before the RTU

    def _on_rtu(self, rtu: Rtu) -> None:
        connection = self._find(rtu.remote_id, rtu.local_id)
        if connection is None or connection.state is not State.REP_SENT or connection.qp.state is not QPState.RTR:
            return  # a queue pair that has broken meanwhile never sends: the REP's tries run out
        connection.qp.modify(QPState.RTS, connection.attr)
        connection.establish()
        if isinstance(connection.listener, Listener):
            connection.listener.add(connection)

    def _on_rej(self, sender: Address, rej: Rej) -> None:
        connection = self._connections.get(rej.remote_id) or self._asked.get((sender.lid, rej.local_id))
        if connection is not None and connection.state in (State.REQ_SENT, State.REP_SENT):
            connection.private_data = rej.private_data
            self._fail(connection, rej.reason, f"{connection.peer.name} refused: {_reason_text(rej.reason)}")

    def _on_dreq(self, sender: Address, transaction: int, dreq: Dreq) -> None:
        drep = Drep(local_id=dreq.remote_id, remote_id=dreq.local_id)
        self.gsi.send(sender, Mad(transaction, drep))  # to one that is gone, too
        connection = self._find(dreq.remote_id, dreq.local_id)
        if connection is not None and connection.state is not State.CLOSED:
            if connection.qp.state is not QPState.ERR:
                connection.qp.modify(QPState.ERR)
            self._close(connection)

    def _reject(self, sender: Address, transaction: int, req: Req, reason: int, private_data: bytes = b"") -> None:
        rej = Rej(local_id=0, remote_id=req.local_id, rejected=Rejected.REQ, reason=reason, private_data=private_data)
        self.gsi.send(sender, Mad(transaction, rej))

    def _expired(self, connection: Connection) -> None:
        """Every try has gone unanswered."""
        if connection.state is State.DREQ_SENT:
            self._close(connection)
            return
        was = Rejected.REQ if connection.state is State.REQ_SENT else Rejected.REP
        rej = Rej(local_id=connection.local_id, remote_id=connection.remote_id, rejected=was, reason=Reason.TIMEOUT)
        connection.post(rej)
        self._fail(connection, Reason.TIMEOUT, f"{connection.peer.name} did not answer")

    def _fail(self, connection: Connection, reason: int, why: str) -> None:
        connection.reason, connection.why = reason, why
        connection.qp.modify(QPState.ERR)
        self._close(connection)

    def _close(self, connection: Connection) -> None:
        self._connections.pop(connection.local_id, None)
        self._asked.pop((connection.peer.lid, connection.remote_id), None)
        connection.close()


class Managers:
    """The communication managers of a fabric's hosts, each made when it is first asked for."""

    def __init__(self) -> None:
        self._managers: dict[int, Manager] = {}
        self._queue_pairs: QueuePairs = {}

    def of(self, context: Device) -> Manager:
        """The host's."""
        lid = context.address.lid
        if lid not in self._managers:
            self._managers[lid] = Manager(context, self._queue_pairs)
        return self._managers[lid]


def _reason_text(reason: int) -> str:
    names = {each.value: each.name.lower().replace("_", " ") for each in Reason}
    return names.get(reason, f"reason {reason}")
