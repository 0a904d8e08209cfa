"""What workloads are written against, in libibverbs' words: Context, PD, MR, CQ, QP, SendWR, WC.

Reliable connections and RDMA WRITE so far. Posting is instant; everything else takes model time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntFlag

from emu.addresses import Address
from emu.devices.nic import Nic
from emu.devices.queue_pair import QueuePairState
from emu.engine import Engine, Future
from emu.errors import VerbsError
from emu.frame import Envelope, Message
from emu.taps import Taps
from emu.transport.memory import Access, MemoryRegion
from emu.transport.requester import Completion, RequesterConfig, SendWqe
from emu.transport.wc import WcStatus

MAX_MESSAGE_BYTES = 2**31  # IBTA vol. 1, 9.7.1

MR = MemoryRegion
EnvelopeFactory = Callable[[Address, Address, int, int, int | None], tuple[Envelope, Envelope | None]]
"""Source, destination, source QP number, destination QP number, priority (None: the fabric's): the headers that their
frames share, and those of their congestion notifications, if there are such."""


class WROpcode(Enum):
    """`enum ibv_wr_opcode`, as far as it is supported."""

    RDMA_WRITE = 0


class SendFlags(IntFlag):
    """`enum ibv_send_flags`."""

    NONE = 0
    SIGNALED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SGE:
    """`struct ibv_sge`: `length` bytes at `addr` in the region of `lkey`."""

    addr: int
    length: int
    lkey: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SendWR:
    """`struct ibv_send_wr` for RDMA WRITE."""

    wr_id: int
    sge: SGE
    remote_addr: int
    rkey: int
    opcode: WROpcode = WROpcode.RDMA_WRITE
    send_flags: SendFlags = SendFlags.SIGNALED


@dataclass(frozen=True, slots=True, kw_only=True)
class WC:
    """`struct ibv_wc`: a finished work request."""

    wr_id: int
    status: WcStatus
    qp_num: int
    byte_len: int


class Context:
    """An opened device: `ibv_open_device`."""

    def __init__(
        self, engine: Engine, nic: Nic, envelopes: EnvelopeFactory, config: RequesterConfig, taps: Taps
    ) -> None:
        self.engine = engine
        self.nic = nic
        self.envelopes = envelopes
        self.config = config
        self.taps = taps

    @property
    def name(self) -> str:
        """The host's name."""
        return self.nic.name

    def alloc_pd(self) -> PD:
        """`ibv_alloc_pd`."""
        return PD(self)

    def create_cq(self, cqe: int = 1024) -> CQ:
        """`ibv_create_cq` with room for `cqe` entries. Raises VerbsError below 1."""
        return CQ(cqe)


class PD:
    """A protection domain: what regions and queue pairs belong to."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def reg_mr(self, length: int, access: Access = Access.LOCAL_WRITE) -> MR:
        """`ibv_reg_mr` of `length` fresh zero bytes. Raises VerbsError for a negative length."""
        return self.context.nic.memory.register(length, access)

    def create_qp(
        self, send_cq: CQ, max_send_wr: int = 1024, *, kind: str = "write", priority: int | None = None
    ) -> QP:
        """`ibv_create_qp`, type RC, in the reset state.

        `kind`: what its traffic is called in results; `priority`: its SL or 802.1p priority, the fabric's unless given.
        """
        return QP(self, send_cq, max_send_wr, kind, priority)


class CQ:
    """A completion queue: poll it, or await its next entry."""

    def __init__(self, cqe: int) -> None:
        if cqe < 1:
            raise VerbsError(f"a completion queue of {cqe} entries: at least 1")
        self.cqe = cqe
        self._entries: deque[WC] = deque()
        self._waiter: Future | None = None

    def poll_cq(self, num_entries: int = 1) -> list[WC]:
        """`ibv_poll_cq`: up to `num_entries` completions, oldest first, perhaps none."""
        return [self._entries.popleft() for _ in range(min(num_entries, len(self._entries)))]

    async def next(self) -> WC:
        """The next completion, as soon as there is one (one coroutine may wait at a time)."""
        while not self._entries:
            self._waiter = Future()
            await self._waiter
        return self._entries.popleft()

    def push(self, entry: WC) -> None:
        """Add an entry. Raises VerbsError when the queue overruns, as `IBV_EVENT_CQ_ERR` would say."""
        if len(self._entries) >= self.cqe:
            raise VerbsError(f"a completion queue of {self.cqe} entries overran: create it larger")
        self._entries.append(entry)
        if self._waiter is not None:
            waiter, self._waiter = self._waiter, None
            waiter.resolve()


class QP:
    """A reliable-connection queue pair."""

    def __init__(self, pd: PD, send_cq: CQ, max_send_wr: int, kind: str = "write", priority: int | None = None) -> None:
        self.pd = pd
        self.kind = kind
        self.priority = priority
        self.expected = 0  # messages it will post in all, as far as its workload says; 0: it does not
        self.send_cq = send_cq
        self.max_send_wr = max_send_wr
        self.qp_num = pd.context.nic.allocate_qp()
        self.peer: QP | None = None
        self.posted = 0
        self._outstanding = 0
        self._state: QueuePairState | None = None

    @property
    def envelope(self) -> Envelope:
        """The headers its frames share. Raises VerbsError before `connect`."""
        return self._connected().envelope

    @property
    def source(self) -> str:
        """The host it sends from."""
        return self.pd.context.name

    @property
    def destination(self) -> str:
        """The host it sends to; empty before `connect`."""
        return self.peer.source if self.peer else ""

    @property
    def received_bytes(self) -> int:
        """Payload that its peer has taken in order so far."""
        return self.peer._connected().responder.received_bytes if self.peer else 0

    def connect(self, peer: QP) -> None:
        """`ibv_modify_qp` through INIT and RTR to RTS, with the peer's number and address, both ways.

        Answers travel with the priority of what they answer: this queue pair's.
        """
        if self.peer is not None or peer.peer is not None:
            raise VerbsError(f"queue pair {self.qp_num:#x} or its peer is connected already")
        for here, there in ((self, peer), (peer, self)):
            context = here.pd.context
            ends = context.nic.address, there.pd.context.nic.address
            envelope, notice = context.envelopes(*ends, here.qp_num, there.qp_num, self.priority)
            here.peer = there
            here._state = context.nic.connect(here.qp_num, envelope, context.config, here._complete, notice)

    def post_send(self, wr: SendWR) -> Message:
        """`ibv_post_send` of one work request; what comes of it appears in the send CQ.

        Raises VerbsError as the real one returns EINVAL or ENOMEM: not connected, queue full, a bad lkey or range.
        """
        state = self._connected()
        context, sge = self.pd.context, wr.sge
        if self._outstanding >= self.max_send_wr:
            raise VerbsError(f"the send queue of {self.max_send_wr} work requests is full")
        if sge.length > MAX_MESSAGE_BYTES:
            raise VerbsError(f"a message of {sge.length} bytes: at most {MAX_MESSAGE_BYTES}")
        region = context.nic.memory.find(sge.lkey, sge.addr, sge.length, Access(0))
        if region is None:
            raise VerbsError(f"lkey {sge.lkey:#x} does not cover {sge.length} bytes at {sge.addr:#x}")
        message = Message(self, self.posted, sge.length, context.engine.now_ps)
        self.posted += 1
        self._outstanding += 1
        payload = region.slice(sge.addr, sge.length)
        signaled = bool(wr.send_flags & SendFlags.SIGNALED)
        context.nic.post(state, SendWqe(message, wr.wr_id, payload, wr.remote_addr, wr.rkey, signaled))
        if context.taps.message_posted:
            context.taps.message_posted(message)
        return message

    def _connected(self) -> QueuePairState:
        if self._state is None:
            raise VerbsError(f"queue pair {self.qp_num:#x} is not connected")
        return self._state

    def _complete(self, completion: Completion) -> None:
        wqe, status = completion
        context, message = self.pd.context, wqe.message
        self._outstanding -= 1
        message.completed_ps = context.engine.now_ps
        message.status = status.name
        if context.taps.message_completed:
            context.taps.message_completed(message)
        if wqe.signaled or status is not WcStatus.SUCCESS:
            self.send_cq.push(WC(wr_id=wqe.wr_id, status=status, qp_num=self.qp_num, byte_len=len(wqe.payload)))
