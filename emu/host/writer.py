"""Whoever posts: writes WQEs into a queue, its doorbell record, and rings, across the bus where they lie there."""

from __future__ import annotations

from emu.frame import Buffer
from emu.host.dma import DmaEngine
from emu.host.memory import Memory
from emu.host.places import UAR_START
from emu.host.queue import HostQueue, Job
from emu.host.wqe import wqe_of
from emu.mlx5 import doorbell
from emu.mlx5.segments import DS_LIMIT, WQEBB_BYTES, blocks_of
from emu.mlx5.wqe import ds_of, encode
from emu.taps import Taps

MOST_BLOCKS = blocks_of(DS_LIMIT - 1)


class WqeWriter:
    """A GPU's, or a CPU's: `own` is the memory that it reaches without the bus."""

    __slots__ = ("_blueflame", "_dma", "_inline_limit_bytes", "_own", "_signals", "_taps")

    def __init__(self, dma: DmaEngine, own: Memory, inline_limit_bytes: int, taps: Taps, *, signals: bool) -> None:
        """`signals`: whether each WQE wants a CQE, as NVSHMEM's do; else those that the program wants one for."""
        self._signals = signals
        self._taps = taps
        self._dma = dma
        self._own = own
        self._inline_limit_bytes = inline_limit_bytes
        self._blueflame = doorbell.BlueFlame()

    def reserve(self, job: Job) -> bool:
        """Slots of its queue for the work request; False: there is no room now."""
        job.blocks = blocks_of(ds_of(wqe_of(job, inline_limit_bytes=self._inline_limit_bytes)))
        job.index = job.queue.ring.reserve(job.blocks)
        return job.index >= 0

    def write(self, job: Job) -> bytes:
        """Write the WQE to its slots, and make them the NIC's."""
        queue = job.queue
        wqe, end = wqe_of(job, inline_limit_bytes=self._inline_limit_bytes), job.index + job.blocks
        # Only CQEs make room: behind the last WQE that wants one there must always be enough for any other.
        if self._signals or end - queue.signaled > queue.ring.depth - MOST_BLOCKS:
            wqe.signaled = True
        if wqe.signaled:
            queue.signaled = end
        block = encode(wqe)
        for offset in range(0, len(block), WQEBB_BYTES):  # a WQE may go on at the ring's start
            place = queue.sq_addr + queue.ring.offset(job.index + offset // WQEBB_BYTES)
            self._put(queue, place, block[offset : offset + WQEBB_BYTES])
        if self._taps.host_step:
            self._taps.host_step(self._own.name, f"writes the WQE, {len(block)} B", queue.memory.name)
        queue.jobs[queue.place(job.index)] = job
        queue.unfinished.append(job)
        queue.ring.publish(job.index + job.blocks)
        return block

    def ring(self, queue: HostQueue, up_to: int) -> None:
        """Doorbell record, then doorbell: of the blocks before `up_to`, if none has told of them."""
        if queue.rung < up_to and not queue.is_gone:
            self._record(queue, up_to)
            self._dma.write(UAR_START, doorbell.encode_doorbell(up_to, queue.qp_num), queue)

    def blueflame(self, job: Job, block: bytes) -> None:
        """The WQE itself to the NIC; one that no register holds, or no packet, is only rung for."""
        if len(block) > min(doorbell.BLUEFLAME_BUFFER_BYTES, self._dma.mps_bytes):
            self.ring(job.queue, job.index + job.blocks)
        elif not job.queue.is_gone:
            self._record(job.queue, job.index + job.blocks)
            self._dma.write(UAR_START + self._blueflame.next_offset(), block, job.queue)

    def _record(self, queue: HostQueue, up_to: int) -> None:
        queue.rung = up_to
        if self._taps.host_step:
            self._taps.host_step(self._own.name, "writes the doorbell record", queue.memory.name)
        self._put(queue, queue.dbr_addr + doorbell.SEND_COUNTER_OFFSET, doorbell.encode_counter(up_to))

    def _put(self, queue: HostQueue, address: int, data: Buffer) -> None:
        if queue.memory is self._own:
            self._own.space.write(address, data)
        else:
            self._dma.write(address, data)
