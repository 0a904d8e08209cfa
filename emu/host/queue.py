"""A send queue in memory, as both sides know it: who posts keeps its ring, the NIC what it has fetched of it."""

from __future__ import annotations

from collections import deque
from typing import Any

from emu.devices.queue_pair import QueuePairState
from emu.host.memory import Memory
from emu.host.telling import Telling
from emu.mlx5.cqe import CQE_BYTES, INVALID_CQE, owner_of
from emu.mlx5.doorbell import RECORD_BYTES
from emu.mlx5.ring import Ring
from emu.mlx5.segments import WQEBB_BYTES
from emu.transport.requester import Completion
from emu.transport.wc import WcStatus
from emu.transport.work import SendWqe


class Job:
    """One work request on its way from the application to the wire, and back as a CQE."""

    __slots__ = (
        "blocks",
        "copied_ps",
        "data",
        "fetched_ps",
        "gathered_bytes",
        "index",
        "is_copied",
        "is_ready",
        "pieces",
        "places",
        "asked_ps",
        "queue",
        "ready_ps",
        "rung_ps",
        "start_ps",
        "status",
        "wants_cqe",
        "wqe",
        "written_ps",
    )

    def __init__(self, queue: HostQueue, wqe: SendWqe) -> None:
        self.queue = queue
        self.wqe = wqe
        self.index = -1  # of its first WQEBB, once reserved
        self.blocks = 1
        self.data: bytes | bytearray = b""  # its payload, as far as the NIC has it
        self.gathered_bytes = 0
        self.pieces: tuple[tuple[int, int, int], ...] = ()  # what the NIC gathers: bytes, lkey, address
        self.places = wqe.places  # where the NIC finds that: address, length, lkey of each piece
        self.is_copied = False  # to host memory, where that is needed
        self.is_ready = False  # enough of it is in the NIC to start
        self.wants_cqe = False  # as its WQE says
        self.status = WcStatus.SUCCESS  # what the NIC found wrong with it
        # When it was copied to where the NIC reads it, asked for, written to the queue; when the doorbell came that
        # told of it, when the NIC had its WQE, when its payload, and when its frames might leave.
        self.copied_ps = self.asked_ps = self.written_ps = -1
        self.rung_ps = self.fetched_ps = self.ready_ps = self.start_ps = -1


class HostQueue:
    """The send queue of one queue pair: WQEs, CQE and doorbell record lie in `memory`."""

    __slots__ = (
        "announced",
        "awaits_context",
        "awaits_turn",
        "building",
        "context_addr",
        "copying",
        "cq_addr",
        "cq_entries",
        "cqe_note",
        "cqes",
        "dbr_addr",
        "free_ps",
        "in_transport",
        "is_blocked",
        "is_gone",
        "is_listed",
        "is_refused",
        "jobs",
        "line",
        "memory",
        "next_index",
        "pending",
        "qp_num",
        "raw",
        "ring",
        "rings_due",
        "rung",
        "signaled",
        "sq_addr",
        "state",
        "telling",
        "told",
        "unfinished",
        "word_addr",
        "written_cqes",
    )

    telling: Telling  # what its program is told of completions

    def __init__(self, qp_num: int, state: QueuePairState, memory: Memory, depth: int, *, collapsed: bool) -> None:
        self.qp_num = qp_num
        self.state = state
        self.memory = memory
        self.ring = Ring(depth)
        space = memory.space
        self.sq_addr = space.allocate(depth * WQEBB_BYTES, 4096)
        self.cq_entries = 1 if collapsed else depth  # as many as WQEs: it cannot overrun
        self.cq_addr = space.allocate(self.cq_entries * CQE_BYTES, CQE_BYTES)
        space.write(self.cq_addr, INVALID_CQE * self.cq_entries)
        self.context_addr = 0  # in host memory
        self.dbr_addr = space.allocate(RECORD_BYTES)
        self.jobs: list[Job | None] = [None] * depth  # by the place of their first block
        self.is_gone = False  # its queue pair was reset
        # The poster's side:
        self.copying: deque[Job] = deque()  # posted, and not yet asked for: payload is copied to host memory first
        self.pending: deque[Job] = deque()  # for whom nobody has begun yet
        self.building = 0  # those being written
        self.rings_due = 0  # doorbells decided on and not sent yet
        self.signaled = 0  # blocks up to the last WQE that wants a CQE
        self.rung = 0  # blocks that doorbells have told of
        self.is_listed = False  # whether it waits for someone to post
        self.is_blocked = False  # whether it waits for room
        self.unfinished: deque[Job] = deque()  # written, and no CQE seen
        # The NIC's:
        self.announced = 0  # blocks that doorbells which came in have told of
        self.awaits_context = False  # the NIC reads its context, and nothing of it before
        self.next_index = 0  # of the next WQE to decode
        self.raw = bytearray()  # fetched, and not decoded yet
        self.line: deque[Job] = deque()  # decoded, in order, not yet taken up
        self.awaits_turn = False  # the first of them is ready, and the queue pair's rate keeps it
        self.free_ps = 0  # when the NIC takes up the next of this queue pair
        self.in_transport: deque[Job] = deque()  # whose completion the transport owes
        self.is_refused = False  # the NIC found a WQE wrong: from it on nothing begins
        self.cqes = 0  # written
        self.cqe_note: Any = None  # of each: told once it is there
        self.written_cqes: deque[bytes] = deque()  # in memory, and not looked at yet
        # The GPU's, where a CPU posts for it:
        self.word_addr = 0  # what it spins on
        self.told: deque[list[Completion]] = deque()  # completions that words on their way tell of

    def next_cqe(self) -> tuple[int, int]:
        """Where the NIC writes the next one, and its owner bit."""
        number, entries = self.cqes, self.cq_entries
        self.cqes = number + 1
        if entries == 1:
            return self.cq_addr, 0  # a collapsed CQ's poller looks at the counter alone
        return self.cq_addr + number % entries * CQE_BYTES, owner_of(number, entries)

    def place(self, index: int) -> int:
        """Where the job of that index is kept in `jobs`."""
        return index & self.ring.depth - 1
