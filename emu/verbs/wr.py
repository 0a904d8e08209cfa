"""Work requests as programs post them."""

from __future__ import annotations

from dataclasses import dataclass

from emu.transport.work import SendFlags, WROpcode
from emu.verbs.address import AH

MAX_SGE = 30  # places of one work request


@dataclass(frozen=True, slots=True, kw_only=True)
class SGE:
    """`struct ibv_sge`: `length` bytes at `addr` in the region of `lkey`."""

    addr: int
    length: int
    lkey: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SendWR:
    """`struct ibv_send_wr`. One place may be given as `sge`, several as `sg_list`."""

    wr_id: int
    sge: SGE | None = None
    sg_list: tuple[SGE, ...] = ()
    opcode: WROpcode = WROpcode.RDMA_WRITE
    send_flags: SendFlags = SendFlags.SIGNALED
    remote_addr: int = 0
    rkey: int = 0
    imm_data: int = 0  # unsigned, 32 bits
    invalidate_rkey: int = 0
    compare_add: int = 0  # what to compare with, or what to add
    swap: int = 0
    ah: AH | None = None  # where a datagram goes, to which queue pair, with which key
    remote_qpn: int = 0
    remote_qkey: int = 0

    @property
    def places(self) -> tuple[SGE, ...]:
        """All places, in order."""
        return self.sg_list if self.sge is None else (self.sge, *self.sg_list)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecvWR:
    """`struct ibv_recv_wr`."""

    wr_id: int
    sg_list: tuple[SGE, ...] = ()
