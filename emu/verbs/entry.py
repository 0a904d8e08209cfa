"""From what the machines say of a finished work request to its completion queue entry."""

from __future__ import annotations

from emu.transport.received import Received
from emu.transport.wc import WcFlags, WcOpcode, WcStatus
from emu.transport.work import SendWqe, WROpcode
from emu.verbs.cq import WC

SENT_AS = {
    WROpcode.RDMA_WRITE: WcOpcode.RDMA_WRITE,
    WROpcode.RDMA_WRITE_WITH_IMM: WcOpcode.RDMA_WRITE,
    WROpcode.SEND: WcOpcode.SEND,
    WROpcode.SEND_WITH_IMM: WcOpcode.SEND,
    WROpcode.SEND_WITH_INV: WcOpcode.SEND,
    WROpcode.RDMA_READ: WcOpcode.RDMA_READ,
    WROpcode.ATOMIC_CMP_AND_SWP: WcOpcode.COMP_SWAP,
    WROpcode.ATOMIC_FETCH_AND_ADD: WcOpcode.FETCH_ADD,
}


def of_send(wqe: SendWqe, status: WcStatus, qp_num: int) -> WC:
    """Of a work request of the send queue."""
    return WC(wr_id=wqe.wr_id, status=status, qp_num=qp_num, byte_len=wqe.size_bytes, opcode=SENT_AS[wqe.opcode])


def of_receive(received: Received, qp_num: int) -> WC:
    """Of a receive: the write's length for a WRITE with immediate, 40 bytes more than its data for a datagram."""
    flags, source_qp = WcFlags.NONE, 0
    if received.imm_data is not None:
        flags |= WcFlags.WITH_IMM
    if received.invalidated is not None:
        flags |= WcFlags.WITH_INV
    if received.frame is not None and received.frame.extension is not None:
        flags |= WcFlags.GRH
        source_qp = received.frame.extension[1]
    return WC(
        wr_id=received.wqe.wr_id,
        status=received.status,
        qp_num=qp_num,
        byte_len=received.byte_len,
        opcode=WcOpcode.RECV_RDMA_WITH_IMM if received.is_write else WcOpcode.RECV,
        wc_flags=flags,
        imm_data=received.imm_data or 0,
        invalidated_rkey=received.invalidated or 0,
        src_qp=source_qp,
    )
