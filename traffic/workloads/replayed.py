"""One captured queue pair's double: its messages of every kind and size, and whether what came is what was sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from emu.capture.operations import Conversation, Operation
from emu.engine import Future
from emu.errors import InvariantBroken
from emu.units import US
from emu.verbs import AH, MR, PD, SGE, Access, QPAttr, QPState, QPType, RecvWR, SendWR, WROpcode
from traffic.workloads.channel import ATOMIC_BYTES, SHIFT_BYTES, SHIFTS
from traffic.workloads.cluster import ROOM_BYTES, Cluster

OPCODES = {
    "SEND": WROpcode.SEND,
    "SEND with Immediate": WROpcode.SEND_WITH_IMM,
    "SEND with Invalidate": WROpcode.SEND_WITH_INV,
    "RDMA Write": WROpcode.RDMA_WRITE,
    "RDMA Write with Immediate": WROpcode.RDMA_WRITE_WITH_IMM,
    "RDMA Read Request": WROpcode.RDMA_READ,
    "Compare Swap": WROpcode.ATOMIC_CMP_AND_SWP,
    "Fetch Add": WROpcode.ATOMIC_FETCH_AND_ADD,
}
SENDS = (WROpcode.SEND, WROpcode.SEND_WITH_IMM, WROpcode.SEND_WITH_INV)
TAKES_RECEIVE = (*SENDS, WROpcode.RDMA_WRITE_WITH_IMM)
ATOMICS = (WROpcode.ATOMIC_CMP_AND_SWP, WROpcode.ATOMIC_FETCH_AND_ADD)
QKEY = 0x11111111
GRH_BYTES = 40
SETTLE_STEP_PS, SETTLE_STEPS = US, 1000  # how long what nobody acknowledges is waited for


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Between which hosts, as which traffic, with how many messages outstanding at most."""

    source: str
    destination: str
    kind: str
    priority: int | None
    window: int


class Replayed:
    """A queue pair at each end. Message n lies in place n, in turn, of what it goes to; places are one size.

    Atomics add one, each: COMPARE_SWAPs from what must be there by then, so what comes back says how many acted.
    """

    def __init__(self, cluster: Cluster, conversation: Conversation, setting: Setting) -> None:
        self._engine = cluster.engine
        self._window = min(setting.window, len(conversation.operations))
        self._opcodes = [OPCODES[each.name] for each in conversation.operations]
        self._operations = conversation.operations
        self._transport = QPType[conversation.transport]
        self._atomics: dict[int, int] = {}  # how many atomics were posted before message n, one itself
        self._posted = self._done = self._taken = 0
        self._failed = False
        self._room: Future | None = None
        sender, receiver = cluster.domain(setting.source), cluster.domain(setting.destination)
        self._cq = cluster.contexts[setting.source].create_cq(self._window + 1)
        self._receives = [n for n, opcode in enumerate(self._opcodes) if opcode in TAKES_RECEIVE]
        self._ahead = min(2 * self._window, len(self._receives))
        self._far_cq = cluster.contexts[setting.destination].create_cq(self._ahead + 1)
        create = partial(PD.create_qp, qp_type=self._transport, kind=setting.kind, priority=setting.priority)
        self.qp = create(sender, self._cq, self._window)
        self._far = create(receiver, self._far_cq, max_recv_wr=self._ahead + 1)
        self.qp.expected = len(self._operations)
        self._register(cluster, setting)
        self._ah: AH | None = None
        if self._transport is QPType.UD:
            self._ah = sender.create_ah(cluster.contexts[setting.destination].address)
            for qp in (self.qp, self._far):
                for state in (QPState.INIT, QPState.RTR, QPState.RTS):
                    qp.modify(state, QPAttr(qkey=QKEY))
        else:
            self.qp.connect(self._far)
        self._expect_receives()

    def _register(self, cluster: Cluster, setting: Setting) -> None:
        largest = max(each.size_bytes for each in self._operations)
        length = largest + SHIFTS * SHIFT_BYTES
        self._noise = cluster.source(setting.source, length)
        self._far_noise = cluster.source(setting.destination, length)
        self._lead = GRH_BYTES if self._transport is QPType.UD else 0
        self._place_bytes = largest + self._lead
        self._places = max(1, min(2 * self._window, ROOM_BYTES // max(self._place_bytes, 1)))
        room = self._places * self._place_bytes
        fetches = any(each in (WROpcode.RDMA_READ, *ATOMICS) for each in self._opcodes)
        self._home = cluster.register(setting.source, room if fetches else 0, Access.LOCAL_WRITE)
        self._inbox = cluster.register(setting.destination, room, Access.LOCAL_WRITE | Access.REMOTE_WRITE)
        self._counter = cluster.register(setting.destination, ATOMIC_BYTES, Access.LOCAL_WRITE | Access.REMOTE_ATOMIC)

    async def post_all(self, start_ps: int, times_ps: Sequence[int]) -> None:
        """Post every message, none before its time, and wait until all are done or one has failed."""
        self._cq.req_notify().when_done(self._completed)
        for number, when_ps in enumerate(times_ps):
            due_ps = start_ps + when_ps
            if due_ps > self._engine.now_ps:
                await self._engine.sleep(due_ps - self._engine.now_ps)
            while self._posted - self._done >= self._window:
                await self._some_done()
            if self._failed:
                break
            self._post(number)
        while self._done < self._posted:
            await self._some_done()
        if self._transport is not QPType.RC and not self._failed:
            await self._settle()

    async def _some_done(self) -> None:
        self._room = Future()
        await self._room

    async def _settle(self) -> None:
        """Sent is not arrived where nobody acknowledges: wait for it, but not for ever."""
        total = sum(each.size_bytes for each in self._operations)
        for _ in range(SETTLE_STEPS):
            if self._far.taken_bytes >= total and self._taken >= len(self._receives):
                return
            await self._engine.sleep(SETTLE_STEP_PS)

    def _post(self, number: int) -> None:
        operation, opcode = self._operations[number], self._opcodes[number]
        self._posted += 1
        here, place, there, at = self._noise, self._from(self._noise, number), self._inbox, self._to(number)
        acted = len(self._atomics)
        if opcode in ATOMICS:
            here, place, there, at = self._home, self._to(number, self._home), self._counter, self._counter.addr
            self._atomics[number] = acted
        elif opcode is WROpcode.RDMA_READ:
            here, place = self._home, self._to(number, self._home)
            there, at = self._far_noise, self._from(self._far_noise, number)
        self.qp.post_send(
            SendWR(
                wr_id=number,
                sge=SGE(addr=place, length=operation.size_bytes, lkey=here.lkey),
                opcode=opcode,
                remote_addr=at,
                rkey=there.rkey,
                imm_data=operation.immediate or 0,
                compare_add=1 if opcode is WROpcode.ATOMIC_FETCH_AND_ADD else acted,
                swap=acted + 1,
                ah=self._ah,
                remote_qpn=self._far.qp_num,
                remote_qkey=QKEY,
            )
        )

    def _completed(self, _: object) -> None:
        self._cq.req_notify().when_done(self._completed)
        for entry in self._cq.poll_cq(self._window + 1):
            self._done += 1
            if entry.status:
                self._failed = True
            elif self._transport is QPType.RC:
                self._verify(entry.wr_id)
        if self._room is not None:
            room, self._room = self._room, None
            room.resolve()

    def _verify(self, number: int) -> None:
        """Raise InvariantBroken unless the message is there (or a later one was posted to its place)."""
        if self._posted > number + self._places:
            return
        operation, opcode = self._operations[number], self._opcodes[number]
        target = self._inbox
        if opcode in ATOMICS:
            target, sent = self._home, self._atomics[number].to_bytes(ATOMIC_BYTES, "little")
        elif opcode is WROpcode.RDMA_READ:
            target, sent = self._home, self._sent(self._far_noise, number, operation)
        else:
            sent = self._sent(self._noise, number, operation)
        if not target.buffer.startswith(sent, self._to(number, target) - target.addr):
            raise InvariantBroken(f"queue pair {self.qp.qp_num:#x}: message {number} is not in the target's memory")

    def _sent(self, noise: MR, number: int, operation: Operation) -> bytes:
        return bytes(noise.slice(self._from(noise, number), operation.size_bytes))

    def _from(self, noise: MR, number: int) -> int:
        return noise.addr + number % SHIFTS * SHIFT_BYTES

    def _to(self, number: int, target: MR | None = None) -> int:
        return (target or self._inbox).addr + number % self._places * self._place_bytes

    def _expect_receives(self) -> None:
        """Post the first places for what takes a receive; each that is used is followed by the next one."""
        for number in self._receives[: self._ahead]:
            self._post_receive(number)
        if self._receives:
            self._far_cq.req_notify().when_done(self._received)

    def _post_receive(self, number: int) -> None:
        sge = SGE(addr=self._to(number), length=self._place_bytes, lkey=self._inbox.lkey)
        takes = self._opcodes[number] in SENDS and self._place_bytes
        self._far.post_recv(RecvWR(wr_id=number, sg_list=(sge,) if takes else ()))

    def _received(self, _: object) -> None:
        self._far_cq.req_notify().when_done(self._received)
        for entry in self._far_cq.poll_cq(self._ahead + 1):
            if entry.status:
                continue  # flushed: its queue pair broke
            self._check_receive(entry.wr_id, entry.byte_len, entry.imm_data)
            self._taken += 1
            following = self._taken + self._ahead - 1
            if following < len(self._receives):
                self._post_receive(self._receives[following])

    def _check_receive(self, number: int, byte_len: int, imm_data: int) -> None:
        """Where all arrive, or none (RC), the next receive is for the next message."""
        operation = self._operations[number]
        expected = (operation.size_bytes, operation.immediate or 0)
        if self._transport is QPType.RC and (byte_len, imm_data) != expected:
            raise InvariantBroken(f"queue pair {self._far.qp_num:#x}: receive {number} got {byte_len}, {imm_data:#x}")
