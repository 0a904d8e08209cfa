"""Receive queues: places for messages, first in, first out; a queue pair's own, or shared by several (SRQ)."""

from __future__ import annotations

from collections import deque

from emu.errors import VerbsError
from emu.transport.work import RecvWqe


class ReceiveQueue:
    """`capacity` work requests at most. Shared ones say nothing of how many are left in acknowledgements."""

    __slots__ = ("_wqes", "capacity", "is_shared", "taken")

    def __init__(self, capacity: int, *, is_shared: bool = False) -> None:
        """Raises VerbsError below 0."""
        if capacity < 0:
            raise VerbsError(f"a receive queue of {capacity} work requests: at least 0")
        self.capacity = capacity
        self.is_shared = is_shared
        self.taken = 0
        self._wqes: deque[RecvWqe] = deque()

    def __len__(self) -> int:
        return len(self._wqes)

    def post(self, wqe: RecvWqe) -> None:
        """Queue a place behind all others. Raises VerbsError when full, as `ibv_post_recv` returns ENOMEM."""
        if len(self._wqes) >= self.capacity:
            raise VerbsError(f"the receive queue of {self.capacity} work requests is full")
        self._wqes.append(wqe)

    def peek(self) -> RecvWqe | None:
        """The next place, which stays; or None."""
        return self._wqes[0] if self._wqes else None

    def take(self) -> RecvWqe | None:
        """The next place, or None."""
        if not self._wqes:
            return None
        self.taken += 1
        return self._wqes.popleft()

    def flush(self) -> list[RecvWqe]:
        """All that are left; the queue is empty then."""
        left = list(self._wqes)
        self._wqes.clear()
        return left
