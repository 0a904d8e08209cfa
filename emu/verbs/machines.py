"""From a queue pair's attributes to its two machines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from emu import opcodes
from emu.devices.queue_pair import QueuePairState, ReceiveSide, SendSide
from emu.frame import Envelope
from emu.transport.receive_queue import ReceiveQueue
from emu.transport.received import ResponderConfig
from emu.transport.requester import Requester, RequesterConfig
from emu.transport.responder import Responder
from emu.transport.selective import SelectiveRequester, SelectiveResponder
from emu.transport.unreliable import UcResponder, UdResponder, UnreliableRequester
from emu.transport.work import SendWqe
from emu.verbs.domain import Domain
from emu.verbs.state import QPAttr, QPType

TRANSPORTS = {QPType.RC: opcodes.RC, QPType.UC: opcodes.UC, QPType.UD: opcodes.UD}


class Owner(Protocol):
    """A queue pair, as far as its machines need it."""

    qp_num: int
    qp_type: QPType

    @property
    def pd(self) -> Domain: ...
    @property
    def mtu_bytes(self) -> int: ...
    @property
    def receives(self) -> ReceiveQueue: ...
    def way_of(self, wqe: SendWqe) -> Envelope: ...


def requester_of(qp: Owner, attr: QPAttr, envelope: Envelope) -> SendSide:
    """Its send side."""
    first_psn = attr.sq_psn or 0
    if qp.qp_type is QPType.UC:
        return UnreliableRequester(lambda _: envelope, opcodes.UC, qp.mtu_bytes, first_psn)
    if qp.qp_type is QPType.UD:
        return UnreliableRequester(qp.way_of, opcodes.UD, qp.mtu_bytes, first_psn, qp.qp_num)
    config = _requester_config(qp, attr)
    make = SelectiveRequester if config.selective else Requester
    return make(envelope, config, first_psn)


def responder_of(qp: Owner, attr: QPAttr) -> ReceiveSide:
    """Its receive side."""
    memory, first_psn = qp.pd.memory, attr.rq_psn or 0
    if qp.qp_type is QPType.UC:
        return UcResponder(memory, qp.mtu_bytes, qp.receives, first_psn)
    if qp.qp_type is QPType.UD:
        return UdResponder(memory, qp.receives, attr.qkey or 0)
    config = _responder_config(qp, attr)
    make = SelectiveResponder if config.hold_packets else Responder
    return make(memory, config, qp.receives, first_psn)


def configure(qp: Owner, attr: QPAttr, state: QueuePairState) -> None:
    """Let both go on by attributes that have changed."""
    if isinstance(state.requester, Requester):
        state.requester.configure(_requester_config(qp, attr))
    if isinstance(state.responder, Responder):
        state.responder.configure(_responder_config(qp, attr))
    elif isinstance(state.responder, UdResponder):
        state.responder.qkey = attr.qkey or 0


def _requester_config(qp: Owner, attr: QPAttr) -> RequesterConfig:
    changes: dict[str, Any] = {
        "path_mtu_bytes": qp.mtu_bytes,
        "ack_timeout_code": attr.timeout,
        "retry_cnt": attr.retry_cnt,
        "rnr_retry": attr.rnr_retry,
        "max_rd_atomic": attr.max_rd_atomic,
    }
    return replace(qp.pd.context.config, **{name: value for name, value in changes.items() if value is not None})


def _responder_config(qp: Owner, attr: QPAttr) -> ResponderConfig:
    changes: dict[str, Any] = {
        "path_mtu_bytes": qp.mtu_bytes,
        "min_rnr_timer": attr.min_rnr_timer,
        "max_dest_rd_atomic": attr.max_dest_rd_atomic,
    }
    return replace(qp.pd.context.responder, **{name: value for name, value in changes.items() if value is not None})
