"""One queue pair of a workload: what it posts, in each operation, and whether what came is what was sent."""

from __future__ import annotations

from dataclasses import dataclass, field

from emu.errors import InvariantBroken
from emu.verbs import CQ, MR, QP, SGE, RecvWR, SendWR, WROpcode
from traffic.workloads.setup import Connect

SHIFTS, SHIFT_BYTES = 61, 64  # messages of a queue pair begin at so many places of the source in turn
ATOMIC_BYTES = 8
OPCODES = {
    "write": WROpcode.RDMA_WRITE,
    "write_imm": WROpcode.RDMA_WRITE_WITH_IMM,
    "send": WROpcode.SEND,
    "read": WROpcode.RDMA_READ,
    "fetch_add": WROpcode.ATOMIC_FETCH_AND_ADD,
    "cmp_swp": WROpcode.ATOMIC_CMP_AND_SWP,
}
ATOMIC_OPS = ("fetch_add", "cmp_swp")
RECEIVED_OPS = ("send", "write_imm")  # that take a receive
MAX_IMMEDIATE = (1 << 32) - 1


class Receiver:
    """Keeps the far end's receive queue filled: a message's place is posted anew once the message is there."""

    def __init__(self, qp: QP, cq: CQ, target: MR, length: int, slots: int, op: str) -> None:
        self._qp, self._cq, self._target = qp, cq, target
        self._length = length if op == "send" else 0  # an immediate brings its write's bytes elsewhere
        self._slots = slots
        self._posted = 0
        self.taken = 0
        self._has_immediate = op == "write_imm"
        for _ in range(slots):
            self._post()
        self._cq.req_notify().when_done(self._take)

    def _post(self) -> None:
        place = self._target.addr + self._posted % self._slots * self._length
        sges = (SGE(addr=place, length=self._length, lkey=self._target.lkey),) if self._length else ()
        self._qp.post_recv(RecvWR(wr_id=self._posted, sg_list=sges))
        self._posted += 1

    def _take(self, _: object) -> None:
        self._cq.req_notify().when_done(self._take)
        for entry in self._cq.poll_cq(self._slots + 1):
            if entry.status:
                continue  # flushed: its queue pair broke
            if self._has_immediate and entry.imm_data != self.taken & MAX_IMMEDIATE:
                raise InvariantBroken(f"queue pair {self._qp.qp_num:#x}: immediate {entry.imm_data} of {self.taken}")
            self.taken += 1
            self._post()


@dataclass(slots=True)
class Channel:
    """A queue pair and the buffers that its messages go between: each has other bytes than the one before."""

    qp: QP
    cq: CQ
    source: MR  # where the bytes come from: with a READ the far end's
    offset: int
    target: MR  # and where they go
    length: int
    slots: int
    op: str = "write"
    posted: int = 0
    counter: MR | None = field(default=None)  # what atomics act on
    receiver: Receiver | None = field(default=None)
    connect: Connect | None = field(default=None)  # to be awaited before the first message, where it is given

    def post(self) -> None:
        """Post the next message, to the next place in turn."""
        number = self.posted
        self.posted += 1
        opcode, there, here = OPCODES[self.op], self.target, self.source
        place, at = self._from(number), self._to(number)
        if self.counter is not None:
            here, place, there, at = self.target, at, self.counter, self.counter.addr
        elif opcode is WROpcode.RDMA_READ:
            here, place, there, at = there, at, here, place
        sge = SGE(addr=place, length=self.length, lkey=here.lkey)
        self.qp.post_send(
            SendWR(
                wr_id=number,
                sge=sge,
                opcode=opcode,
                remote_addr=at,
                rkey=there.rkey,
                imm_data=number & MAX_IMMEDIATE,
                compare_add=1 if self.op == "fetch_add" else number,
                swap=number + 1,
            )
        )

    def verify(self, number: int) -> None:
        """Raise InvariantBroken unless message `number` is in the target (or a later one was posted to its place)."""
        if self.posted > number + self.slots:
            return
        at = self._to(number) - self.target.addr
        if self.counter is not None:  # each adds one, or takes it one further: what was there says how many did
            sent: bytes | memoryview = number.to_bytes(ATOMIC_BYTES, "little")
        else:
            sent = self.source.slice(self._from(number), self.length)
        if not self.target.buffer.startswith(sent, at):  # compared where it lies: no copy, no view's slow compare
            raise InvariantBroken(f"queue pair {self.qp.qp_num:#x}: message {number} is not in the target's memory")

    def _from(self, number: int) -> int:
        return self.source.addr + self.offset + number % SHIFTS * SHIFT_BYTES

    def _to(self, number: int) -> int:
        return self.target.addr + number % self.slots * self.length
