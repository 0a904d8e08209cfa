"""Two hosts over one switch, a queue pair at each, buffers full of other bytes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from emu.run.assembly import Assembly
from emu.scenario.load import parse
from emu.verbs import CQ, PD, QP, SGE, Access, Context, QPAttr, QPState, QPType, RecvWR, SendWR, WROpcode

ALL = Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC
QKEY = 0x11111111


class End:
    """One host: a queue pair, its completion queues, a buffer."""

    def __init__(self, context: Context, length: int, qp_type: QPType, depth: int, seed: int) -> None:
        self.context = context
        self.pd: PD = context.alloc_pd()
        self.cq: CQ = context.create_cq(4096)
        self.recv_cq: CQ = context.create_cq(4096)
        self.qp: QP = self.pd.create_qp(self.cq, depth, recv_cq=self.recv_cq, qp_type=qp_type)
        self.mr = self.pd.reg_mr(length, ALL)
        self.mr.buffer[:] = random.Random(seed).randbytes(length)

    def sge(self, offset: int, length: int) -> SGE:
        """A piece of the buffer."""
        return SGE(addr=self.mr.addr + offset, length=length, lkey=self.mr.lkey)

    def receive(self, offset: int, length: int, wr_id: int = 1) -> None:
        """Post a place for a message."""
        self.qp.post_recv(RecvWR(wr_id=wr_id, sg_list=(self.sge(offset, length),)))


class Ends:
    """Both of them, connected (datagrams: ready)."""

    def __init__(
        self,
        *,
        profile: str = "roce",
        mtu: int = 1024,
        length: int = 1 << 16,
        qp_type: QPType = QPType.RC,
        first_psn: int = 0,
        depth: int = 1024,
        more: str = "",
        settings: Sequence[str] = (),
        attr: QPAttr | None = None,
    ) -> None:
        text = f"""
name: ends
fabric: {{profile: {profile}, path_mtu: {mtu}B, topology: {{kind: line, switches: 1}}}}
host: {{nic: {{{more}}}}}
traffic: [{{kind: write, pairs: [[h0, h1]], size: 1B}}]
"""
        assembly = Assembly(parse(text, "ends.yaml", settings))
        self.assembly = assembly
        self.engine, self.fabric, self.taps = assembly.engine, assembly.fabric, assembly.taps
        self.fabric.join(None)
        contexts = self.fabric.contexts
        self.here = End(contexts["h0"], length, qp_type, depth, 1)
        self.there = End(contexts["h1"], length, qp_type, depth, 2)
        if qp_type is QPType.UD:
            for end in (self.here, self.there):
                for state in (QPState.INIT, QPState.RTR, QPState.RTS):
                    end.qp.modify(state, QPAttr(qkey=QKEY, sq_psn=first_psn))
        else:
            self.here.qp.connect(self.there.qp, first_psn, attr)

    def post(self, opcode: WROpcode, size: int, offset: int = 0, to: int = 0, **more: Any) -> None:
        """Post an operation on `size` bytes at `offset` here and `to` there."""
        fields: dict[str, Any] = {
            "wr_id": 7,
            "sge": self.here.sge(offset, size),
            "opcode": opcode,
            "remote_addr": self.there.mr.addr + to,
            "rkey": self.there.mr.rkey,
        }
        self.here.qp.post_send(SendWR(**(fields | more)))

    def run(self) -> None:
        """Until nothing is left to do."""
        self.engine.run()
