"""A CPU that posts for a GPU: threads behind a ring in host memory (NVSHMEM's IBRC), or one that synchronises."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from emu.engine import Engine
from emu.host.queue import HostQueue, Job
from emu.host.writer import WqeWriter
from emu.pcie.tlp import Tlp
from emu.scenario.host_path import Cpu as CpuModel


class Thread:
    """One thread: a pass is a look at the ring and the CQs, then up to `batch` requests, each with its doorbell."""

    __slots__ = (
        "_batch",
        "_engine",
        "_is_busy",
        "_left",
        "_looks",
        "_model",
        "_request_ps",
        "_waiting",
        "_writer",
        "on_take",
    )

    def __init__(self, engine: Engine, model: CpuModel, writer: WqeWriter, request_ps: int, *, looks: bool) -> None:
        """`looks`: whether it finds its requests by looking at a ring; else it is told at once."""
        self._engine = engine
        self._model = model
        self._writer = writer
        self._request_ps = request_ps  # serial, of each request: decoded, WQE built, posted, rung
        self._looks = looks
        self._batch = model.batch
        self._left = 0  # requests that this pass may still take
        self._is_busy = False
        self._waiting: deque[Job] = deque()
        self.on_take: Callable[[], object] | None = None  # the ring's slot of a request is free

    def ask(self, job: Job) -> None:
        """A request is in the ring now."""
        job.asked_ps = self._engine.now_ps
        self._waiting.append(job)
        if not self._is_busy:
            self._is_busy = True
            self._look()

    def retired(self, queue: HostQueue) -> None:
        """There is room in the queue again."""
        queue.is_blocked = False
        if not self._is_busy and self._waiting:
            self._is_busy = True
            self._look()

    def _look(self) -> None:
        self._left = self._batch
        look_ps = self._model.poll_ps if self._looks else 0
        self._engine.at(self._engine.now_ps + look_ps, self._next)

    def _next(self, _: object = None) -> None:
        """The next request of this pass, the next pass, or nothing: those whose queue is full wait for it, in order."""
        waiting = self._waiting
        while waiting and waiting[0].queue.is_gone:
            self._taken()
        if not waiting or waiting[0].queue.is_blocked:
            self._is_busy = False
            return
        if not self._left:
            self._look()
            return
        job = waiting[0]
        if not self._writer.reserve(job):
            job.queue.is_blocked = True
            self._is_busy = False
            return
        self._taken()
        self._left -= 1
        self._engine.at(self._engine.now_ps + self._request_ps, self._post, job)

    def _taken(self) -> None:
        self._waiting.popleft()
        if self.on_take is not None:
            self.on_take()

    def _post(self, job: Job) -> None:
        block = self._writer.write(job)
        job.written_ps = self._engine.now_ps
        if self._model.blueflame:
            self._writer.blueflame(job, block)
        else:
            self._writer.ring(job.queue, job.index + job.blocks)
        self._next()


class Ringer:
    """A thread that rings for a GPU which writes its WQEs itself (NVSHMEM's nic_handler cpu): once for each word."""

    __slots__ = ("_engine", "_is_busy", "_model", "_waiting", "_writer")

    def __init__(self, engine: Engine, model: CpuModel, writer: WqeWriter) -> None:
        self._engine = engine
        self._model = model
        self._writer = writer
        self._is_busy = False
        self._waiting: deque[tuple[HostQueue, int]] = deque()

    def told(self, queue: HostQueue, tlp: Tlp) -> None:
        """The queue's producer index is in host memory."""
        self._waiting.append((queue, int.from_bytes(tlp.payload, "little")))
        if not self._is_busy:
            self._is_busy = True
            self._engine.at(self._engine.now_ps + self._model.poll_ps + self._model.post_ps, self._ring)

    def _ring(self, _: object) -> None:
        self._writer.ring(*self._waiting.popleft())
        self._is_busy = bool(self._waiting)
        if self._is_busy:
            self._engine.at(self._engine.now_ps + self._model.post_ps, self._ring)
