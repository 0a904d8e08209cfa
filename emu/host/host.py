"""One host: the way of a work request from its program to the NIC, by the path that the scenario chose, and back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from emu.devices.nic import Nic
from emu.devices.queue_pair import QueuePairState
from emu.engine import Engine
from emu.errors import VerbsError
from emu.frame import Frame, Message
from emu.host.answers import Answers
from emu.host.bounce import Bounces
from emu.host.completion import cqe_of_receive, status_of
from emu.host.cpu import Ringer, Thread
from emu.host.front_end import FrontEnd
from emu.host.gpu import Warps
from emu.host.landing import Copied, LandingPlace
from emu.host.places import CONTEXT_BYTES, REQUEST_BYTES, RING_BYTES, UAR_START
from emu.host.proxy import Requests
from emu.host.queue import HostQueue, Job
from emu.host.telling import Telling
from emu.host.tree import Tree
from emu.host.wqe import is_inline, most_blocks
from emu.host.writer import WqeWriter
from emu.mlx5.cqe import CQE_BYTES
from emu.mlx5.doorbell import DOORBELL_BYTES, RECORD_BYTES, UAR_BYTES
from emu.mlx5.segments import WQEBB_BYTES
from emu.pcie.tlp import Tlp
from emu.scenario.host import Host as HostModel
from emu.taps import Taps
from emu.transport.answer import AnyAnswer
from emu.transport.memory import MemoryRegion
from emu.transport.received import Received
from emu.transport.requester import Completion
from emu.transport.wc import WcStatus
from emu.transport.work import Places, SendWqe

WORD_BYTES = 8


class CqeNote:
    """The note of a queue pair's CQEs."""

    __slots__ = ("arrived",)

    def __init__(self, arrived: Callable[[Tlp], object]) -> None:
        self.arrived = arrived


class Host:
    """What `Nic.host` is: see emu/devices/host_side.py. One GPU, one NIC, one CPU."""

    def __init__(self, engine: Engine, nic: Nic, model: HostModel, taps: Taps) -> None:
        gpu, cpu, queues = model.gpu, model.cpu, model.queues
        assert gpu is not None and cpu is not None and queues is not None
        self.engine, self._nic, self.taps, self.model = engine, nic, taps, model
        self._gpu, self._cpu, self._depth, self._inline_bytes = gpu, cpu, queues.qp_depth, queues.inline_bytes
        self.tree = tree = Tree(engine, nic.name, model, taps, lambda tlp: self.front_end.receive(tlp))
        self.front_end = FrontEnd(engine, nic, tree.nic, model.nic)
        self._on_gpu = model.path == "ibgda"
        self._collapsed = self._on_gpu and queues.collapsed_cq
        queues_on_gpu = self._on_gpu and queues.nic_buf_memtype == "gpumem"
        self.queue_memory = tree.gpu_memory if queues_on_gpu else tree.host_memory
        self._bounces = None if model.gpu_direct else Bounces(tree.host_memory.space)
        self._places = LandingPlace(engine, nic, tree, self._bounces, gpu.copy_ps)
        self._answers = Answers(engine, nic, tree.nic, self._bounces)
        self._queues: dict[QueuePairState, HostQueue] = {}
        self._numbers: dict[QueuePairState, int] = {}
        self._receives: dict[QueuePairState, tuple[int, deque[tuple[Message | None, Received]]]] = {}
        nic.memory.watch(self._registered)
        gpu_writer = WqeWriter(tree.gpu, tree.gpu_memory, queues.inline_bytes, taps, signals=True)
        synchronises = model.path == "cpu_sync"
        cpu_writer = WqeWriter(tree.cpu, tree.host_memory, queues.inline_bytes, taps, signals=not synchronises)
        request_ps = cpu.synchronize_ps + cpu.post_ps if synchronises else cpu.request_ps
        cores = 1 if synchronises else cpu.cores
        self._threads = [Thread(engine, cpu, cpu_writer, request_ps, looks=not synchronises) for _ in range(cores)]
        self._warps: Warps | None = None
        self._ringer: Ringer | None = None
        self._requests: Requests | None = None
        if self._on_gpu:
            self._ringer = Ringer(engine, cpu, cpu_writer) if queues.nic_handler == "cpu" else None
            tell = self._tell_cpu if self._ringer is not None else gpu_writer.ring
            self._warps = Warps(engine, gpu, gpu_writer, queues.num_requests_in_batch, tell)
        elif not synchronises:
            ring = tree.host_memory.space.allocate(RING_BYTES, 4096)
            self._requests = Requests(engine, tree.gpu, gpu, ring, self._hand_over)
            for thread in self._threads:
                thread.on_take = self._requests.taken

    def attach(self, qp_num: int, state: QueuePairState) -> None:
        """Its send queue is made when it first posts."""
        self._numbers[state] = qp_num

    def detach(self, state: QueuePairState) -> None:
        """It is reset: nothing comes of what it posted, and nothing is told."""
        self._numbers.pop(state, None)
        queue = self._queues.pop(state, None)
        if queue is not None:
            self.front_end.forget(queue)
            for memory in (self.tree.host_memory, self.tree.gpu_memory):
                memory.unwatch(queue.word_addr)
            if queue.is_blocked:
                self._poster_of(queue).retired(queue)  # who waits for room in it need not any more
        if state in self._receives:
            self.queue_memory.unwatch(self._receives.pop(state)[0])

    def post(self, state: QueuePairState, wqe: SendWqe) -> None:
        """The program posts: copy what may not be read where it lies, then ask."""
        queue = self._queues.get(state)
        if queue is None:
            queue = self._queues[state] = self._make_queue(state)
        blocks = most_blocks(wqe)
        if blocks > self._depth:
            raise VerbsError(f"a WQE of {blocks} blocks in a send queue of {self._depth} (host.queues.qp_depth)")
        job = Job(queue, wqe)
        if self._bounces is None:
            self._ask(job)
            return
        queue.copying.append(job)
        if wqe.segments is None or not wqe.size_bytes or is_inline(wqe, self._inline_bytes if self._on_gpu else 0):
            self._copied(job)
        else:
            self.engine.at(self.engine.now_ps + self._gpu.copy_ps, self._copy, job)

    def land(self, places: Places, frame: Frame, *, ends: bool) -> None:
        """Bytes from the network go to memory."""
        self._places.land(places, frame, ends=ends)

    def finished(self, state: QueuePairState, done: Sequence[Completion]) -> None:
        """CQEs are owed."""
        queue = self._queues.get(state)
        if queue is not None:
            for wqe, status in done:
                self.front_end.finish(queue, wqe, status)

    def received(self, state: QueuePairState, receives: Sequence[Received]) -> None:
        """CQEs of receives, behind the bytes that they tell of."""
        if state not in self._receives:
            address = self.queue_memory.space.allocate(CQE_BYTES)
            waiting: deque[tuple[Message | None, Received]] = deque()
            self._receives[state] = (address, waiting)
            telling = Telling(self._places, state.receive)
            self.queue_memory.watch(address, partial(self._receive_here, waiting, telling))
        address, waiting = self._receives[state]
        for each in receives:
            waiting.append((self._places.ended if self._bounces is not None else None, each))
            self.tree.nic.write(address, cqe_of_receive(each, self._numbers[state]))

    def owe(self, state: QueuePairState, answer: AnyAnswer) -> None:
        """The transport owes an answer: it leaves once what it brings has been read, and after those before it."""
        self._answers.owe(state, answer)

    def describe(self, address: int, length: int) -> str:
        """What lies there, in a word or two."""
        if UAR_START <= address < UAR_START + UAR_BYTES:
            return "doorbell" if length == DOORBELL_BYTES else "BlueFlame, the WQE with its doorbell"
        for queue in self._queues.values():
            if queue.sq_addr <= address < queue.sq_addr + self._depth * WQEBB_BYTES:
                return "WQE"
            if queue.cq_addr <= address < queue.cq_addr + queue.cq_entries * CQE_BYTES:
                return "CQE"
            names = {queue.context_addr: "queue pair's context", queue.word_addr: "word"}
            if address in names:
                return names[address]
            if queue.dbr_addr <= address < queue.dbr_addr + RECORD_BYTES:
                return "doorbell record"
        if any(address == cq_addr for cq_addr, _ in self._receives.values()):
            return "CQE of a receive"
        if self._requests is not None and 0 <= address - self._requests.ring < RING_BYTES:
            return "request"
        return "payload"

    def _registered(self, region: MemoryRegion) -> None:
        if region.length:
            self.tree.gpu_memory.space.map(region.addr, region.buffer)

    def _tell_cpu(self, queue: HostQueue, up_to: int) -> None:
        """The GPU may not ring: it writes the producer index to where a CPU thread looks."""
        self.tree.gpu.write(queue.word_addr, up_to.to_bytes(WORD_BYTES, "little"))

    def _make_queue(self, state: QueuePairState) -> HostQueue:
        queue = HostQueue(self._numbers[state], state, self.queue_memory, self._depth, collapsed=self._collapsed)
        queue.telling = Telling(self._places, state.complete)
        queue.cqe_note = CqeNote(partial(self._cqe_here, queue))
        queue.context_addr = self.tree.host_memory.space.allocate(CONTEXT_BYTES)
        self.front_end.queues[queue.qp_num] = queue
        if self._ringer is not None:
            queue.word_addr = self.tree.host_memory.space.allocate(WORD_BYTES)
            self.tree.host_memory.watch(queue.word_addr, partial(self._ringer.told, queue))
        elif self._requests is not None:
            queue.word_addr = self.tree.gpu_memory.space.allocate(WORD_BYTES)
            self.tree.gpu_memory.watch(queue.word_addr, partial(self._told, queue))
        return queue

    def _copy(self, job: Job) -> None:
        """GPU memory to host memory, by the GPU's stores."""
        assert self._bounces is not None
        places = [place for place in job.wqe.places if place[1]]
        job.places = self._bounces.places_of(job.queue.state.memory, places)
        last = len(places) - 1
        for number, ((source, length, _), (target, _, _)) in enumerate(zip(places, job.places, strict=True)):
            data = self.tree.gpu_memory.space.read(source, length) or b""
            note = Copied(target + length, partial(self._copied, job)) if number == last else None
            self.tree.gpu.write(target, data, note)

    def _copied(self, job: Job) -> None:
        """It goes on once all before it in its queue do."""
        job.is_copied = True
        copying = job.queue.copying
        while copying and copying[0].is_copied:
            self._ask(copying.popleft())

    def _ask(self, job: Job) -> None:
        job.copied_ps = self.engine.now_ps
        if self._warps is not None:
            self._warps.post(job)
        elif self._requests is not None:
            self._requests.post(job)
        else:
            self._hand_over(job)

    def _hand_over(self, job: Job) -> None:
        """A CPU thread may see the request."""
        self._threads[job.queue.qp_num % len(self._threads)].ask(job)

    def _poster_of(self, queue: HostQueue) -> Warps | Thread:
        return self._warps or self._threads[queue.qp_num % len(self._threads)]

    def _cqe_here(self, queue: HostQueue, tlp: Tlp) -> None:
        """A CQE is in memory: whoever polls it sees it a little later."""
        if queue.is_gone:
            return
        queue.written_cqes.append(bytes(tlp.payload))
        if len(queue.written_cqes) == 1:
            self._poll(queue)

    def _poll(self, queue: HostQueue) -> None:
        """A look at the CQ begins, which sees what is there now."""
        poll_ps = self._gpu.poll_ps if self._on_gpu else self._cpu.poll_ps
        self.engine.at(self.engine.now_ps + poll_ps, self._polled, (queue, len(queue.written_cqes)))

    def _polled(self, polled: tuple[HostQueue, int]) -> None:
        queue, count = polled
        for _ in range(count):
            self._see(queue, queue.written_cqes.popleft())
        if queue.written_cqes:
            self._poll(queue)

    def _see(self, queue: HostQueue, cqe: bytes) -> None:
        if self.taps.host_step:
            self.taps.host_step(f"{self._nic.name}.{'gpu' if self._on_gpu else 'cpu'}", "sees the CQE", "")
        counter, status = status_of(cqe)
        index = queue.ring.index_of(counter)
        done: list[Completion] = []
        while queue.unfinished and queue.unfinished[0].index <= index:
            job = queue.unfinished.popleft()
            queue.jobs[queue.place(job.index)] = None
            queue.ring.retire(job.index + job.blocks)
            done.append((job.wqe, status if job.index == index else WcStatus.SUCCESS))
        if queue.is_blocked:
            self._poster_of(queue).retired(queue)
        if self._requests is None:
            self._complete(queue, done)
        else:  # the GPU spins on a word of its own memory
            queue.told.append(done)
            self.tree.cpu.write(queue.word_addr, (index + 1).to_bytes(WORD_BYTES, "little"))

    def _told(self, queue: HostQueue, _: Tlp) -> None:
        self.engine.at(self.engine.now_ps + self._gpu.poll_ps, self._seen, queue)

    def _seen(self, queue: HostQueue) -> None:
        if self.taps.host_step:
            self.taps.host_step(self.tree.gpu_memory.name, "sees that it is done", "")
        self._complete(queue, queue.told.popleft())

    def _complete(self, queue: HostQueue, done: list[Completion]) -> None:
        for completion in done:
            wqe, status = completion
            fetches = self._bounces is not None and wqe.segments is None and not status
            queue.telling.put(wqe.message if fetches else None, completion)

    def _receive_here(self, waiting: deque[tuple[Message | None, Received]], telling: Telling, _: Tlp) -> None:
        poll_ps = self._gpu.poll_ps if self._on_gpu else self._cpu.poll_ps
        self.engine.at(self.engine.now_ps + poll_ps, self._receive_seen, (waiting, telling))

    def _receive_seen(self, seen: tuple[deque[tuple[Message | None, Received]], Telling]) -> None:
        waiting, telling = seen
        telling.put(*waiting.popleft())


assert RING_BYTES % REQUEST_BYTES == 0
