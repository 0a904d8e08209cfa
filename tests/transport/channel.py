"""A bad way between both machines: frames are lost, repeated and overtaken in both directions, in modeled time."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from random import Random
from typing import NamedTuple

from emu.frame import Frame
from emu.transport.syndrome import is_rnr
from emu.units import US
from tests.transport.machines import Machines

DELAY_PS = US  # of a frame that nothing happens to; another is sent each so often
LATE_PS = 40 * US  # at most, of one that others overtake


class Badness(NamedTuple):
    """How likely a frame is lost, comes twice, comes late."""

    loss: float
    repeat: float
    reorder: float


class Channel:
    """Runs the machines until nothing is left to happen. A receive is posted now and then, until there were enough."""

    def __init__(self, machines: Machines, badness: Badness, dice: Random, receives: int, receive_bytes: int) -> None:
        self.machines, self.badness, self.dice = machines, badness, dice
        self.receives_left, self.receive_bytes = receives, receive_bytes
        self.now_ps = 0
        self.sent = self.expired = self.refused = 0
        self._under_way: list[tuple[int, int, bool, Frame]] = []
        self._count = 0

    def run(self, limit: int) -> None:
        """Until nothing is under way, to be sent or waited for; fails after `limit` frames sent or waits ended."""
        requester = self.machines.requester
        while self._has_more():
            if requester.can_send():
                self._send(requester.next_frame(self.now_ps), to_responder=True)
                self.sent += 1
                self.now_ps += DELAY_PS
            else:
                self.now_ps = max(self.now_ps, self._next_ps())
            self._deliver()
            if 0 <= requester.deadline_ps <= self.now_ps:
                self.machines.done += requester.on_deadline(self.now_ps)
                self.expired += 1
                self._post_receive()
            elif self.dice.random() < 0.1:
                self._post_receive()
            assert self.sent + self.expired <= limit, "it does not end"

    def _has_more(self) -> bool:
        requester = self.machines.requester
        return bool(self._under_way) or requester.can_send() or requester.deadline_ps >= 0

    def _next_ps(self) -> int:
        times = [self._under_way[0][0]] if self._under_way else []
        deadline_ps = self.machines.requester.deadline_ps
        return min(times + ([deadline_ps] if deadline_ps >= 0 else []))

    def _deliver(self) -> None:
        while self._under_way and self._under_way[0][0] <= self.now_ps:
            _, _, to_responder, frame = heappop(self._under_way)
            if to_responder:
                for answer in self.machines.answers(frame):
                    self._send(answer, to_responder=False)
            else:
                self.refused += frame.aeth is not None and is_rnr(frame.aeth[0])
                self.machines.take(frame, self.now_ps)

    def _send(self, frame: Frame, *, to_responder: bool) -> None:
        for when_ps in self._arrivals():
            self._count += 1  # of two that arrive at once the first sent is first
            heappush(self._under_way, (when_ps, self._count, to_responder, frame))

    def _arrivals(self) -> Iterator[int]:
        dice, badness = self.dice, self.badness
        for _ in range(2 if dice.random() < badness.repeat else 1):
            late_ps = dice.randrange(LATE_PS) if dice.random() < badness.reorder else 0
            if dice.random() >= badness.loss:
                yield self.now_ps + DELAY_PS + late_ps

    def _post_receive(self) -> None:
        if self.receives_left:
            self.receives_left -= 1
            self.machines.receive(self.receive_bytes)
