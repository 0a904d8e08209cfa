"""From a posted work request to the one a NIC holds: everything that posting refuses is refused here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from emu.addresses import Address
from emu.errors import VerbsError
from emu.frame import Message
from emu.transport.wc import WcStatus
from emu.transport.work import (
    ATOMIC_BYTES,
    ATOMICS,
    FETCHES,
    NOWHERE,
    Payload,
    SendFlags,
    SendWqe,
    WROpcode,
)
from emu.verbs.domain import Domain
from emu.verbs.state import QPType
from emu.verbs.wr import SendWR

__all__ = ["Destination", "WcStatus", "wqe_of"]

MAX_MESSAGE_BYTES = 2**31  # IBTA vol. 1, 9.7.1
MAX_SGE = 30
ALLOWED = {
    QPType.RC: frozenset(WROpcode),
    QPType.UC: frozenset((WROpcode.RDMA_WRITE, WROpcode.RDMA_WRITE_WITH_IMM, WROpcode.SEND, WROpcode.SEND_WITH_IMM)),
    QPType.UD: frozenset((WROpcode.SEND, WROpcode.SEND_WITH_IMM)),
}


class Poster(Protocol):
    """A queue pair, as far as posting needs it."""

    qp_num: int
    qp_type: QPType
    max_inline_data: int

    @property
    def pd(self) -> Domain: ...
    @property
    def read_depth(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Destination:
    """Where one datagram goes."""

    address: Address
    priority: int | None
    remote_qpn: int
    remote_qkey: int


def wqe_of(qp: Poster, wr: SendWR, number: int) -> SendWqe:
    """The work request for the send queue. Raises VerbsError for one that the queue pair may not post."""
    if wr.opcode not in ALLOWED[qp.qp_type]:
        raise VerbsError(f"a {qp.qp_type.name} queue pair has no {wr.opcode.name}")
    if wr.opcode in FETCHES and not qp.read_depth:
        raise VerbsError(f"queue pair {qp.qp_num:#x} has max_rd_atomic 0: {wr.opcode.name} would wait for ever")
    if len(wr.places) > MAX_SGE:
        raise VerbsError(f"{len(wr.places)} scatter/gather entries: at most {MAX_SGE}")
    if not 0 <= wr.imm_data < 1 << 32:
        raise VerbsError(f"immediate data {wr.imm_data:#x} has more than 32 bits")
    length = sum(place.length for place in wr.places)
    if length > MAX_MESSAGE_BYTES:
        raise VerbsError(f"a message of {length} bytes: at most {MAX_MESSAGE_BYTES}")
    if wr.opcode in ATOMICS and (length != ATOMIC_BYTES or wr.remote_addr % ATOMIC_BYTES):
        raise VerbsError(f"an atomic acts on {ATOMIC_BYTES} bytes at a multiple of {ATOMIC_BYTES}")
    payload, sink = _bytes_of(qp, wr), NOWHERE
    if wr.opcode in FETCHES:
        sink = qp.pd.scatter(wr.places)
    message = Message(qp, number, length, qp.pd.context.engine.now_ps)
    message.operation = wr.opcode.name
    wqe = SendWqe(
        message,
        wr.wr_id,
        payload,
        wr.remote_addr,
        wr.rkey,
        SendFlags.SIGNALED in wr.send_flags,
        opcode=wr.opcode,
        sink=sink,
        imm_data=wr.invalidate_rkey if wr.opcode is WROpcode.SEND_WITH_INV else wr.imm_data,
        compare_add=wr.compare_add,
        swap=wr.swap,
        flags=wr.send_flags,
    )
    wqe.places = tuple((place.addr, place.length, place.lkey) for place in wr.places)
    if qp.qp_type is QPType.UD:
        wqe.target = _destination(qp, wr, length)
    return wqe


def _bytes_of(qp: Poster, wr: SendWR) -> Payload:
    if wr.opcode in FETCHES:
        return b""
    payload = qp.pd.gather(wr.places)
    if SendFlags.INLINE not in wr.send_flags:
        return payload
    if len(payload) > qp.max_inline_data:
        raise VerbsError(f"{len(payload)} bytes inline: at most {qp.max_inline_data}")
    return bytes(payload[0 : len(payload)])  # taken at posting: the buffer may change at once


def _destination(qp: Poster, wr: SendWR, length: int) -> Destination:
    if wr.ah is None:
        raise VerbsError("a datagram needs an address handle")
    mtu_bytes = qp.pd.context.config.path_mtu_bytes
    if length > mtu_bytes:
        raise VerbsError(f"a datagram of {length} bytes: at most the path MTU, {mtu_bytes}")
    return Destination(wr.ah.address, wr.ah.priority, wr.remote_qpn, wr.remote_qkey)
