"""Queue pairs: their states, and what is posted to them."""

from __future__ import annotations

from dataclasses import replace

from emu.addresses import Address
from emu.devices.queue_pair import QueuePairState
from emu.errors import ScenarioError, VerbsError
from emu.frame import Envelope, Message
from emu.transport.receive_queue import ReceiveQueue
from emu.transport.received import Received
from emu.transport.requester import Completion
from emu.transport.wc import WcStatus
from emu.transport.work import RecvWqe, SendWqe
from emu.verbs.attributes import merged
from emu.verbs.cq import CQ
from emu.verbs.domain import Domain
from emu.verbs.entry import of_receive, of_send
from emu.verbs.machines import TRANSPORTS, configure, requester_of, responder_of
from emu.verbs.numbers import coerced, within
from emu.verbs.posting import wqe_of
from emu.verbs.srq import SRQ
from emu.verbs.state import QPAttr, QPState, QPType, may_move
from emu.verbs.wr import RecvWR, SendWR

__all__ = ["QP", "TRANSPORTS"]


class QP:
    """A queue pair. Raises VerbsError where libibverbs' calls return an error."""

    def __init__(
        self,
        pd: Domain,
        send_cq: CQ,
        recv_cq: CQ,
        srq: SRQ | None,
        *,
        qp_type: QPType,
        max_send_wr: int,
        max_recv_wr: int,
        max_inline_data: int,
        kind: str,
        priority: int | None,
    ) -> None:
        within("max_send_wr", max_send_wr, 32)
        within("max_inline_data", max_inline_data, 32)
        self.pd = pd
        self.kind, self.priority = kind, priority
        self.origin: object = None  # what its workload knows it by
        self.expected = 0  # messages it will post in all, as far as its workload says; 0: it does not
        self.send_cq, self.recv_cq = send_cq, recv_cq
        self.qp_type = qp_type
        self.max_send_wr = max_send_wr
        self.max_inline_data = max_inline_data
        self.qp_num = pd.context.nic.allocate_qp()
        self.state = QPState.RESET
        self.peer: QP | None = None
        self.posted = 0
        self.attr = QPAttr()
        self._outstanding = 0
        self._receives = srq.queue if srq is not None else ReceiveQueue(max_recv_wr)
        self._state: QueuePairState | None = None
        self._connections = 0  # so far, those that RESET has ended included
        self._envelope: Envelope | None = None
        self._peer_was: QP | None = None  # before it was reset
        self._taken_bytes = self._fetched_bytes = 0  # before it was reset
        self._ways: dict[tuple[int, int | None, int], Envelope] = {}  # datagrams' headers, by where they go
        for cq in {id(cq): cq for cq in (send_cq, recv_cq)}.values():
            cq.attach(self._cq_overran)

    @property
    def envelope(self) -> Envelope:
        """The headers its frames share, or shared before it was reset. Raises VerbsError if it never had any."""
        if self._envelope is None:
            raise VerbsError(f"queue pair {self.qp_num:#x} is not connected")
        return self._envelope

    @property
    def source(self) -> str:
        """The host it sends from."""
        return self.pd.context.name

    @property
    def far(self) -> QP | None:
        """Its peer, or the one that it had before it was reset: results tell of its messages still."""
        return self.peer or self._peer_was

    @property
    def destination(self) -> str:
        """The host it sends to, or did before it was reset; empty before `connect`."""
        return self.far.source if self.far else ""

    @property
    def received_bytes(self) -> int:
        """Payload of its messages that is where it belongs so far, in order: at its peer, or fetched from there."""
        return self.fetched_bytes + (self.far.taken_bytes if self.far else 0)

    @property
    def fetched_bytes(self) -> int:
        """Payload that its own READs and atomics have brought, before it was reset too."""
        return self._fetched_bytes + (self._state.requester.fetched_bytes if self._state is not None else 0)

    @property
    def taken_bytes(self) -> int:
        """Payload that came to this queue pair and was accepted, before it was reset too."""
        return self._taken_bytes + (self._state.responder.received_bytes if self._state is not None else 0)

    @property
    def receives(self) -> ReceiveQueue:
        """Its receive queue, or the shared one that it takes from."""
        return self._receives

    @property
    def mtu_bytes(self) -> int:
        """The payload of its largest packets."""
        return self.attr.path_mtu_bytes or self.pd.context.config.path_mtu_bytes

    @property
    def read_depth(self) -> int:
        """How many READs and atomics it may have outstanding."""
        depth = self.attr.max_rd_atomic
        return self.pd.context.config.max_rd_atomic if depth is None else depth

    def modify(self, state: QPState, attr: QPAttr | None = None) -> None:
        """`ibv_modify_qp`. Raises VerbsError, and changes nothing, for a move that there is not, attributes that are
        missing, wrong or not to be changed in that move, and to INIT with a CQ that overran."""
        state = coerced(QPState, state, "a queue pair's state")
        if not may_move(self.state, state):
            raise VerbsError(f"queue pair {self.qp_num:#x} is {self.state.name}: it cannot go to {state.name}")
        if state is QPState.INIT:
            self.send_cq.check()
            self.recv_cq.check()
        before = self.attr
        self.attr = merged(before, attr, self.state, state, self.pd.context.config.path_mtu_bytes)
        try:
            self._move(state)
        except VerbsError:
            self.attr = before
            raise
        self.state = state

    def _move(self, state: QPState) -> None:
        nic = self.pd.context.nic
        if state is QPState.RESET:
            self._reset()
        elif state is QPState.ERR:
            nic.break_off(self._state or self._attach(*self._way_here()))
        elif state is QPState.RTR:
            self._attach(*self._way())
        elif state is not QPState.INIT:
            attached = self._attached()
            if self.state is QPState.RTR:
                attached.requester = requester_of(self, self.attr, attached.envelope)
            configure(self, self.attr, attached)
            if state is QPState.SQD:
                nic.drain(attached)
            else:
                nic.go_on(attached)

    def connect(self, peer: QP, first_psn: int = 0, attr: QPAttr | None = None) -> None:
        """Both of them through INIT and RTR to RTS, with each other's number and address, and `attr` besides.

        Answers travel with the priority of what they answer: this queue pair's. Raises VerbsError, and changes neither,
        where they cannot be connected like that.
        """
        if self is peer or self.peer is not None or peer.peer is not None:
            raise VerbsError(f"queue pair {self.qp_num:#x} or its peer is connected already, or it is its own peer")
        if self.qp_type is not peer.qp_type or self.qp_type is QPType.UD:
            raise VerbsError("queue pairs are connected to those of their own type, RC or UC")
        psns = replace(attr or QPAttr(), rq_psn=first_psn, sq_psn=first_psn)
        for each in (self, peer):
            if each.state not in (QPState.RESET, QPState.INIT):
                raise VerbsError(f"queue pair {each.qp_num:#x} is {each.state.name}: RESET or INIT to be connected")
            merged(each.attr, psns, each.state, QPState.INIT, each.pd.context.config.path_mtu_bytes)
            each.send_cq.check()
            each.recv_cq.check()
        peer.priority = self.priority
        for here, there in ((self, peer), (peer, self)):
            here.peer = there
            there_is = replace(psns, dest=there.pd.context.address, dest_qp_num=there.qp_num)
            for state in (QPState.INIT, QPState.RTR, QPState.RTS):
                here.modify(state, there_is)

    def post_send(self, wr: SendWR) -> Message:
        """`ibv_post_send` of one work request; what comes of it appears in the send CQ.

        Raises VerbsError as the real one returns EINVAL or ENOMEM: not ready, queue full, a bad lkey, range or opcode.
        """
        context = self.pd.context
        if self.state not in (QPState.RTS, QPState.SQD, QPState.ERR, QPState.SQE):
            raise VerbsError(f"queue pair {self.qp_num:#x} is {self.state.name}: it is not connected, or not to send")
        if self._outstanding >= self.max_send_wr:
            raise VerbsError(f"the send queue of {self.max_send_wr} work requests is full")
        wqe = wqe_of(self, wr, self.posted)
        context.nic.post(self._attached(), wqe)
        self.posted += 1
        self._outstanding += 1
        if context.taps.message_posted:
            context.taps.message_posted(wqe.message)
        return wqe.message

    def post_recv(self, wr: RecvWR) -> None:
        """`ibv_post_recv`. Raises VerbsError in the reset state, with an SRQ, for a bad lkey or range, when full."""
        if self.state is QPState.RESET or self._receives.is_shared:
            raise VerbsError(f"queue pair {self.qp_num:#x} takes no receives: it is in RESET, or has an SRQ")
        wqe = RecvWqe(wr.wr_id, self.pd.scatter(wr.sg_list))
        if self.state is QPState.ERR:
            self.pd.context.nic.flush_receive(self._attached(), Received(wqe, WcStatus.WR_FLUSH_ERR, 0))
        else:
            self._receives.post(wqe)

    def _way_here(self) -> tuple[Envelope, Envelope | None]:
        """Headers of one that has no peer: datagrams have others, and in the error state there are no frames."""
        here = self.pd.context.address
        return self._headers(here, self.qp_num, self.priority)[0], None

    def _way(self) -> tuple[Envelope, Envelope | None]:
        attr = self.attr
        if self.qp_type is QPType.UD:
            return self._way_here()
        if attr.dest is None or attr.dest_qp_num is None:
            raise VerbsError(f"queue pair {self.qp_num:#x}: to be ready to receive it must know its peer's address")
        return self._headers(attr.dest, attr.dest_qp_num, self.priority)

    def _headers(self, to: Address, number: int, priority: int | None) -> tuple[Envelope, Envelope | None]:
        context = self.pd.context
        try:
            return context.envelopes(context.address, to, self.qp_num, number, priority)
        except ScenarioError as error:
            raise VerbsError(str(error)) from None

    def _attach(self, envelope: Envelope, notice: Envelope | None) -> QueuePairState:
        requester, responder = requester_of(self, self.attr, envelope), responder_of(self, self.attr)
        number = self._connections = self._connections + 1  # what a former connection has to say is heard no more

        def complete(completion: Completion) -> None:
            if number == self._connections:
                self._complete(completion)

        def receive(received: Received) -> None:
            if number == self._connections:
                self._received(received)

        state = QueuePairState(envelope, requester, responder, complete, receive, TRANSPORTS[self.qp_type])
        state.notice_envelope = notice
        state.on_broken = self._broken
        state.memory = self.pd.memory
        state.mtu_bytes = self.mtu_bytes
        self._state, self._envelope = state, envelope
        self.pd.context.nic.attach(self.qp_num, state)
        return state

    def way_of(self, wqe: SendWqe) -> Envelope:
        """The headers of a datagram, made once for each place it goes to. Raises VerbsError where it cannot go."""
        target = wqe.target
        assert target is not None
        key = (target.address.lid, target.priority, target.remote_qpn)
        if key not in self._ways:
            priority = self.priority if target.priority is None else target.priority
            self._ways[key] = self._headers(target.address, target.remote_qpn, priority)[0]
        return self._ways[key]

    def _attached(self) -> QueuePairState:
        if self._state is None:
            raise VerbsError(f"queue pair {self.qp_num:#x} is not connected")
        return self._state

    def _reset(self) -> None:
        self._taken_bytes, self._fetched_bytes = self.taken_bytes, self.fetched_bytes
        self._peer_was = self.far
        if self._state is not None:
            self.pd.context.nic.detach(self.qp_num)
        self._connections += 1
        self._state, self.peer, self.attr, self._outstanding = None, None, QPAttr(), 0
        if not self._receives.is_shared:
            self._receives.flush()

    def _broken(self) -> None:
        self.state = QPState.ERR

    def _cq_overran(self) -> None:
        if self.state not in (QPState.RESET, QPState.ERR):
            self.modify(QPState.ERR)

    def _complete(self, completion: Completion) -> None:
        wqe, status = completion
        context, message = self.pd.context, wqe.message
        self._outstanding -= 1
        message.completed_ps = context.engine.now_ps
        message.status = status.name
        if context.taps.message_completed:
            context.taps.message_completed(message)
        if wqe.signaled or status is not WcStatus.SUCCESS:
            self.send_cq.push(of_send(wqe, status, self.qp_num))

    def _received(self, received: Received) -> None:
        entry = of_receive(received, self.qp_num)
        self.recv_cq.push(entry, solicited=received.solicited)
