"""The responder of a reliable connection: request frames in, bytes into memory, acknowledgements out.

A machine without I/O. IBTA vol. 1, 9.7.4 and 9.9: one NAK for a gap and then silence until it is filled,
duplicates acknowledged again and otherwise ignored, keys, bounds and rights checked before any byte is written.
"""

from __future__ import annotations

from emu import opcodes
from emu.frame import Envelope, Frame
from emu.transport.memory import Access, MemoryRegion, MemoryTable
from emu.transport.psn import PSN_MASK, expand
from emu.transport.syndrome import (
    ACK_NO_CREDIT_INFORMATION,
    NAK_INVALID_REQUEST,
    NAK_PSN_SEQUENCE_ERROR,
    NAK_REMOTE_ACCESS_ERROR,
    is_ack,
    is_nak,
)

MSN_MASK = 0xFFFFFF

Answer = tuple[int, int, int]
"""PSN, syndrome and MSN of an acknowledgement that is owed."""

_WRITES, _STARTS, _ENDS = 1, 2, 4  # what a request's opcode says of its place in a WRITE
_PLACE = [0] * 256
_PLACE[opcodes.WRITE_FIRST] = _WRITES | _STARTS
_PLACE[opcodes.WRITE_MIDDLE] = _WRITES
_PLACE[opcodes.WRITE_LAST] = _WRITES | _ENDS
_PLACE[opcodes.WRITE_ONLY] = _WRITES | _STARTS | _ENDS


class Responder:
    """One receive side. `message_done` says whether the last frame taken was the end of a message."""

    __slots__ = (
        "_addr",
        "_expected",
        "_left_bytes",
        "_memory",
        "_mtu_bytes",
        "_msn",
        "_nak_sent",
        "_region",
        "failed",
        "message_done",
        "received_bytes",
    )

    def __init__(self, memory: MemoryTable, path_mtu_bytes: int, first_psn: int = 0) -> None:
        self._memory = memory
        self._mtu_bytes = path_mtu_bytes
        self._expected = first_psn
        self._msn = 0
        self._nak_sent = False
        self._region: MemoryRegion | None = None  # of the message being received; None between messages
        self._addr = 0
        self._left_bytes = 0
        self.failed = False
        self.message_done = False
        self.received_bytes = 0  # of payload, taken in order

    def on_request(self, frame: Frame) -> Answer | None:
        """Take a request frame; returns the acknowledgement owed for it, if any."""
        self.message_done = False
        if self.failed:
            return None
        psn = self._expected & PSN_MASK
        if frame.psn != psn:
            return self._out_of_order(expand(frame.psn, self._expected))
        self._nak_sent = False
        refusal = self._execute(frame)
        if refusal:
            self.failed = True
            return (psn, refusal, self._msn)
        self._expected += 1
        self.received_bytes += len(frame.payload)
        if _PLACE[frame.opcode] & _ENDS:
            self._msn = (self._msn + 1) & MSN_MASK
            self.message_done = True
        if frame.ack_request:
            return (psn, ACK_NO_CREDIT_INFORMATION, self._msn)
        return None

    def _out_of_order(self, number: int) -> Answer | None:
        if number < self._expected:  # a duplicate: say again how far we are
            return ((self._expected - 1) & PSN_MASK, ACK_NO_CREDIT_INFORMATION, self._msn)
        if self._nak_sent:
            return None
        self._nak_sent = True
        return (self._expected & PSN_MASK, NAK_PSN_SEQUENCE_ERROR, self._msn)

    def _execute(self, frame: Frame) -> int:
        """Write the frame's bytes; returns the NAK syndrome where that may not be, else 0."""
        place, payload = _PLACE[frame.opcode], frame.payload
        length, ends = len(payload), place & _ENDS
        if not place or bool(place & _STARTS) == (self._region is not None):
            return NAK_INVALID_REQUEST
        if place & _STARTS:
            refusal = self._begin(frame)
            if refusal:
                return refusal
        wrong_length = length != self._left_bytes if ends else length != self._mtu_bytes
        if wrong_length or length > self._mtu_bytes or (not ends and length >= self._left_bytes):
            self._region = None
            return NAK_INVALID_REQUEST
        if length and self._region is not None:
            self._region.slice(self._addr, length)[:] = payload
        self._addr += length
        self._left_bytes -= length
        if ends:
            self._region = None
        return 0

    def _begin(self, frame: Frame) -> int:
        if frame.reth is None:
            return NAK_INVALID_REQUEST
        addr, rkey, length = frame.reth
        self._addr, self._left_bytes = addr, length
        if length == 0:
            self._region = _NOWHERE  # a write of nothing checks no key (IBTA vol. 1, 9.7.4.1.5)
            return 0
        self._region = self._memory.find(rkey, addr, length, Access.REMOTE_WRITE)
        return 0 if self._region is not None else NAK_REMOTE_ACCESS_ERROR


_NOWHERE = MemoryRegion(bytearray(), 0, 0, Access.REMOTE_WRITE)


def merge(pending: Answer, answer: Answer) -> Answer:
    """The one acknowledgement that says what two owed ones would: the newer, unless it would hide a refusal.

    A NAK asks for a packet, and is sent once; an ACK of less than that packet does not answer it.
    """
    asks_for, syndrome, _ = pending
    if is_nak(syndrome) and is_ack(answer[1]) and expand(answer[0], asks_for) < asks_for:
        return pending
    return answer


def acknowledge(envelope: Envelope, answer: Answer) -> Frame:
    """The frame that carries an answer to the peer."""
    psn, syndrome, msn = answer
    return Frame(envelope, opcodes.ACKNOWLEDGE, psn, aeth=(syndrome, msn))
