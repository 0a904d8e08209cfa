"""A GPU that posts for itself: warps write WQEs and ring (NVSHMEM's IBGDA, step by step)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from emu.engine import Engine
from emu.host.queue import HostQueue, Job
from emu.host.writer import WqeWriter
from emu.scenario.host_path import Gpu as GpuModel

Ring = Callable[[HostQueue, int], object]
"""Tells of a queue's blocks up to an index."""


class Warps:
    """`warps` of them side by side, each with one work request at a time; queue pairs are served in turn.

    A warp that has written its WQE rings if it crossed a batch's boundary, or if no other is about to.
    """

    __slots__ = ("_batch", "_engine", "_idle", "_listed", "_model", "_ring", "_writer")

    def __init__(self, engine: Engine, model: GpuModel, writer: WqeWriter, batch: int, ring: Ring) -> None:
        """`ring`: how the NIC is told."""
        self._engine = engine
        self._model = model
        self._writer = writer
        self._batch = batch
        self._ring = ring
        self._idle = model.warps
        self._listed: deque[HostQueue] = deque()  # those with something to post, and as far as is known room for it

    def post(self, job: Job) -> None:
        """The work request waits for a warp."""
        job.queue.pending.append(job)
        self._list(job.queue)
        self._begin()

    def retired(self, queue: HostQueue) -> None:
        """There is room in the queue again."""
        queue.is_blocked = False
        self._list(queue)
        self._begin()

    def _list(self, queue: HostQueue) -> None:
        if queue.pending and not queue.is_listed and not queue.is_blocked:
            queue.is_listed = True
            self._listed.append(queue)

    def _begin(self) -> None:
        """Give idle warps work: each reserves its slots at once, and has written its WQE `post_ps` later."""
        listed = self._listed
        while self._idle and listed:
            queue = listed.popleft()
            queue.is_listed = False
            if queue.is_gone:
                queue.pending.clear()
                continue
            job = queue.pending[0]
            if not self._writer.reserve(job):
                queue.is_blocked = True
                if not queue.building and not queue.rings_due and queue.rung < queue.ring.published:
                    self._idle -= 1
                    self._ring_later(queue)  # who waits for room first makes sure that all is told of
                continue
            queue.pending.popleft()
            self._list(queue)
            queue.building += 1
            self._idle -= 1
            job.asked_ps = self._engine.now_ps
            self._engine.at(job.asked_ps + self._model.post_ps, self._written, job)

    def _written(self, job: Job) -> None:
        queue, ring = job.queue, job.queue.ring
        before = ring.published
        self._writer.write(job)
        job.written_ps = self._engine.now_ps
        queue.building -= 1
        others = queue.building or (queue.pending and not queue.is_blocked)
        if not others or before // self._batch != ring.published // self._batch:
            self._ring_later(queue)
        else:
            self._idle += 1
            self._begin()

    def _ring_later(self, queue: HostQueue) -> None:
        """The warp stays with it until its doorbell has left; it tells of what is written now."""
        queue.rings_due += 1
        self._engine.at(self._engine.now_ps + self._model.ring_ps, self._rung, (queue, queue.ring.published))

    def _rung(self, rung: tuple[HostQueue, int]) -> None:
        queue, up_to = rung
        queue.rings_due -= 1
        self._ring(queue, up_to)
        self._idle += 1
        self._begin()
