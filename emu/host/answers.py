"""What a NIC's responder owes: READs and atomics wait for memory, and what is owed after them waits for them."""

from __future__ import annotations

from collections import deque

from emu.devices.nic import Nic
from emu.devices.queue_pair import QueuePairState
from emu.engine import Engine
from emu.host.bounce import Bounces
from emu.host.dma import DmaEngine
from emu.transport.answer import AnyAnswer, AtomicAnswer, ReadAnswer
from emu.transport.work import ATOMIC_BYTES


class _Owed:
    """An answer in its queue pair's line; `is_ready`: what its first frame brings is here."""

    __slots__ = ("answer", "is_ready", "since_ps")

    def __init__(self, answer: AnyAnswer, since_ps: int) -> None:
        self.answer = answer
        self.is_ready = False
        self.since_ps = since_ps


class Answers:
    """One NIC's. Those of a queue pair leave in the order of what they answer."""

    __slots__ = ("_bounces", "_dma", "_engine", "_lines", "_nic")

    def __init__(self, engine: Engine, nic: Nic, dma: DmaEngine, bounces: Bounces | None) -> None:
        self._engine = engine
        self._nic = nic
        self._dma = dma
        self._bounces = bounces
        self._lines: dict[QueuePairState, deque[_Owed]] = {}  # of those that wait for something

    def owe(self, state: QueuePairState, answer: AnyAnswer) -> None:
        """The transport's machine owes it by now."""
        length = _bytes_of(answer)
        line = self._lines.get(state)
        if not length and line is None:
            self._nic.owe(state, answer)
            return
        if line is None:
            line = self._lines[state] = deque()
        owed = _Owed(answer, self._engine.now_ps)
        line.append(owed)
        if length and isinstance(answer, (ReadAnswer, AtomicAnswer)):
            self._fetch(state, owed, answer, length)
        else:
            owed.is_ready = True

    def _fetch(self, state: QueuePairState, owed: _Owed, answer: ReadAnswer | AtomicAnswer, length: int) -> None:
        first = min(length, state.mtu_bytes)
        memory, address = self._nic.memory, answer.addr
        if self._bounces is not None:
            address = self._bounces.address_of(memory, address, length)

        def here(total: int) -> None:
            if total < first or owed.is_ready:
                return
            owed.is_ready = True
            region = memory.at(answer.addr, length) if isinstance(answer, AtomicAnswer) else None
            if region is not None:  # the machine has acted already; now memory learns of it
                self._dma.write(address, region.slice(answer.addr, length))
            self._release(state)

        self._dma.read(address, length, bytearray(length), here)

    def _release(self, state: QueuePairState) -> None:
        line = self._lines[state]
        while line and line[0].is_ready:
            owed = line.popleft()
            self._nic.owe(state, owed.answer, self._engine.now_ps - owed.since_ps)
        if not line:
            del self._lines[state]


def _bytes_of(answer: AnyAnswer) -> int:
    """How much of memory it brings."""
    if isinstance(answer, ReadAnswer):
        return answer.length
    return ATOMIC_BYTES if isinstance(answer, AtomicAnswer) and answer.addr >= 0 else 0
