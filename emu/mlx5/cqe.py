"""CQEs of 64 bytes to bytes and back, by struct, and who owns one: all that the NIC tells of a completion.

Fields that only UD and raw Ethernet receives fill (ML path, SLID, flags, hashes) are zero, and not looked at."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from struct import Struct, error

from emu.errors import InvariantBroken, WireError
from emu.frame import Buffer

CQE_BYTES = 64
WQE_COUNTER_OFFSET = 60  # what a GPU polls of a collapsed CQ: two bytes, big-endian
OWNER_OFFSET = 63

# From offset 24: remote QPN, 32: SRQN, 36: immediate, 44: byte count, 48: timestamp, 56: send opcode and QPN,
# 60: WQE counter, 62: signature, 63: opcode, format, SE, owner.
CQE = Struct("!24xI4xII4xIQIHBB")
ERROR_CQE = Struct("!32xI18xBBIHBB")  # 32: SRQN, 54: vendor syndrome, 55: syndrome, from 56 on as above

_LOW_24 = 0xFFFFFF
_FORMAT = 0b1100  # of bits 3 and 2: data scattered into the CQE, which we do not
_SOLICITED = 0b10


class CqeOpcode(IntEnum):
    """MLX5_CQE_*: of what the completion tells."""

    REQUESTER = 0
    RESPONDER_WRITE_IMM = 1
    RESPONDER_SEND = 2
    RESPONDER_SEND_IMM = 3
    RESPONDER_SEND_INVAL = 4
    RESIZE = 5
    NO_PACKET = 6
    SIGNATURE_ERROR = 12
    REQUESTER_ERROR = 13
    RESPONDER_ERROR = 14
    INVALID = 15  # never written by the NIC: what a ring starts with


class Syndrome(IntEnum):
    """MLX5_CQE_SYNDROME_*: why it failed."""

    NONE = 0x00
    LOCAL_LENGTH_ERR = 0x01
    LOCAL_QP_OP_ERR = 0x02
    LOCAL_PROT_ERR = 0x04
    WR_FLUSH_ERR = 0x05
    MW_BIND_ERR = 0x06
    BAD_RESP_ERR = 0x10
    LOCAL_ACCESS_ERR = 0x11
    REMOTE_INVAL_REQ_ERR = 0x12
    REMOTE_ACCESS_ERR = 0x13
    REMOTE_OP_ERR = 0x14
    TRANSPORT_RETRY_EXC_ERR = 0x15
    RNR_RETRY_EXC_ERR = 0x16
    REMOTE_ABORTED_ERR = 0x22


ERRORS = frozenset({CqeOpcode.REQUESTER_ERROR, CqeOpcode.RESPONDER_ERROR})
_OPCODES = {int(opcode): opcode for opcode in CqeOpcode}
_SYNDROMES = {int(syndrome): syndrome for syndrome in Syndrome if syndrome}
INVALID_CQE = bytes(OWNER_OFFSET) + bytes([CqeOpcode.INVALID << 4])
"""What every entry of a ring is before the NIC first writes it."""


@dataclass(slots=True)
class Cqe:
    """One completion. An error has syndromes, and neither remote QPN, immediate, byte count nor timestamp."""

    opcode: CqeOpcode
    wqe_counter: int  # the index of the WQE (16 bits)
    qp_num: int
    owner: int = 0  # `owner_of`
    send_opcode: int = 0  # of the WQE
    byte_count: int = 0
    imm: int = 0  # or the invalidated key
    remote_qp: int = 0
    srqn: int = 0  # shared receive queue, or user index
    timestamp: int = 0  # in ticks of the NIC's clock
    solicited: bool = False
    syndrome: Syndrome = Syndrome.NONE
    vendor_syndrome: int = 0


def encode(cqe: Cqe) -> bytes:
    """64 bytes. Raises InvariantBroken for what has no room in its field, or none at all in such a CQE."""
    fails = cqe.opcode in ERRORS
    if fails != bool(cqe.syndrome) or (fails and (cqe.byte_count or cqe.imm or cqe.remote_qp or cqe.timestamp)):
        raise InvariantBroken(f"no CQE can say this: {cqe}")
    if (cqe.qp_num | cqe.remote_qp) & ~_LOW_24 or cqe.owner not in (0, 1) or (cqe.vendor_syndrome and not fails):
        raise InvariantBroken(f"no CQE can say this: {cqe}")
    tail = (
        cqe.send_opcode << 24 | cqe.qp_num,
        cqe.wqe_counter,
        0,
        cqe.opcode << 4 | (_SOLICITED if cqe.solicited else 0) | cqe.owner,
    )
    try:
        if fails:
            return ERROR_CQE.pack(cqe.srqn, cqe.vendor_syndrome, cqe.syndrome, *tail)
        return CQE.pack(cqe.remote_qp, cqe.srqn, cqe.imm, cqe.byte_count, cqe.timestamp, *tail)
    except error as reason:
        raise InvariantBroken(f"a number has no room in its field of a CQE: {reason}") from None


def decode(data: Buffer) -> Cqe:
    """The CQE those 64 bytes are, whoever owns it. Raises WireError."""
    if len(data) != CQE_BYTES:
        raise WireError(f"{len(data)} B are no CQE: it has {CQE_BYTES}")
    remote, srqn, imm, byte_count, timestamp, sent, counter, _, last = CQE.unpack(data)
    opcode = _OPCODES.get(last >> 4)
    if opcode is None or last & _FORMAT:
        raise WireError(f"CQE of opcode {last >> 4}, format {(last & _FORMAT) >> 2}: not known")
    cqe = Cqe(opcode, counter, sent & _LOW_24, last & 1, sent >> 24, srqn=srqn)
    cqe.solicited = last & _SOLICITED != 0
    if opcode in ERRORS:
        vendor, code = timestamp >> 8 & 0xFF, timestamp & 0xFF
        syndrome = _SYNDROMES.get(code)
        if syndrome is None:
            raise WireError(f"syndrome 0x{code:02x} of an error CQE is unknown")
        cqe.syndrome, cqe.vendor_syndrome = syndrome, vendor
    else:
        cqe.remote_qp, cqe.imm, cqe.byte_count, cqe.timestamp = remote & _LOW_24, imm, byte_count, timestamp
    return cqe


def owner_of(index: int, depth: int) -> int:
    """The owner bit of the CQE that is number `index` (from 0) in a ring of `depth`: it flips with each round."""
    return index // depth & 1


def is_written(data: Buffer, index: int, depth: int) -> bool:
    """Whether the entry that `data` is holds number `index` by now: the poller's test."""
    last = data[OWNER_OFFSET]
    return last >> 4 != CqeOpcode.INVALID and last & 1 == owner_of(index, depth)
