"""What a responder remembers of READs and atomics, so that a duplicate is answered without being done again."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from emu.frame import Frame
from emu.transport.answer import AtomicAnswer


class ReadDone(NamedTuple):
    """A READ that was taken: its packets from `first` on, of so many bytes, and what it read."""

    first: int
    packets: int
    mtu_bytes: int
    addr: int
    rkey: int
    length: int

    def has(self, number: int, addr: int, rkey: int, length: int) -> bool:
        """Whether a request is for bytes that this one brought, each in the packet that brought it."""
        place = number - self.first
        offset = place * self.mtu_bytes
        inside = addr == self.addr + offset and offset + length <= self.length
        return 0 <= place < self.packets and rkey == self.rkey and inside


class Replay:
    """The last `depth` READs and atomics (IBTA vol. 1, 9.4.5, 9.7.5.1.5: as many as may be outstanding)."""

    __slots__ = ("_done",)

    def __init__(self, depth: int) -> None:
        self._done: deque[ReadDone | tuple[int, AtomicAnswer]] = deque(maxlen=max(depth, 1))

    def read(self, done: ReadDone) -> None:
        """A READ was taken."""
        self._done.append(done)

    def atomic(self, number: int, answer: AtomicAnswer) -> None:
        """An atomic was done."""
        self._done.append((number, answer))

    def has_read(self, number: int, addr: int, rkey: int, length: int) -> bool:
        """Whether these bytes were asked for under this number."""
        return any(isinstance(done, ReadDone) and done.has(number, addr, rkey, length) for done in self._done)

    def atomic_of(self, number: int, request: Frame) -> AtomicAnswer | None:
        """What the atomic of this number was answered with, as the answer to another request for it."""
        for done in self._done:
            if not isinstance(done, ReadDone) and done[0] == number:
                _, answered = done
                answer = AtomicAnswer(answered.psn, answered.syndrome, answered.msn, answered.original)
                answer.age = request
                return answer
        return None
