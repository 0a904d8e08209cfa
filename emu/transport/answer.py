"""What a responder owes: acknowledgements, READ responses, atomics' answers; and the frames that carry them."""

from __future__ import annotations

from emu import opcodes
from emu.frame import Envelope, Frame
from emu.transport.memory import MemoryRegion
from emu.transport.psn import PSN_MASK, expand
from emu.transport.syndrome import NAK_PSN_SEQUENCE_ERROR, NAK_REMOTE_ACCESS_ERROR, is_ack

Answer = tuple[int, int, int]
"""PSN, syndrome and MSN of an acknowledgement that is owed."""


class ReadAnswer:
    """The responses to one READ request, made one by one as they can leave: the bytes are those of that moment."""

    __slots__ = ("_mtu_bytes", "_region", "addr", "age", "length", "msn", "psn", "sent", "syndrome")

    def __init__(
        self, psn: int, syndrome: int, msn: int, region: MemoryRegion, addr: int, length: int, mtu_bytes: int
    ) -> None:
        self.psn = psn
        self.syndrome = syndrome
        self.msn = msn
        self.length = length
        self.sent = 0
        self.age: Frame | None = None  # the request's frame, which knows how old the message is
        self._region = region
        self.addr = addr
        self._mtu_bytes = mtu_bytes

    @property
    def packets(self) -> int:
        """How many responses there are."""
        return max(1, -(-self.length // self._mtu_bytes))

    @property
    def is_done(self) -> bool:
        """Whether all of them were made."""
        return self.sent == self.packets

    def next_frame(self, envelope: Envelope) -> Frame:
        """The next response; a refusal if the key has gone meanwhile."""
        place, last = self.sent, self.packets - 1
        if not self._region.is_known:
            self.sent = self.packets
            return acknowledge(envelope, (self.psn + place & PSN_MASK, NAK_REMOTE_ACCESS_ERROR, self.msn))
        start = place * self._mtu_bytes
        size = min(self._mtu_bytes, self.length - start)
        payload = bytes(self._region.slice(self.addr + start, size))
        if last == 0:
            opcode = opcodes.READ_RESPONSE_ONLY
        elif place == 0:
            opcode = opcodes.READ_RESPONSE_FIRST
        else:
            opcode = opcodes.READ_RESPONSE_LAST if place == last else opcodes.READ_RESPONSE_MIDDLE
        self.sent += 1
        frame = Frame(envelope, opcode, self.psn + place & PSN_MASK, payload)
        if opcode != opcodes.READ_RESPONSE_MIDDLE:
            frame.aeth = (self.syndrome, self.msn)
        frame.carries_data = True
        return frame


class AtomicAnswer:
    """What was in memory before an atomic acted on it."""

    __slots__ = ("addr", "age", "is_done", "msn", "original", "psn", "syndrome")

    def __init__(self, psn: int, syndrome: int, msn: int, original: int, addr: int = -1) -> None:
        self.psn = psn
        self.syndrome = syndrome
        self.msn = msn
        self.original = original
        self.addr = addr  # of the eight bytes
        self.is_done = False  # whether its one frame was made
        self.age: Frame | None = None

    def next_frame(self, envelope: Envelope) -> Frame:
        """The one frame."""
        frame = Frame(envelope, opcodes.ATOMIC_ACKNOWLEDGE, self.psn, aeth=(self.syndrome, self.msn))
        frame.extension = (self.original,)
        self.is_done = True
        return frame


class Early:
    """The answer to a packet that came before its turn: which one is expected, and which came. Never merged."""

    __slots__ = ("age", "came", "expected", "is_done")

    def __init__(self, expected: int, came: int) -> None:
        self.expected, self.came = expected, came
        self.age: Frame | None = None
        self.is_done = False

    def next_frame(self, envelope: Envelope) -> Frame:
        """The one frame."""
        self.is_done = True
        return Frame(envelope, opcodes.ACKNOWLEDGE, self.expected, aeth=(NAK_PSN_SEQUENCE_ERROR, self.came))


AnyAnswer = Answer | ReadAnswer | AtomicAnswer | Early


class Owed:
    """READs and atomics whose responses are not all made, as many as there may be at once."""

    __slots__ = ("_answers", "_limit")

    def __init__(self, limit: int) -> None:
        self._answers: list[ReadAnswer | AtomicAnswer] = []
        self._limit = limit

    def __len__(self) -> int:
        return len(self._answers)

    def is_full(self) -> bool:
        """Whether there is no room for another."""
        self._answers = [answer for answer in self._answers if not answer.is_done]
        return len(self._answers) >= self._limit

    def add(self, answer: ReadAnswer | AtomicAnswer) -> None:
        """It is owed from now on."""
        self._answers.append(answer)


def merge(pending: Answer, answer: Answer) -> Answer:
    """The one acknowledgement that says what two owed ones would: the newer, unless it would hide a refusal.

    A NAK or an RNR NAK asks for a packet, and is sent once; an ACK of less than that packet does not answer it.
    """
    asks_for, syndrome, _ = pending
    if not is_ack(syndrome) and is_ack(answer[1]) and expand(answer[0], asks_for) < asks_for:
        return pending
    return answer


def acknowledge(envelope: Envelope, answer: Answer) -> Frame:
    """The frame that carries an acknowledgement to the peer."""
    psn, syndrome, msn = answer
    return Frame(envelope, opcodes.ACKNOWLEDGE, psn, aeth=(syndrome, msn))
