"""The responder of a reliable connection: request frames in, bytes into and out of memory, answers out.

A machine without I/O. IBTA vol. 1, 9.7.4 and 9.9: one NAK for a gap and then silence until it is filled, duplicates
answered again and not done again, keys, bounds and rights checked before any byte is written.
"""

from __future__ import annotations

from emu.frame import Frame
from emu.transport.answer import Answer, AnyAnswer, AtomicAnswer, Owed, ReadAnswer, acknowledge, merge
from emu.transport.atomic import act
from emu.transport.fault import fault_of
from emu.transport.memory import NO_REGION, Access, MemoryRegion, MemoryTable
from emu.transport.place import ATOMIC, ENDS, HAS_IMMEDIATE, INVALIDATES, PLACE, READ, SENDS, STARTS
from emu.transport.psn import PSN_MASK, expand
from emu.transport.receive_queue import ReceiveQueue
from emu.transport.received import Received, ResponderConfig
from emu.transport.replay import ReadDone, Replay
from emu.transport.syndrome import (
    ACK_NO_CREDIT_INFORMATION,
    NAK_INVALID_REQUEST,
    NAK_PSN_SEQUENCE_ERROR,
    NAK_REMOTE_ACCESS_ERROR,
    NAK_REMOTE_OPERATIONAL_ERROR,
    RNR_NAK,
    credit_code,
    is_rnr,
)
from emu.transport.wc import WcStatus
from emu.transport.work import ATOMIC_BYTES, Places, RecvWqe

__all__ = ["Answer", "AnyAnswer", "Received", "Responder", "ResponderConfig", "acknowledge", "merge"]

MSN_MASK = 0xFFFFFF


class Responder:
    """One receive side. `message_done` says whether the last frame taken was the end of a message."""

    __slots__ = (
        "_addr",
        "_config",
        "_done_bytes",
        "_expected",
        "_filled",
        "_left_bytes",
        "_memory",
        "_msn",
        "_mtu_bytes",
        "_nak_sent",
        "_owed",
        "_queue",
        "_receive",
        "_region",
        "_repeats",
        "_replay",
        "completions",
        "failed",
        "landed",
        "message_done",
    )

    def __init__(self, memory: MemoryTable, config: ResponderConfig, queue: ReceiveQueue, first_psn: int = 0) -> None:
        self._memory = memory
        self._config = config
        self._queue = queue
        self._mtu_bytes = config.path_mtu_bytes
        self._expected = first_psn
        self._msn = 0
        self._nak_sent = self.failed = self.message_done = False
        self._region: MemoryRegion | None = None  # of the WRITE being received; None between messages
        self._addr = self._left_bytes = 0
        self._receive: RecvWqe | None = None  # of the SEND being received
        self._filled = 0  # bytes of it
        self._owed = Owed(config.max_dest_rd_atomic)
        self._repeats = Owed(config.max_dest_rd_atomic)  # the same, of duplicates: the requester counts each once
        self._replay = Replay(config.max_dest_rd_atomic)
        self.completions: list[Received] = []  # receives used since the caller last took them
        self.landed: Places = ()  # where the last frame's payload went
        self._done_bytes = 0  # of the payload of messages that are over

    def on_request(self, frame: Frame) -> AnyAnswer | None:
        """Take a request frame; returns the answer owed for it, if any."""
        self.message_done, self.landed = False, ()
        if self.failed:
            return None
        psn = self._expected & PSN_MASK
        if frame.psn != psn:
            return self._out_of_order(frame)
        place = PLACE[frame.opcode]
        if place & (READ | ATOMIC):
            return self._fetch(frame, psn, place)
        refusal = self._execute(frame, place)
        if refusal:
            self._nak_sent = True
            self.failed = not is_rnr(refusal)
            return (psn, refusal, self._msn)
        self._nak_sent = False
        self._expected += 1
        if place & ENDS:
            self._done_bytes += self._filled
            self._msn = (self._msn + 1) & MSN_MASK
            self.message_done = True
        if frame.ack_request:
            return (psn, self._credits(), self._msn)
        return None

    @property
    def received_bytes(self) -> int:
        """Of payload, taken in order. Counted when asked: a sum for each frame would cost an object."""
        if self._region is not None:
            return self._done_bytes + self._filled - self._left_bytes
        return self._done_bytes + (self._filled if self._receive is not None else 0)

    def configure(self, config: ResponderConfig) -> None:
        """Behave like this from now on; packets and depth stay as they are."""
        self._config = config

    def flush(self) -> list[Received]:
        """The queue pair goes to the error state: its own receives come back flushed."""
        self.failed = True
        left = [self._receive] if self._receive is not None else []
        self._give_up()
        if not self._queue.is_shared:
            left += self._queue.flush()
        return [Received(wqe, WcStatus.WR_FLUSH_ERR, 0) for wqe in left]

    def _credits(self) -> int:
        if self._config.end_to_end_credits and not self._queue.is_shared:
            return credit_code(len(self._queue))
        return ACK_NO_CREDIT_INFORMATION

    def _out_of_order(self, frame: Frame) -> AnyAnswer | None:
        number = expand(frame.psn, self._expected)
        if number < self._expected:
            return self._again(frame, number)
        if self._nak_sent:
            return None
        self._nak_sent = True
        return (self._expected & PSN_MASK, NAK_PSN_SEQUENCE_ERROR, self._msn)

    def _again(self, frame: Frame, number: int) -> AnyAnswer | None:
        """A duplicate: say again how far we are, or what was read; nothing is done twice."""
        place = PLACE[frame.opcode]
        if place & ATOMIC:
            again = None if self._repeats.is_full() else self._replay.atomic_of(number, frame)
            if again is not None:
                self._repeats.add(again)
            return again
        if place & READ:
            if frame.reth is None or not self._replay.has_read(number, *frame.reth):
                return None
            region = self._readable(frame.reth)  # checked anew: the key may be invalid by now
            if region is None:
                return self._refuse(frame.psn, NAK_REMOTE_ACCESS_ERROR)
            return None if self._repeats.is_full() else self._answer(frame, region, self._repeats)
        return ((self._expected - 1) & PSN_MASK, self._credits(), self._msn)

    def _execute(self, frame: Frame, place: int) -> int:
        """Take the frame's bytes; returns the syndrome of the NAK where that may not be, else 0."""
        if not place or bool(place & STARTS) == (self._region is not None or self._receive is not None):
            return NAK_INVALID_REQUEST
        if bool(place & SENDS) != (self._receive is not None) and not place & STARTS:
            return NAK_INVALID_REQUEST
        return self._send(frame, place) if place & SENDS else self._write(frame, place)

    def _write(self, frame: Frame, place: int) -> int:
        payload = frame.payload
        length, ends = len(payload), place & ENDS
        if place & STARTS:
            refusal = self._begin(frame)
            if refusal:
                return refusal
        elif self._region is not None and not self._region.is_known:
            self._give_up()
            return NAK_REMOTE_ACCESS_ERROR
        wrong_length = length != self._left_bytes if ends else length != self._mtu_bytes
        if wrong_length or length > self._mtu_bytes or (not ends and length >= self._left_bytes):
            self._give_up()
            return NAK_INVALID_REQUEST
        if place & HAS_IMMEDIATE and not self._take_immediate(frame):
            if place & STARTS:
                self._region = None  # it will be sent again from here
            return RNR_NAK | self._config.min_rnr_timer
        if length and self._region is not None:
            self._region.slice(self._addr, length)[:] = payload
            self.landed = ((self._addr, length),)
        self._addr += length
        self._left_bytes -= length
        if ends:
            self._region = None
        return 0

    def _give_up(self) -> None:
        """No more of the message that has begun will be taken."""
        self._done_bytes = self.received_bytes
        self._region = self._receive = None

    def _begin(self, frame: Frame) -> int:
        if frame.reth is None:
            return NAK_INVALID_REQUEST
        addr, rkey, length = frame.reth
        self._addr, self._left_bytes = addr, length
        self._filled = length
        if length == 0:
            self._region = NO_REGION  # a write of nothing checks no key (IBTA vol. 1, 9.7.4.1.5)
            return 0
        self._region = self._memory.find(rkey, addr, length, Access.REMOTE_WRITE)
        return 0 if self._region is not None else NAK_REMOTE_ACCESS_ERROR

    def _take_immediate(self, frame: Frame) -> bool:
        wqe = self._queue.take() if frame.extension else None
        if wqe is None or frame.extension is None:
            return False
        imm_data = frame.extension[0]
        self.completions.append(
            Received(wqe, WcStatus.SUCCESS, self._filled, imm_data, is_write=True, solicited=frame.solicited)
        )
        return True

    def _send(self, frame: Frame, place: int) -> int:
        payload = frame.payload
        length = len(payload)
        if place & STARTS:
            self._receive, self._filled = self._queue.take(), 0
            if self._receive is None:
                return RNR_NAK | self._config.min_rnr_timer
        wqe = self._receive
        assert wqe is not None
        fault = fault_of(frame, place, wqe, self._filled, self._mtu_bytes, self._memory)
        if fault:
            self._give_up()
            self.completions.append(Received(wqe, fault, 0))
            return NAK_REMOTE_OPERATIONAL_ERROR if fault is WcStatus.LOC_PROT_ERR else NAK_INVALID_REQUEST
        wqe.sink.write(self._filled, payload)
        self.landed = wqe.sink.places(self._filled, length)
        self._filled += length
        if place & ENDS:
            self._receive = None
            extension = frame.extension[0] if frame.extension else None
            invalidated = extension if place & INVALIDATES else None
            if invalidated is not None:
                self._memory.invalidate(invalidated)
            imm_data = extension if place & HAS_IMMEDIATE else None
            self.completions.append(
                Received(wqe, WcStatus.SUCCESS, self._filled, imm_data, invalidated, solicited=frame.solicited)
            )
        return 0

    def _fetch(self, frame: Frame, psn: int, place: int) -> AnyAnswer:
        """A READ or an atomic at its place in the order."""
        if self._region is not None or self._receive is not None or self._owed.is_full():
            return self._refuse(psn, NAK_INVALID_REQUEST)
        return self._atomic(frame, psn) if place & ATOMIC else self._read(frame, psn)

    def _read(self, frame: Frame, psn: int) -> AnyAnswer:
        if frame.reth is None:
            return self._refuse(psn, NAK_INVALID_REQUEST)
        region = self._readable(frame.reth)
        if region is None:
            return self._refuse(psn, NAK_REMOTE_ACCESS_ERROR)
        self._nak_sent = False
        self._msn = (self._msn + 1) & MSN_MASK
        answer = self._answer(frame, region, self._owed)
        self._replay.read(ReadDone(self._expected, answer.packets, self._mtu_bytes, *frame.reth))
        self._expected += answer.packets
        return answer

    def _readable(self, reth: tuple[int, int, int]) -> MemoryRegion | None:
        addr, rkey, length = reth
        return self._memory.find(rkey, addr, length, Access.REMOTE_READ) if length else NO_REGION

    def _answer(self, frame: Frame, region: MemoryRegion, owed: Owed) -> ReadAnswer:
        assert frame.reth is not None
        addr, _, length = frame.reth
        answer = ReadAnswer(frame.psn, self._credits(), self._msn, region, addr, length, self._mtu_bytes)
        answer.age = frame
        owed.add(answer)
        return answer

    def _atomic(self, frame: Frame, psn: int) -> AnyAnswer:
        if frame.extension is None or len(frame.extension) != 4 or frame.extension[0] % ATOMIC_BYTES:
            return self._refuse(psn, NAK_INVALID_REQUEST)
        addr, rkey, swap_or_add, compare = frame.extension
        region = self._memory.find(rkey, addr, ATOMIC_BYTES, Access.REMOTE_ATOMIC)
        if region is None:
            return self._refuse(psn, NAK_REMOTE_ACCESS_ERROR)
        original = act(region.slice(addr, ATOMIC_BYTES), frame.opcode, swap_or_add, compare)
        self._nak_sent = False
        self._msn = (self._msn + 1) & MSN_MASK
        answer = AtomicAnswer(psn, self._credits(), self._msn, original, addr)
        answer.age = frame
        self._owed.add(answer)
        self._replay.atomic(self._expected, answer)
        self._expected += 1
        return answer

    def _refuse(self, psn: int, syndrome: int) -> Answer:
        self.failed = True
        return (psn, syndrome, self._msn)
