"""Between the transport's work requests and the WQEs that stand in a queue's memory."""

from __future__ import annotations

from emu.devices.queue_pair import QueuePairState
from emu.host.queue import Job
from emu.mlx5.segments import blocks_of, inline_segments
from emu.mlx5.wqe import Fence, Wqe, WqeOpcode
from emu.opcodes import RC, UC, UD
from emu.transport.memory import Access
from emu.transport.wc import WcStatus
from emu.transport.work import ATOMICS, CONSUMES_RECEIVE, NOWHERE, SEGMENTS, Scatter, SendWqe, WROpcode

OPCODES = {
    WROpcode.RDMA_WRITE: WqeOpcode.RDMA_WRITE,
    WROpcode.RDMA_WRITE_WITH_IMM: WqeOpcode.RDMA_WRITE_IMM,
    WROpcode.SEND: WqeOpcode.SEND,
    WROpcode.SEND_WITH_IMM: WqeOpcode.SEND_IMM,
    WROpcode.SEND_WITH_INV: WqeOpcode.SEND_INVAL,
    WROpcode.RDMA_READ: WqeOpcode.RDMA_READ,
    WROpcode.ATOMIC_CMP_AND_SWP: WqeOpcode.ATOMIC_CS,
    WROpcode.ATOMIC_FETCH_AND_ADD: WqeOpcode.ATOMIC_FA,
}
WR_OPCODES = {opcode: wr for wr, opcode in OPCODES.items()}
CONNECTED = frozenset((WROpcode.RDMA_WRITE, WROpcode.RDMA_WRITE_WITH_IMM, WROpcode.SEND, WROpcode.SEND_WITH_IMM))
ALLOWED = {RC: frozenset(WROpcode), UC: CONNECTED, UD: frozenset((WROpcode.SEND, WROpcode.SEND_WITH_IMM))}
"""What each transport has, as in emu/verbs/posting.py."""
MAX_MESSAGE_BYTES = 1 << 31  # IBTA vol. 1, 9.7.1
INLINE_OPCODES = (*CONSUMES_RECEIVE, WROpcode.RDMA_WRITE)


def is_inline(send: SendWqe, limit_bytes: int) -> bool:
    """Whether its bytes go into the WQE: because they are few, or were taken at posting."""
    return send.opcode in INLINE_OPCODES and (send.is_inline or 0 < send.size_bytes <= limit_bytes)


def most_blocks(send: SendWqe) -> int:
    """WQEBBs that it may take, unless the queue's own limit makes more of it inline."""
    segments = inline_segments(send.size_bytes) if send.is_inline else len(send.places) + (send.opcode in ATOMICS)
    return blocks_of(2 + segments)


def wqe_of(job: Job, *, inline_limit_bytes: int) -> Wqe:
    """The WQE for a work request: data segments, or the bytes themselves where they are few or taken at posting."""
    send = job.wqe
    wqe = Wqe(OPCODES[send.opcode], job.index & 0xFFFF, job.queue.qp_num)
    wqe.remote_addr, wqe.rkey, wqe.imm = send.remote_addr, send.rkey, send.imm_data
    wqe.signaled, wqe.solicited = send.signaled, send.solicited
    if send.fence:
        wqe.fence = Fence.FENCE
    if send.opcode in ATOMICS:
        swaps = send.opcode is WROpcode.ATOMIC_CMP_AND_SWP
        wqe.swap_add, wqe.compare = (send.swap, send.compare_add) if swaps else (send.compare_add, 0)
    if is_inline(send, inline_limit_bytes):
        wqe.inline = bytes(send.payload[0 : send.size_bytes])
    else:
        wqe.data = tuple((length, lkey, addr) for addr, length, lkey in job.places if length)
    return wqe


def rewrite(send: SendWqe, wqe: Wqe, state: QueuePairState) -> WcStatus:
    """Make the work request what the WQE says, whatever was meant; its status where a NIC would refuse it."""
    opcode, memory = WR_OPCODES.get(wqe.opcode), state.memory
    if opcode is None or opcode not in ALLOWED[state.transport]:
        return WcStatus.LOC_QP_OP_ERR
    length = wqe.length
    if length > (state.mtu_bytes if state.transport == UD else MAX_MESSAGE_BYTES):
        return WcStatus.LOC_LEN_ERR
    segments = SEGMENTS.get(opcode)
    access = Access(0) if segments is not None else Access.LOCAL_WRITE
    if memory is not None and wqe.data:
        pieces, regions = [], []
        for byte_count, lkey, addr in wqe.data:
            region = memory.find(lkey, addr, byte_count, access)
            if region is None:
                return WcStatus.LOC_PROT_ERR
            if segments is None:
                pieces.append(region.slice(addr, byte_count))
                regions.append(region)
        if segments is None:
            send.sink = Scatter(pieces, [addr for _, _, addr in wqe.data], regions)
    elif segments is None:
        send.sink = NOWHERE
    if opcode in ATOMICS and (length != 8 or wqe.remote_addr % 8):
        return WcStatus.LOC_QP_OP_ERR
    send.opcode, send.segments, send.size_bytes = opcode, segments, length
    send.message.operation, send.message.size_bytes = opcode.name, length
    send.remote_addr, send.rkey, send.imm_data = wqe.remote_addr, wqe.rkey, wqe.imm
    send.signaled = send.signaled and wqe.signaled  # the writer may want a CQE that the program does not
    send.solicited, send.fence = wqe.solicited, wqe.fence is Fence.FENCE
    if opcode is WROpcode.ATOMIC_CMP_AND_SWP:
        send.swap, send.compare_add = wqe.swap_add, wqe.compare
    elif opcode is WROpcode.ATOMIC_FETCH_AND_ADD:
        send.compare_add = wqe.swap_add
    send.special = send.fence or segments is None or opcode in CONSUMES_RECEIVE
    return WcStatus.SUCCESS
