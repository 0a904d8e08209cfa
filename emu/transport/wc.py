"""Completion statuses, under the names and values of `ibv_wc_status`."""

from enum import IntEnum, IntFlag


class WcStatus(IntEnum):
    """`enum ibv_wc_status`."""

    SUCCESS = 0
    LOC_LEN_ERR = 1
    LOC_QP_OP_ERR = 2
    LOC_PROT_ERR = 4
    WR_FLUSH_ERR = 5
    MW_BIND_ERR = 6
    BAD_RESP_ERR = 7
    LOC_ACCESS_ERR = 8
    REM_INV_REQ_ERR = 9
    REM_ACCESS_ERR = 10
    REM_OP_ERR = 11
    RETRY_EXC_ERR = 12
    RNR_RETRY_EXC_ERR = 13


class WcOpcode(IntEnum):
    """`enum ibv_wc_opcode`."""

    SEND = 0
    RDMA_WRITE = 1
    RDMA_READ = 2
    COMP_SWAP = 3
    FETCH_ADD = 4
    RECV = 128
    RECV_RDMA_WITH_IMM = 129


class WcFlags(IntFlag):
    """`enum ibv_wc_flags`."""

    NONE = 0
    GRH = 1
    WITH_IMM = 2
    WITH_INV = 8
