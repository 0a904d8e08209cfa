"""From a posted work request to the one a NIC holds: everything that posting refuses is refused here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from emu.addresses import Address
from emu.errors import VerbsError
from emu.frame import Envelope, Message
from emu.transport.wc import WcStatus
from emu.transport.work import (
    ATOMIC_BYTES,
    ATOMICS,
    FETCHES,
    INLINE,
    NOWHERE,
    SIGNALED,
    Payload,
    SendFlags,
    SendWqe,
    WROpcode,
)
from emu.verbs.domain import Domain
from emu.verbs.numbers import coerced, flags, within
from emu.verbs.state import QPAttr, QPType
from emu.verbs.wr import MAX_SGE, SGE, SendWR

__all__ = ["Destination", "WcStatus", "wqe_of"]

MAX_MESSAGE_BYTES = 2**31  # IBTA vol. 1, 9.7.1
OWN_QKEY = 1 << 31  # a work request's Q_Key with this bit stands for the queue pair's own (IBTA vol. 1, 10.2.5)
WIDTHS = tuple(
    (name, width, 1 << width)
    for name, width in (
        ("wr_id", 64),
        ("remote_addr", 64),
        ("rkey", 32),
        ("imm_data", 32),
        ("invalidate_rkey", 32),
        ("compare_add", 64),
        ("swap", 64),
        ("remote_qpn", 24),
        ("remote_qkey", 32),
    )
)
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
    def attr(self) -> QPAttr: ...
    @property
    def mtu_bytes(self) -> int: ...
    @property
    def read_depth(self) -> int: ...
    def way_of(self, wqe: SendWqe) -> Envelope: ...


@dataclass(frozen=True, slots=True)
class Destination:
    """Where one datagram goes."""

    address: Address
    priority: int | None
    remote_qpn: int
    remote_qkey: int


def wqe_of(qp: Poster, wr: SendWR, number: int) -> SendWqe:
    """The work request for the send queue. Raises VerbsError for one that the queue pair may not post."""
    opcode = coerced(WROpcode, wr.opcode, "an opcode of work requests")
    asked = wr.send_flags if type(wr.send_flags) is SendFlags else flags(SendFlags, wr.send_flags, "send flags")
    bits, places = int(asked), wr.places
    length = _check(qp, wr, places, opcode, bits)
    message = Message(qp, number, length, qp.pd.context.engine.now_ps)
    message.operation = opcode.name
    wqe = SendWqe(
        message,
        wr.wr_id,
        _bytes_of(qp, places, opcode, bits),
        wr.remote_addr,
        wr.rkey,
        bits & SIGNALED != 0,
        opcode=opcode,
        sink=qp.pd.scatter(places) if opcode in FETCHES else NOWHERE,
        imm_data=wr.invalidate_rkey if opcode is WROpcode.SEND_WITH_INV else wr.imm_data,
        compare_add=wr.compare_add,
        swap=wr.swap,
        flags=asked,
    )
    wqe.places = tuple([(place.addr, place.length, place.lkey) for place in places])
    if qp.qp_type is QPType.UD:
        wqe.target = _destination(qp, wr, length)
        qp.way_of(wqe)
    return wqe


def _check(qp: Poster, wr: SendWR, places: Sequence[SGE], opcode: WROpcode, bits: int) -> int:
    """The bytes of its message, if all is right with it."""
    if opcode not in ALLOWED[qp.qp_type]:
        raise VerbsError(f"a {qp.qp_type.name} queue pair has no {opcode.name}")
    if opcode in FETCHES and not qp.read_depth:
        raise VerbsError(f"queue pair {qp.qp_num:#x} has max_rd_atomic 0: {opcode.name} would wait for ever")
    if opcode in FETCHES and bits & INLINE:
        raise VerbsError(f"{opcode.name} sends no bytes that could be inline")
    for name, width, limit in WIDTHS:
        value = getattr(wr, name)
        if value and not (type(value) is int and 0 < value < limit):
            within(name, value, width)
    if len(places) > MAX_SGE:
        raise VerbsError(f"{len(places)} scatter/gather entries: at most {MAX_SGE}")
    length = sum([place.length for place in places])
    if length > MAX_MESSAGE_BYTES:
        raise VerbsError(f"a message of {length} bytes: at most {MAX_MESSAGE_BYTES}")
    if opcode in ATOMICS and (length != ATOMIC_BYTES or wr.remote_addr % ATOMIC_BYTES):
        raise VerbsError(f"an atomic acts on {ATOMIC_BYTES} bytes at a multiple of {ATOMIC_BYTES}")
    return length


def _bytes_of(qp: Poster, places: Sequence[SGE], opcode: WROpcode, bits: int) -> Payload:
    if opcode in FETCHES:
        return b""
    payload = qp.pd.gather(places)
    if not bits & INLINE:
        return payload
    if len(payload) > qp.max_inline_data:
        raise VerbsError(f"{len(payload)} bytes inline: at most {qp.max_inline_data}")
    return bytes(payload[0 : len(payload)])  # taken at posting: the buffer may change at once


def _destination(qp: Poster, wr: SendWR, length: int) -> Destination:
    if wr.ah is None:
        raise VerbsError("a datagram needs an address handle")
    mtu_bytes = qp.mtu_bytes
    if length > mtu_bytes:
        raise VerbsError(f"a datagram of {length} bytes: at most the path MTU, {mtu_bytes}")
    qkey = qp.attr.qkey or 0 if wr.remote_qkey & OWN_QKEY else wr.remote_qkey
    return Destination(wr.ah.address, wr.ah.priority, wr.remote_qpn, qkey)
