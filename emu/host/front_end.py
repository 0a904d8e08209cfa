"""The NIC's side of the host interface: doorbells in, WQEs and payload fetched, CQEs out.

What it acts on are the bytes that came: a WQE written wrong gets the error CQE that it deserves (reference: mlx5dv.h).
"""

from __future__ import annotations

from collections import OrderedDict
from functools import partial

from emu.devices.nic import Nic
from emu.engine import Engine
from emu.errors import WireError
from emu.frame import Buffer
from emu.host.completion import cqe_of
from emu.host.dma import DmaEngine
from emu.host.gather import Gather
from emu.host.places import CONTEXT_BYTES
from emu.host.queue import HostQueue, Job
from emu.host.turns import Turns
from emu.host.wqe import rewrite
from emu.mlx5 import doorbell
from emu.mlx5.ring import expand
from emu.mlx5.segments import WQEBB_BYTES
from emu.mlx5.wqe import decode
from emu.opcodes import RC
from emu.parts import HOST, NIC
from emu.pcie.tlp import Tlp, TlpKind
from emu.scenario.host import Nic as NicModel
from emu.transport.wc import WcStatus
from emu.transport.work import SendWqe

CPLD = TlpKind.CPLD


class FrontEnd:
    """Behind the UAR. WQEs of one queue pair are taken up in order, those of all at no more than the NIC's rate."""

    __slots__ = (
        "_contexts",
        "_context_cache",
        "_engine",
        "_gather",
        "_nic",
        "_turns",
        "bad_doorbells",
        "context_misses",
        "dma",
        "queues",
    )

    def __init__(self, engine: Engine, nic: Nic, dma: DmaEngine, model: NicModel) -> None:
        assert model.message_rate and model.qp_message_rate and model.context_cache  # the profile gives them
        self._engine = engine
        self._nic = nic
        self._turns = Turns(engine, model.message_rate, model.qp_message_rate, self._transmit)
        self._contexts: OrderedDict[int, None] = OrderedDict()  # queue pairs, the one used last at the end
        self._context_cache = model.context_cache
        self._gather = Gather(dma, self._gathered)
        self.context_misses = 0
        self.bad_doorbells = 0  # of no queue pair of ours, or beyond its queue
        self.dma = dma
        self.queues: dict[int, HostQueue] = {}

    def receive(self, tlp: Tlp) -> None:
        """A packet for the NIC: a completion of its own reads, or a doorbell."""
        if tlp.kind is CPLD:
            self.dma.complete(tlp)
            return
        if isinstance(tlp.note, HostQueue) and tlp.note.is_gone:
            return  # the driver resets a queue pair behind its last doorbell
        try:
            rung = doorbell.decode(tlp.payload)
        except WireError:
            self.bad_doorbells += 1
            return
        queue = self.queues.get(rung.qp_num)
        producer = rung.producer
        up_to = expand(producer, queue.announced) if queue is not None else 0
        if queue is None or up_to - queue.ring.retired > queue.ring.depth:
            self.bad_doorbells += 1
            return
        if up_to == queue.announced:
            return
        now_ps = self._engine.now_ps
        start, queue.announced = queue.announced, up_to
        for index in range(start, up_to):
            job = queue.jobs[queue.place(index)]
            if job is not None and job.index == index:
                job.rung_ps = now_ps
        if queue.awaits_context:
            return  # what is told of meanwhile is fetched with the rest
        carries = len(tlp.payload) > doorbell.DOORBELL_BYTES  # BlueFlame: the WQE came along
        if queue.qp_num in self._contexts:
            self._contexts.move_to_end(queue.qp_num)
            self._go_on(queue, start, tlp.payload if carries else None, CONTEXT_BYTES)
        else:
            self._miss(queue, start, tlp.payload if carries else None)

    def _miss(self, queue: HostQueue, start: int, block: Buffer | None) -> None:
        """The queue pair's context is not here: read it first."""
        self.context_misses += 1
        self._contexts[queue.qp_num] = None
        if len(self._contexts) > self._context_cache:
            self._contexts.popitem(last=False)
        queue.awaits_context = True
        context = bytearray(CONTEXT_BYTES)
        self.dma.read(queue.context_addr, CONTEXT_BYTES, context, partial(self._go_on, queue, start, block))

    def _go_on(self, queue: HostQueue, start: int, block: Buffer | None, here: int) -> None:
        if here < CONTEXT_BYTES or queue.is_gone:
            return
        queue.awaits_context = False
        if block is not None and start == queue.next_index and not queue.raw:
            queue.raw += block
            self._decode(queue)
            start = queue.next_index
        self._fetch(queue, start, queue.announced)

    def _fetch(self, queue: HostQueue, start: int, end: int) -> None:
        """Read the WQEs from `start` to `end`; those of one doorbell together, as far as the ring goes on."""
        depth = queue.ring.depth
        while start < end:
            count = min(end - start, depth - (start & depth - 1))
            buffer = bytearray(count * WQEBB_BYTES)
            address = queue.sq_addr + queue.ring.offset(start)
            self.dma.read(address, len(buffer), buffer, partial(self._fetched, queue, _Span(buffer)))
            start += count

    def _fetched(self, queue: HostQueue, span: _Span, here: int) -> None:
        if queue.is_gone:
            return
        queue.raw += span.buffer[span.taken : here]
        span.taken = here
        self._decode(queue)

    def _decode(self, queue: HostQueue) -> None:
        raw = queue.raw
        while len(raw) >= WQEBB_BYTES:
            job = queue.jobs[queue.place(queue.next_index)]
            if job is None or job.index != queue.next_index:
                raw.clear()  # a doorbell told of what nobody wrote
                queue.announced = queue.next_index
                self._nic.break_off(queue.state)
                return
            length = job.blocks * WQEBB_BYTES
            if len(raw) < length:
                return
            block = bytes(raw[:length])
            del raw[:length]
            queue.next_index += job.blocks
            self._take(job, block)

    def _take(self, job: Job, block: bytes) -> None:
        """A WQE is here: act on what it says."""
        queue = job.queue
        job.fetched_ps = self._engine.now_ps
        queue.line.append(job)
        try:
            wqe = decode(block)
        except WireError:
            job.status = WcStatus.LOC_QP_OP_ERR
        else:
            if wqe.index != job.index & 0xFFFF or wqe.qp_num != queue.qp_num:
                job.status = WcStatus.LOC_QP_OP_ERR
            else:
                job.status = rewrite(job.wqe, wqe, queue.state)
                job.wants_cqe = wqe.signaled
        if job.status or not wqe.data or job.wqe.segments is None:
            job.data = b"" if job.status else wqe.inline or b""
            job.gathered_bytes = len(job.data)
            self._ready(job)
            return
        self._gather.add(job, wqe.data)

    def _gathered(self, job: Job) -> None:
        """More of a message's payload is here."""
        gathered, wqe = job.gathered_bytes, job.wqe
        if job.queue.is_gone:
            self._release(job)
        elif job.is_ready:
            wqe.available = gathered if gathered < len(job.data) else -1
            if wqe.message.steps is not None:
                self._nic.resume(job.queue.state, wqe.message)
        elif gathered == len(job.data) or (gathered >= job.queue.state.mtu_bytes and job.queue.state.transport == RC):
            if gathered < len(job.data):
                wqe.available, wqe.special = gathered, True
            self._ready(job)

    def _ready(self, job: Job) -> None:
        job.is_ready = True
        job.ready_ps = self._engine.now_ps
        job.start_ps = self._engine.now_ps + self._nic.timing.post_ps
        self._turns.look(job.queue)

    def _transmit(self, job: Job) -> None:
        queue, wqe = job.queue, job.wqe
        state = queue.state
        queue.in_transport.append(job)
        wqe.payload = job.data
        if job.status or queue.is_refused:
            queue.is_refused = True  # and so what is behind it may not begin
            self._fail_in_turn(queue)
            return
        message = wqe.message
        total_ps = self._engine.now_ps - message.posted_ps
        nic_ps = self._engine.now_ps - job.ready_ps
        message.steps = [
            job.copied_ps - message.posted_ps,
            job.asked_ps - job.copied_ps,
            job.written_ps - job.asked_ps,
            job.rung_ps - job.written_ps,
            job.fetched_ps - job.rung_ps,
            job.ready_ps - job.fetched_ps,
            0,
            0,
            0,
            0,
            nic_ps - self._nic.timing.post_ps,
        ]
        self._nic.start(state, wqe, ((total_ps - nic_ps) << HOST) + (nic_ps << NIC))

    def _fail_in_turn(self, queue: HostQueue) -> None:
        """What the NIC found wrong itself is said once all before it is finished; then the queue pair is in error."""
        waiting, state = queue.in_transport, queue.state
        failed = state.is_broken or state.requester.failed
        if not queue.is_refused or not waiting or not (failed or waiting[0].status):
            return
        first = waiting.popleft()
        self._complete(first, WcStatus.WR_FLUSH_ERR if failed else first.status)
        while waiting:
            self._complete(waiting.popleft(), WcStatus.WR_FLUSH_ERR)
        if not failed:
            self._nic.break_off(state)

    def forget(self, queue: HostQueue) -> None:
        """The queue pair is reset: nothing comes of its work requests any more."""
        queue.is_gone = True
        if self.queues.get(queue.qp_num) is queue:
            del self.queues[queue.qp_num]
        for job in (*queue.in_transport, *queue.line):
            self._release(job)
        queue.in_transport.clear()
        queue.line.clear()

    def _release(self, job: Job) -> None:
        """Of a queue pair that is gone: nobody needs its payload, once it is here."""
        if job.pieces and job.gathered_bytes == len(job.data):
            self._gather.release(job)

    def finish(self, queue: HostQueue, wqe: SendWqe, status: WcStatus) -> None:
        """The transport is done with a work request: write its CQE, if it wants one or failed."""
        while queue.in_transport:
            job = queue.in_transport.popleft()
            is_it = job.wqe is wqe
            self._complete(job, status if is_it else WcStatus.WR_FLUSH_ERR)  # others never came to the transport
            if is_it:
                break
        self._fail_in_turn(queue)

    def _complete(self, job: Job, status: WcStatus) -> None:
        self._gather.release(job)
        if job.wants_cqe or status:
            address, owner = job.queue.next_cqe()
            self.dma.write(address, cqe_of(job, status, owner), job.queue.cqe_note)


class _Span:
    """Fetched blocks, and how many of their bytes were taken."""

    __slots__ = ("buffer", "taken")

    def __init__(self, buffer: bytearray) -> None:
        self.buffer = buffer
        self.taken = 0
