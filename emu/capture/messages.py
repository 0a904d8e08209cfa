"""Messages as a capture shows them: from first to last packet, by opcodes and PSNs, and when they were answered."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable

from emu import opcodes
from emu.capture.seen import HALF, PSN_MASK, SMALLEST_MTU, Packet, SeenMessage, distance, is_behind, message_of
from emu.opcodes import OPERATIONS, Position

__all__ = ["Packet", "RequestStream", "Room", "SeenMessage"]

PENDING_LIMIT = 4096  # messages of one flow that wait for their acknowledgement
ALL_PENDING_LIMIT = 262_144  # those of all flows
HOLE_LIMIT = 8  # gaps remembered of one flow
UNSEEN_PACKETS = 4096  # sent before the capture began, or lost before it came here, and still to be answered


class Room:
    """How many more messages may wait, of all flows together."""

    __slots__ = ("left",)

    def __init__(self, limit: int = ALL_PENDING_LIMIT) -> None:
        self.left = limit


class RequestStream:
    """The requests of one flow; `begin` gets each new message, `settle` each whose story is over."""

    __slots__ = (
        "_begin",
        "_expected",
        "_holes",
        "_lowest",
        "_open",
        "_read",
        "_room",
        "_settle",
        "missing",
        "pending",
        "retransmitted",
    )

    def __init__(
        self, begin: Callable[[SeenMessage], object], settle: Callable[[SeenMessage], object], room: Room | None = None
    ) -> None:
        self._begin, self._settle = begin, settle
        self._room = room or Room()
        self._open: SeenMessage | None = None
        self._expected: int | None = None  # the next PSN
        self._lowest = 0  # the earliest PSN seen
        self._holes: list[tuple[int, int]] = []  # first and last PSN of each gap
        self._read: tuple[int, int, int] | None = None  # RETH of the READ that came last, if nothing came since
        self.pending: deque[SeenMessage] = deque()
        self.missing = 0
        self.retransmitted = 0

    def on_packet(self, packet: Packet, *, answered: bool) -> None:
        """Take a request packet; `answered`: whether this transport acknowledges."""
        expected = self._expected
        if expected is None or (is_behind(packet.psn, expected) and is_behind(packet.psn, self._lowest)):
            self._lowest = packet.psn
        if self._is_new(packet):
            self._take(packet, answered=answered)

    def on_answer(self, psn: int, number: int, time_ns: int, *, inclusive: bool) -> None:
        """Packets up to `psn` arrived; of a NAK, those before it."""
        while self.pending:
            message = self.pending[0]
            ahead = distance(message.last_psn, psn)
            if ahead >= HALF or (ahead == 0 and not inclusive):
                return
            message.answered_frame, message.answered_ns = number, time_ns
            self._settle_oldest()

    def on_refusal(self, psn: int, syndrome: int, time_ns: int) -> None:
        """A NAK or RNR NAK names the packet that it is about."""
        message, after = self._around(psn)
        if message is None or not message.covers(psn):  # of one whose first packets were lost before they came here?
            message = after if after is not None and not after.begun else message
        if message is not None:
            message.refuse(syndrome, time_ns)

    def on_response(self, psn: int, payload_bytes: int, time_ns: int) -> None:
        """A packet of a READ's response: its PSN lies behind the request's, and before the next message's."""
        message, _ = self._around(psn)
        if message is not None and message.may_bring(psn):
            message.respond(psn, payload_bytes, time_ns)

    def could_answer(self, psn: int) -> bool:
        """Whether an answer with this PSN could be to what was sent here so far, or shortly before the capture."""
        if self._expected is None:
            return False
        read_packets = self._read[2] // SMALLEST_MTU + 1 if self._read is not None else 0
        end = self._expected + read_packets
        sent = distance(self._lowest, self._expected) + read_packets + UNSEEN_PACKETS
        return 0 < distance(psn, end) <= min(sent, HALF)

    def finish(self) -> None:
        """The capture is over."""
        while self.pending:
            self._settle_oldest()
        if self._open is not None:
            self._settle(self._open)
        self._open = None

    def _is_new(self, packet: Packet) -> bool:
        """Whether this packet was not seen before; keeps the gaps, and counts what was sent again."""
        expected, psn = self._expected, packet.psn
        if self._resumes_read(packet):
            self.retransmitted += 1
            return False
        if expected is None or not is_behind(psn, expected):
            gap = 0 if expected is None or self._read is not None else distance(expected, psn)
            if gap and expected is not None:
                self._note_hole(expected, psn - 1 & PSN_MASK)
                self.missing += gap
            self._expected = psn + 1 & PSN_MASK
            self._read = packet.reth if packet.opcode % 32 == opcodes.READ_REQUEST else None
            return True
        if self._fills(psn):
            self.missing -= 1
            self._fill(packet)
        elif self._completes_the_oldest(packet):
            self._fill(packet)
        else:
            self.retransmitted += 1
            self._note_again(packet)
        return False

    def _resumes_read(self, packet: Packet) -> bool:
        """A READ whose response was cut short is asked for again from the first missing PSN on, to the same end."""
        before, now = self._read, packet.reth
        if before is None or now is None or packet.opcode % 32 != opcodes.READ_REQUEST:
            return False
        same_end = before[0] + before[2] == now[0] + now[2] and before[1] == now[1]
        return same_end and now[2] < before[2]

    def _take(self, packet: Packet, *, answered: bool) -> None:
        operation = OPERATIONS[packet.opcode]
        begins = operation.position in (Position.FIRST, Position.ONLY)
        message = self._open
        if begins or message is None:
            if message is not None:  # its end was lost
                self._leave(message, answered=answered)
            message = self._open = message_of(packet, begun=begins)
            self._begin(message)
        else:
            message.extend(packet)
        if operation.position in (Position.LAST, Position.ONLY):
            message.ended = True
            self._open = None
            self._leave(message, answered=answered)

    def _leave(self, message: SeenMessage, *, answered: bool) -> None:
        """Nothing more of it is expected but its answer, if there will be one, and what is sent again."""
        if not answered:
            self._settle(message)
            return
        self.pending.append(message)
        self._room.left -= 1
        if len(self.pending) > PENDING_LIMIT or self._room.left < 0:
            self._settle_oldest()

    def _settle_oldest(self) -> None:
        self._room.left += 1
        self._settle(self.pending.popleft())

    def _fills(self, psn: int) -> bool:
        """Whether the PSN is in a gap; it is no longer one then."""
        for place, (start, end) in enumerate(self._holes):
            if distance(start, psn) <= distance(start, end):
                del self._holes[place]
                if psn != start:
                    self._note_hole(start, psn - 1 & PSN_MASK)
                if psn != end:
                    self._note_hole(psn + 1 & PSN_MASK, end)
                return True
        return False

    def _note_hole(self, start: int, end: int) -> None:
        self._holes.append((start, end))
        del self._holes[:-HOLE_LIMIT]

    def _completes_the_oldest(self, packet: Packet) -> bool:
        """Whether it is the first packet of the message that the capture begins inside of."""
        _, after = self._around(packet.psn)
        is_first = OPERATIONS[packet.opcode].position is Position.FIRST
        return is_first and after is not None and not after.begun and distance(packet.psn, after.first_psn) == 1

    def _fill(self, packet: Packet) -> None:
        """A packet lost before it came here, sent again: inside a message, before its start or after its end."""
        message, after = self._around(packet.psn)
        position = OPERATIONS[packet.opcode].position
        if message is not None and message.covers(packet.psn):
            message.missing -= 1
            message.payload_bytes += packet.payload_bytes
            message.retransmitted += 1
        elif position is Position.FIRST and after is not None and not after.begun:
            after.missing += distance(packet.psn, after.first_psn) - 1
            after.first_psn, after.begun = packet.psn, True
            after.dma_bytes = packet.reth[2] if packet.reth is not None else after.dma_bytes
            after.payload_bytes += packet.payload_bytes
            after.retransmitted += 1
        elif position in (Position.MIDDLE, Position.LAST) and message is not None and not message.ended:
            message.extend(packet)
            message.ended = position is Position.LAST
            message.retransmitted += 1

    def _note_again(self, packet: Packet) -> None:
        message, _ = self._around(packet.psn)
        if message is not None and message.covers(packet.psn):
            message.retransmitted += 1
            if packet.psn == message.last_psn:
                message.last_frame, message.last_ns = packet.number, packet.time_ns

    def _around(self, psn: int) -> tuple[SeenMessage | None, SeenMessage | None]:
        """The last message that waits here and begins at that PSN or before it, and the next one."""
        if not self.pending:
            opened = self._open
            if opened is None or is_behind(psn, opened.first_psn):
                return None, opened
            return opened, None
        base = self.pending[0].first_psn - HALF  # what is less than half the circle before the oldest counts as before
        place = bisect_right(self.pending, distance(base, psn), key=lambda each: distance(base, each.first_psn))
        after = self.pending[place] if place < len(self.pending) else self._open
        if after is self._open and after is not None and not is_behind(psn, after.first_psn):
            return after, None
        return (self.pending[place - 1] if place else None), after
