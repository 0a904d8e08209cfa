"""Between completion statuses and the syndromes of error CQEs, and a work request's CQE."""

from __future__ import annotations

from emu.errors import WireError
from emu.host.queue import Job
from emu.mlx5.cqe import Cqe, CqeOpcode, Syndrome, decode, encode
from emu.transport.received import Received
from emu.transport.wc import WcStatus

SYNDROMES = {
    WcStatus.LOC_LEN_ERR: Syndrome.LOCAL_LENGTH_ERR,
    WcStatus.LOC_QP_OP_ERR: Syndrome.LOCAL_QP_OP_ERR,
    WcStatus.LOC_PROT_ERR: Syndrome.LOCAL_PROT_ERR,
    WcStatus.WR_FLUSH_ERR: Syndrome.WR_FLUSH_ERR,
    WcStatus.MW_BIND_ERR: Syndrome.MW_BIND_ERR,
    WcStatus.BAD_RESP_ERR: Syndrome.BAD_RESP_ERR,
    WcStatus.LOC_ACCESS_ERR: Syndrome.LOCAL_ACCESS_ERR,
    WcStatus.REM_INV_REQ_ERR: Syndrome.REMOTE_INVAL_REQ_ERR,
    WcStatus.REM_ACCESS_ERR: Syndrome.REMOTE_ACCESS_ERR,
    WcStatus.REM_OP_ERR: Syndrome.REMOTE_OP_ERR,
    WcStatus.RETRY_EXC_ERR: Syndrome.TRANSPORT_RETRY_EXC_ERR,
    WcStatus.RNR_RETRY_EXC_ERR: Syndrome.RNR_RETRY_EXC_ERR,
}
STATUSES = {syndrome: status for status, syndrome in SYNDROMES.items()}


def cqe_of(job: Job, status: WcStatus, owner: int) -> bytes:
    """The 64 bytes that tell of a work request."""
    index, qp_num = job.index & 0xFFFF, job.queue.qp_num
    if status:
        return encode(Cqe(CqeOpcode.REQUESTER_ERROR, index, qp_num, owner, syndrome=SYNDROMES[status]))
    return encode(Cqe(CqeOpcode.REQUESTER, index, qp_num, owner, byte_count=job.wqe.size_bytes))


def cqe_of_receive(received: Received, qp_num: int) -> bytes:
    """The 64 bytes that tell of a receive that was used."""
    if received.status:
        return encode(Cqe(CqeOpcode.RESPONDER_ERROR, 0, qp_num, syndrome=SYNDROMES[received.status]))
    opcode = CqeOpcode.RESPONDER_SEND
    if received.is_write:
        opcode = CqeOpcode.RESPONDER_WRITE_IMM
    elif received.invalidated is not None:
        opcode = CqeOpcode.RESPONDER_SEND_INVAL
    elif received.imm_data is not None:
        opcode = CqeOpcode.RESPONDER_SEND_IMM
    imm = received.imm_data if received.imm_data is not None else received.invalidated or 0
    return encode(Cqe(opcode, 0, qp_num, byte_count=received.byte_len, imm=imm, solicited=received.solicited))


def status_of(data: bytes) -> tuple[int, WcStatus]:
    """WQE counter and status that a CQE says. Raises WireError for none of a requester's."""
    cqe = decode(data)
    if cqe.opcode is CqeOpcode.REQUESTER_ERROR:
        return cqe.wqe_counter, STATUSES[cqe.syndrome]
    if cqe.opcode is not CqeOpcode.REQUESTER:
        raise WireError(f"a CQE of opcode {cqe.opcode.name} in a send CQ")
    return cqe.wqe_counter, WcStatus.SUCCESS
