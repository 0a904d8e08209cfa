"""The GPU's side of a proxy: warps write requests of 32 bytes into a ring in host memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from struct import Struct

from emu.engine import Engine
from emu.host.dma import DmaEngine
from emu.host.places import REQUEST_BYTES, RING_BYTES
from emu.host.queue import Job
from emu.pcie.tlp import Tlp
from emu.scenario.host_path import Gpu as GpuModel

REQUEST = Struct("<QQQQ")  # each entry's lowest bit is its flag: the phase, which flips as the ring wraps
SLOTS = RING_BYTES // REQUEST_BYTES


class Request:
    """The note of a request's packet."""

    __slots__ = ("_ask", "_job")

    def __init__(self, ask: Callable[[Job], object], job: Job) -> None:
        self._ask = ask
        self._job = job

    def arrived(self, _: Tlp) -> None:
        """The proxy may see it from now on."""
        self._ask(self._job)


class Requests:
    """Each of `warps` warps has one request at a time; a full ring makes them wait."""

    __slots__ = ("_arrive", "_dma", "_engine", "_idle", "_model", "_sent", "_taken", "_waiting", "_written", "ring")

    def __init__(
        self, engine: Engine, dma: DmaEngine, model: GpuModel, ring: int, ask: Callable[[Job], object]
    ) -> None:
        self._engine = engine
        self._dma = dma
        self._model = model
        self.ring = ring  # its address
        self._arrive = ask
        self._idle = model.warps
        self._written = 0  # slots given out
        self._sent = 0
        self._taken = 0
        self._waiting: deque[Job] = deque()

    def post(self, job: Job) -> None:
        """The work request waits for a warp."""
        self._waiting.append(job)
        self._begin()

    def taken(self) -> None:
        """The proxy has taken the oldest request: its slot is free."""
        self._taken += 1
        self._begin()

    def _begin(self) -> None:
        while self._idle and self._waiting and self._written - self._taken < SLOTS:
            self._idle -= 1
            self._written += 1
            self._engine.at(self._engine.now_ps + self._model.request_ps, self._write, self._waiting.popleft())

    def _write(self, job: Job) -> None:
        """A put as NVSHMEM's proxy has it: operation and size, addresses, queue pair, each with the phase bit."""
        number, wqe = self._sent, job.wqe
        self._sent += 1
        phase = number // SLOTS + 1 & 1
        size_bytes, local = wqe.size_bytes, wqe.places[0][0] if wqe.places else 0
        entries = (int(wqe.opcode) << 48 | size_bytes, local, wqe.remote_addr, job.queue.qp_num)
        data = REQUEST.pack(*(entry << 1 & (1 << 64) - 1 | phase for entry in entries))
        self._dma.write(self.ring + number % SLOTS * REQUEST_BYTES, data, Request(self._arrive, job))
        self._idle += 1
        self._begin()
