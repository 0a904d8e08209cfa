"""When a NIC takes up WQEs that are ready: those of one queue pair in order, and never faster than its two rates."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from emu.engine import Engine
from emu.host.queue import HostQueue, Job
from emu.units import SECOND


class Turns:
    """`message_rate` of all queue pairs together, and of each: messages a second, as whole picoseconds rounded up."""

    __slots__ = ("_engine", "_free_ps", "_heap", "_period_ps", "_qp_period_ps", "_transmit", "_wake_ps")

    def __init__(
        self, engine: Engine, message_rate: int, qp_message_rate: int, transmit: Callable[[Job], object]
    ) -> None:
        self._engine = engine
        self._period_ps = -(-SECOND // message_rate)
        self._qp_period_ps = -(-SECOND // qp_message_rate)
        self._transmit = transmit
        self._free_ps = 0  # when the next WQE can be taken up
        self._heap: list[tuple[int, int, HostQueue]] = []  # when queue pairs may send
        self._wake_ps = -1  # when to look at it next; -1: not yet known

    def look(self, queue: HostQueue) -> None:
        """The next of the queue pair comes out of the transmit pipeline, or waits at its end for what its rate is."""
        line = queue.line
        if line and line[0].is_ready and not queue.awaits_turn:
            queue.awaits_turn = True
            heappush(self._heap, (max(line[0].start_ps, queue.free_ps), self._engine.tick(), queue))
            self._wake()

    def _wake(self) -> None:
        """Come back when the first of those that wait may send, and the NIC too."""
        when_ps = max(self._heap[0][0], self._free_ps)
        if self._wake_ps < 0 or when_ps < self._wake_ps:
            self._wake_ps = when_ps
            self._engine.at(when_ps, self._turn, when_ps)

    def _turn(self, when_ps: int) -> None:
        if when_ps != self._wake_ps:
            return  # an earlier one took over
        self._wake_ps = -1
        queue = heappop(self._heap)[2]
        queue.awaits_turn = False
        if queue.line:  # else its queue pair is gone
            self._free_ps = when_ps + self._period_ps
            queue.free_ps = when_ps + self._qp_period_ps
            self._transmit(queue.line.popleft())
            self.look(queue)
        if self._heap:
            self._wake()
