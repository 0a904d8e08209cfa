"""Queue pairs: their states, and what is posted to them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from emu import opcodes
from emu.devices.queue_pair import QueuePairState, ReceiveSide, SendSide
from emu.errors import VerbsError
from emu.frame import Envelope, Message
from emu.transport.receive_queue import ReceiveQueue
from emu.transport.received import Received
from emu.transport.requester import Completion, Requester
from emu.transport.responder import Responder
from emu.transport.selective import SelectiveRequester, SelectiveResponder
from emu.transport.unreliable import UcResponder, UdResponder, UnreliableRequester
from emu.transport.wc import WcStatus
from emu.transport.work import RecvWqe, SendWqe
from emu.verbs.cq import CQ
from emu.verbs.domain import Domain
from emu.verbs.entry import of_receive, of_send
from emu.verbs.posting import wqe_of
from emu.verbs.srq import SRQ
from emu.verbs.state import QPAttr, QPState, QPType, may_move
from emu.verbs.wr import RecvWR, SendWR

TRANSPORTS = {QPType.RC: opcodes.RC, QPType.UC: opcodes.UC, QPType.UD: opcodes.UD}


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
        self.pd = pd
        self.kind = kind
        self.priority = priority
        self.origin: object = None  # what its workload knows it by
        self.expected = 0  # messages it will post in all, as far as its workload says; 0: it does not
        self.send_cq = send_cq
        self.recv_cq = recv_cq
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
        self._ways: dict[tuple[int, int | None, int], Envelope] = {}  # datagrams' headers, by where they go
        for cq in {id(cq): cq for cq in (send_cq, recv_cq)}.values():
            cq.attach(self._cq_overran)

    @property
    def envelope(self) -> Envelope:
        """The headers its frames share. Raises VerbsError before it is ready to receive."""
        return self._attached().envelope

    @property
    def source(self) -> str:
        """The host it sends from."""
        return self.pd.context.name

    @property
    def destination(self) -> str:
        """The host it sends to; empty before `connect`."""
        return self.peer.source if self.peer else ""

    @property
    def received_bytes(self) -> int:
        """Payload that its peer has taken in order so far."""
        return self.peer.taken_bytes if self.peer else 0

    @property
    def taken_bytes(self) -> int:
        """Payload that came to this queue pair and was accepted. Raises VerbsError before it may receive."""
        return self._attached().responder.received_bytes

    @property
    def read_depth(self) -> int:
        """How many READs and atomics it may have outstanding."""
        depth = self.attr.max_rd_atomic
        return self.pd.context.config.max_rd_atomic if depth is None else depth

    def modify(self, state: QPState, attr: QPAttr | None = None) -> None:
        """`ibv_modify_qp`. Raises VerbsError for a move that there is not, attributes missing, a CQ that overran."""
        if not may_move(self.state, state):
            raise VerbsError(f"queue pair {self.qp_num:#x} is {self.state.name}: it cannot go to {state.name}")
        if state is QPState.INIT:
            self.send_cq.check()
            self.recv_cq.check()
        if attr is not None:
            given = {name: getattr(attr, name) for name in attr.__slots__ if getattr(attr, name) is not None}
            self.attr = replace(self.attr, **given)
        if state is QPState.RTR and self.state is QPState.INIT:
            self._become_ready_to_receive()
        elif state is QPState.RTS and self.state is QPState.RTR:
            self._attached().requester = self._requester(self._attached().envelope)
        elif state is QPState.ERR and self._state is not None:
            self.pd.context.nic.break_off(self._state)
        elif state is QPState.RESET:
            self._reset()
        self.state = state

    def connect(self, peer: QP, first_psn: int = 0, attr: QPAttr | None = None) -> None:
        """Both of them through INIT and RTR to RTS, with each other's number and address, and `attr` besides.

        Answers travel with the priority of what they answer: this queue pair's.
        """
        if self.peer is not None or peer.peer is not None:
            raise VerbsError(f"queue pair {self.qp_num:#x} or its peer is connected already")
        if self.qp_type is not peer.qp_type or self.qp_type is QPType.UD:
            raise VerbsError("queue pairs are connected to those of their own type, RC or UC")
        peer.priority = self.priority
        for here, there in ((self, peer), (peer, self)):
            here.peer = there
            address = there.pd.context.address
            there_is = replace(
                attr or QPAttr(), dest=address, dest_qp_num=there.qp_num, rq_psn=first_psn, sq_psn=first_psn
            )
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
        self.posted += 1
        self._outstanding += 1
        context.nic.post(self._attached(), wqe)
        if context.taps.message_posted:
            context.taps.message_posted(wqe.message)
        return wqe.message

    def post_recv(self, wr: RecvWR) -> None:
        """`ibv_post_recv`. Raises VerbsError in the reset state, with an SRQ, for a bad lkey or range, when full."""
        if self.state is QPState.RESET or self._receives.is_shared:
            raise VerbsError(f"queue pair {self.qp_num:#x} takes no receives: it is in RESET, or has an SRQ")
        wqe = RecvWqe(wr.wr_id, self.pd.scatter(wr.sg_list))
        if self.state is QPState.ERR:
            self._received(Received(wqe, WcStatus.WR_FLUSH_ERR, 0))
        else:
            self._receives.post(wqe)

    def _become_ready_to_receive(self) -> None:
        context, attr = self.pd.context, self.attr
        notice: Envelope | None = None
        if self.qp_type is QPType.UD:
            envelope = context.envelopes(context.address, context.address, self.qp_num, self.qp_num, self.priority)[0]
        elif attr.dest is None or attr.dest_qp_num is None:
            raise VerbsError(f"queue pair {self.qp_num:#x}: to be ready to receive it must know its peer's address")
        else:
            envelope, notice = context.envelopes(
                context.address, attr.dest, self.qp_num, attr.dest_qp_num, self.priority
            )
        state = QueuePairState(
            envelope,
            self._requester(envelope),
            self._responder(),
            self._complete,
            self._received,
            TRANSPORTS[self.qp_type],
        )
        state.notice_envelope = notice
        state.on_broken = self._broken
        self._state = state
        context.nic.attach(self.qp_num, state)

    def _requester(self, envelope: Envelope) -> SendSide:
        context, attr = self.pd.context, self.attr
        mtu_bytes = attr.path_mtu_bytes or context.config.path_mtu_bytes
        if self.qp_type is QPType.UC:
            return UnreliableRequester(lambda _: envelope, opcodes.UC, mtu_bytes, attr.sq_psn)
        if self.qp_type is QPType.UD:
            return UnreliableRequester(self._way_of, opcodes.UD, mtu_bytes, attr.sq_psn, self.qp_num)
        changes: dict[str, Any] = {
            "path_mtu_bytes": mtu_bytes,
            "ack_timeout_code": attr.timeout,
            "retry_cnt": attr.retry_cnt,
            "rnr_retry": attr.rnr_retry,
            "max_rd_atomic": attr.max_rd_atomic,
        }
        config = replace(context.config, **{name: value for name, value in changes.items() if value is not None})
        make = SelectiveRequester if config.selective else Requester
        return make(envelope, config, attr.sq_psn)

    def _responder(self) -> ReceiveSide:
        context, attr = self.pd.context, self.attr
        memory, mtu_bytes = self.pd.memory, attr.path_mtu_bytes or context.responder.path_mtu_bytes
        if self.qp_type is QPType.UC:
            return UcResponder(memory, mtu_bytes, self._receives, attr.rq_psn)
        if self.qp_type is QPType.UD:
            return UdResponder(memory, self._receives, attr.qkey or 0)
        changes: dict[str, Any] = {
            "path_mtu_bytes": mtu_bytes,
            "min_rnr_timer": attr.min_rnr_timer,
            "max_dest_rd_atomic": attr.max_dest_rd_atomic,
        }
        config = replace(context.responder, **{name: value for name, value in changes.items() if value is not None})
        make = SelectiveResponder if config.hold_packets else Responder
        return make(memory, config, self._receives, attr.rq_psn)

    def _way_of(self, wqe: SendWqe) -> Envelope:
        """The headers of a datagram, made once for each place it goes to."""
        target = wqe.target
        assert target is not None
        key = (target.address.lid, target.priority, target.remote_qpn)
        if key not in self._ways:
            context = self.pd.context
            priority = self.priority if target.priority is None else target.priority
            self._ways[key] = context.envelopes(
                context.address, target.address, self.qp_num, target.remote_qpn, priority
            )[0]
        return self._ways[key]

    def _attached(self) -> QueuePairState:
        if self._state is None:
            raise VerbsError(f"queue pair {self.qp_num:#x} is not connected")
        return self._state

    def _reset(self) -> None:
        if self._state is not None:
            self.pd.context.nic.detach(self.qp_num)
        self._state, self.peer, self.attr, self._outstanding = None, None, QPAttr(), 0
        if not self._receives.is_shared:
            self._receives.flush()

    def _broken(self) -> None:
        self.state = QPState.ERR

    def _cq_overran(self) -> None:
        if self.state is not QPState.RESET:
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
