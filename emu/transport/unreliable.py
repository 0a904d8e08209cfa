"""Unreliable transports: connections whose lost packets cost their message (UC), and datagrams (UD).

IBTA vol. 1, 9.8. Nothing is acknowledged: a work request is finished once its last packet has been handed over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from emu import opcodes
from emu.frame import Envelope, Frame
from emu.transport.memory import Access, MemoryRegion, MemoryTable
from emu.transport.place import ENDS, HAS_IMMEDIATE, SENDS, STARTS, UC_PLACE
from emu.transport.psn import PSN_MASK
from emu.transport.receive_queue import ReceiveQueue
from emu.transport.received import Received
from emu.transport.requester import Completion
from emu.transport.segment import segment_frame
from emu.transport.wc import WcStatus
from emu.transport.work import Places, RecvWqe, SendWqe

GRH_BYTES = 40  # before a datagram's data: a GRH, or with IPv4 20 unused bytes and the IP header (annex A17)
EnvelopeOf = Callable[[SendWqe], Envelope]


class UnreliableRequester:
    """One send queue. `finished` holds what was finished by sending; the caller takes it out."""

    __slots__ = ("_base", "_deth", "_envelope_of", "_mtu_bytes", "_next", "_wqes", "deadline_ps", "failed", "finished")

    fetched: SendWqe | None = None  # nothing is ever fetched
    fetched_bytes = 0
    landed: Places = ()
    is_starved = False

    def __init__(
        self, envelope_of: EnvelopeOf, base: int, path_mtu_bytes: int, first_psn: int = 0, source_qp: int | None = None
    ) -> None:
        """`base`: opcodes.UC or opcodes.UD; `source_qp` of datagrams."""
        self._envelope_of = envelope_of
        self._base = base
        self._mtu_bytes = path_mtu_bytes
        self._deth = source_qp
        self._next = first_psn
        self._wqes: deque[SendWqe] = deque()
        self.finished: list[Completion] = []
        self.deadline_ps = -1
        self.failed = False

    def post(self, wqe: SendWqe) -> None:
        """Queue a work request behind all others."""
        wqe.packets = max(1, -(-wqe.size_bytes // self._mtu_bytes))
        self._wqes.append(wqe)
        if len(self._wqes) == 1:
            wqe.first = self._next

    def withdraw(self) -> list[SendWqe]:
        """Take back the work requests that have not begun, oldest first; they may be posted again."""
        begun = 1 if self._wqes and self._next > self._wqes[0].first else 0
        left = list(self._wqes)[begun:]
        for _ in left:
            self._wqes.pop()
        return left

    def look_again(self) -> None:
        """More of a work request's bytes are here: never, for they are all here when it is posted."""

    def can_send(self) -> bool:
        """Whether `next_frame` has one."""
        return bool(self._wqes)

    def next_frame(self, now_ps: int) -> Frame:
        """The next frame; only while `can_send()`."""
        wqe, number = self._wqes[0], self._next
        frame = segment_frame(self._envelope_of(wqe), wqe, number, self._mtu_bytes, ask=False, base=self._base)
        if self._deth is not None and wqe.target is not None:
            frame.extension = (wqe.target.remote_qkey, self._deth, *(frame.extension or ()))
        self._next += 1
        if self._next == wqe.first + wqe.packets:
            self._wqes.popleft()
            self.finished.append((wqe, WcStatus.SUCCESS))
            if self._wqes:
                self._wqes[0].first = self._next
        return frame

    def on_acknowledge(self, frame: Frame, now_ps: int) -> list[Completion]:
        """Nobody acknowledges: a ghost."""
        return []

    def on_response(self, frame: Frame, now_ps: int) -> list[Completion]:
        """Nothing was asked for: a ghost."""
        return []

    def on_deadline(self, now_ps: int) -> list[Completion]:
        """There is none."""
        return []

    def flush(self) -> list[Completion]:
        """The queue pair goes to the error state: what is queued comes back flushed."""
        self.failed = True
        left = [(wqe, WcStatus.WR_FLUSH_ERR) for wqe in self._wqes]
        self._wqes.clear()
        return left


class _Receiver:
    """What both receive sides share."""

    __slots__ = ("_memory", "_queue", "completions", "failed", "landed", "message_done", "received_bytes")

    def __init__(self, memory: MemoryTable, queue: ReceiveQueue) -> None:
        self._memory = memory
        self._queue = queue
        self.completions: list[Received] = []
        self.failed = False
        self.message_done = False
        self.landed: Places = ()  # where the last frame's payload went
        self.received_bytes = 0

    def _is_lost(self, wqe: RecvWqe, length: int) -> bool:
        """Whether a receive's memory is gone, which ends the queue pair."""
        if not length or wqe.sink.region.is_known:
            return False
        self.failed = True
        self.completions.append(Received(wqe, WcStatus.LOC_PROT_ERR, 0))
        return True

    def flush(self) -> list[Received]:
        """The queue pair goes to the error state: its own receives come back flushed."""
        self.failed = True
        left = [] if self._queue.is_shared else self._queue.flush()
        return [Received(wqe, WcStatus.WR_FLUSH_ERR, 0) for wqe in left]


class UcResponder(_Receiver):
    """A gap costs the message it is in; the next First or Only begins anew. Keys and bounds are checked as for RC."""

    __slots__ = ("_addr", "_expected", "_filled", "_left_bytes", "_mtu_bytes", "_receive", "_region", "_sending")

    def __init__(self, memory: MemoryTable, path_mtu_bytes: int, queue: ReceiveQueue, first_psn: int = 0) -> None:
        super().__init__(memory, queue)
        self._mtu_bytes = path_mtu_bytes
        self._expected = first_psn & PSN_MASK
        self._sending = 0  # SENDS or STARTS (a WRITE) while a message is being received, else 0
        self._region: MemoryRegion | None = None
        self._receive: RecvWqe | None = None  # kept for the next message if this one is dropped
        self._addr = self._left_bytes = self._filled = 0

    def on_request(self, frame: Frame) -> None:
        """Take a frame; nothing is ever answered."""
        self.message_done, self.landed = False, ()
        place, in_order = UC_PLACE[frame.opcode], frame.psn == self._expected
        self._expected = frame.psn + 1 & PSN_MASK
        if self.failed or not place:
            return
        kind = SENDS if place & SENDS else STARTS
        if place & STARTS:
            self._sending = kind if self._begin(frame, place) else 0
        elif not in_order or self._sending != kind:
            self._sending = 0
        if self._sending and not self._take(frame, place):
            self._sending = 0
        if self._sending and place & ENDS:
            self._sending = 0
            self.message_done = True

    def flush(self) -> list[Received]:
        """As above, and the receive of the message that has begun or was dropped."""
        used = any(each.wqe is self._receive for each in self.completions)
        left = [] if self._receive is None or used else [Received(self._receive, WcStatus.WR_FLUSH_ERR, 0)]
        self._receive = None
        return left + super().flush()

    def _begin(self, frame: Frame, place: int) -> bool:
        if place & SENDS:
            self._filled = 0
            self._receive = self._receive or self._queue.take()
            return self._receive is not None
        if frame.reth is None:
            return False
        addr, rkey, length = frame.reth
        self._addr, self._left_bytes, self._filled = addr, length, length
        self._region = self._memory.find(rkey, addr, length, Access.REMOTE_WRITE) if length else None
        return not length or self._region is not None

    def _take(self, frame: Frame, place: int) -> bool:
        """Write the frame's bytes; False: it does not fit, and the message is dropped."""
        length = len(frame.payload)
        if length > self._mtu_bytes if place & ENDS else length != self._mtu_bytes:
            return False
        taken = self._take_send(frame, place) if place & SENDS else self._take_write(frame, place)
        if taken:
            self.received_bytes += length
        return taken

    def _take_send(self, frame: Frame, place: int) -> bool:
        wqe, length = self._receive, len(frame.payload)
        if wqe is None or self._filled + length > wqe.sink.length or self._is_lost(wqe, length):
            return False
        wqe.sink.write(self._filled, frame.payload)
        self.landed = wqe.sink.places(self._filled, length)
        self._filled += length
        if place & ENDS:
            self._complete(wqe, frame, place, is_write=False)
        return True

    def _take_write(self, frame: Frame, place: int) -> bool:
        length = len(frame.payload)
        if self._region is not None and not self._region.is_known:
            return False
        if length != self._left_bytes if place & ENDS else length >= self._left_bytes:
            return False
        wqe = None
        if place & HAS_IMMEDIATE:
            wqe = self._receive or self._queue.take()
            if wqe is None:
                return False
        if length and self._region is not None:
            self._region.slice(self._addr, length)[:] = frame.payload
            self.landed = ((self._addr, length),)
        self._addr += length
        self._left_bytes -= length
        if wqe is not None:
            self._complete(wqe, frame, place, is_write=True)
        return True

    def _complete(self, wqe: RecvWqe, frame: Frame, place: int, *, is_write: bool) -> None:
        self._receive = None
        imm_data = frame.extension[0] if place & HAS_IMMEDIATE and frame.extension else None
        self.completions.append(
            Received(wqe, WcStatus.SUCCESS, self._filled, imm_data, is_write=is_write, solicited=frame.solicited)
        )


class UdResponder(_Receiver):
    """Takes datagrams of the right key into receives that are large enough; drops all others."""

    __slots__ = ("qkey",)

    def __init__(self, memory: MemoryTable, queue: ReceiveQueue, qkey: int) -> None:
        super().__init__(memory, queue)
        self.qkey = qkey

    def on_request(self, frame: Frame) -> None:
        """Take a datagram; nothing is ever answered."""
        self.message_done, self.landed = False, ()
        has_immediate = frame.opcode == opcodes.UD | opcodes.SEND_ONLY_WITH_IMMEDIATE
        if self.failed or frame.extension is None or len(frame.extension) != 2 + has_immediate:
            return
        if frame.extension[0] != self.qkey or frame.opcode & opcodes.TRANSPORT_MASK != opcodes.UD:
            return
        length = len(frame.payload)
        wqe = self._queue.peek()
        if wqe is None or GRH_BYTES + length > wqe.sink.length:
            return
        self._queue.take()
        if self._is_lost(wqe, GRH_BYTES):
            return
        wqe.sink.write(0, grh_of(frame))
        wqe.sink.write(GRH_BYTES, frame.payload)
        self.landed = wqe.sink.places(0, GRH_BYTES + length)
        self.received_bytes += length
        self.message_done = True
        imm_data = frame.extension[2] if has_immediate else None
        self.completions.append(
            Received(wqe, WcStatus.SUCCESS, GRH_BYTES + length, imm_data, solicited=frame.solicited, frame=frame)
        )


def grh_of(frame: Frame) -> bytes:
    """The 40 bytes before a datagram's data: the IPv4 header in the last 20, or nothing known (native, no GRH)."""
    framing = frame.envelope.framing
    if framing.name != "rocev2":
        return bytes(GRH_BYTES)
    data = frame.data if frame.data is not None else framing.encode(frame)
    return bytes(GRH_BYTES - IPV4_BYTES) + data[IPV4_OFFSET : IPV4_OFFSET + IPV4_BYTES]


IPV4_OFFSET, IPV4_BYTES = 14, 20
