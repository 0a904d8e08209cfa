"""A NIC reads the payload that its WQEs point at."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from emu.host.dma import DmaEngine
from emu.host.queue import Job

AHEAD_BYTES = 4 << 20  # assumed: several times what is under way at once, so that it never binds


class Gather:
    """In the order of the WQEs, and not much more of it than is under way: a NIC keeps it until the CQE is written."""

    __slots__ = ("_dma", "_held_bytes", "_more", "_waiting")

    def __init__(self, dma: DmaEngine, more: Callable[[Job], object]) -> None:
        """`more`: told whenever more of a job's payload is here."""
        self._dma = dma
        self._more = more
        self._held_bytes = 0
        self._waiting: deque[Job] = deque()

    def add(self, job: Job, pieces: tuple[tuple[int, int, int], ...]) -> None:
        """Read it in its turn; of each piece its bytes, key and address."""
        job.pieces = pieces
        self._waiting.append(job)
        self._go_on()

    def release(self, job: Job) -> None:
        """The message is over."""
        if job.pieces:
            self._held_bytes -= len(job.data)
            job.data = job.wqe.payload = b""
            if self._waiting:
                self._go_on()

    def _go_on(self) -> None:
        while self._waiting:
            job = self._waiting[0]
            length = sum([piece[0] for piece in job.pieces])
            if self._held_bytes and self._held_bytes + length > AHEAD_BYTES:
                return
            self._waiting.popleft()
            self._held_bytes += length
            job.data = bytearray(length)
            view, offset, here = memoryview(job.data), 0, [0] * len(job.pieces)
            for number, (byte_count, _, address) in enumerate(job.pieces):
                self._dma.read(address, byte_count, view[offset:], partial(self._here, job, here, number))
                offset += byte_count

    def _here(self, job: Job, here: list[int], number: int, here_bytes: int) -> None:
        here[number] = here_bytes
        gathered_bytes = 0
        for there, piece in zip(here, job.pieces, strict=True):  # one memory may answer sooner than another
            gathered_bytes += there
            if there < piece[0]:
                break
        job.gathered_bytes = gathered_bytes
        self._more(job)
