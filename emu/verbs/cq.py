"""Completion queues and their entries."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from emu.engine import Future
from emu.errors import VerbsError
from emu.transport.wc import WcFlags, WcOpcode, WcStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class WC:
    """`struct ibv_wc`: a finished work request."""

    wr_id: int
    status: WcStatus
    qp_num: int
    byte_len: int
    opcode: WcOpcode = WcOpcode.RDMA_WRITE
    wc_flags: WcFlags = WcFlags.NONE
    imm_data: int = 0  # unsigned; if WITH_IMM
    invalidated_rkey: int = 0  # if WITH_INV
    src_qp: int = 0  # of a datagram


class CQ:
    """A completion queue: poll it, or await its next entry.

    One that overruns is in error for good, as with `IBV_EVENT_CQ_ERR`: `overran`, and `lost` entries that found no
    room, the flushed ones included. Its queue pairs go to the error state, and whoever asks it anything hears of it.
    """

    def __init__(self, cqe: int, host: str = "") -> None:
        """Raises VerbsError below 1. `host`: whose queue pairs may use it; empty: anybody's."""
        if cqe < 1:
            raise VerbsError(f"a completion queue of {cqe} entries: at least 1")
        self.cqe = cqe
        self.host = host
        self.overran = False
        self.lost = 0
        self._entries: deque[WC] = deque()
        self._waiter: Future | None = None
        self._armed: Future | None = None
        self._solicited_only = False
        self._when_overrun: list[Callable[[], object]] = []

    def attach(self, when_overrun: Callable[[], object]) -> None:
        """A queue pair's completions come here; `when_overrun` is called once, if ever."""
        self.check()
        self._when_overrun.append(when_overrun)

    def check(self) -> None:
        """Raises VerbsError if it overran."""
        if self.overran:
            raise VerbsError(
                f"a completion queue of {self.cqe} entries overran, {self.lost} lost: create it larger, or poll sooner"
            )

    def poll_cq(self, num_entries: int = 1) -> list[WC]:
        """`ibv_poll_cq`: up to `num_entries` completions, oldest first, perhaps none. Raises VerbsError: it overran."""
        if self.overran:
            self.check()
        return [self._entries.popleft() for _ in range(min(num_entries, len(self._entries)))]

    async def next(self) -> WC:
        """The next completion, as soon as there is one.

        Raises VerbsError if it overran, or another coroutine waits already.
        """
        while not self._entries or self.overran:
            self.check()
            if self._waiter is not None:
                raise VerbsError("another coroutine waits for this completion queue: one at a time")
            self._waiter = Future()
            await self._waiter
        return self._entries.popleft()

    def req_notify(self, *, solicited_only: bool = False) -> Future:
        """`ibv_req_notify_cq`: resolved with the next completion, or the next that is solicited or an error.

        Raises VerbsError if it overran.
        """
        self.check()
        self._armed, self._solicited_only = Future(), solicited_only
        return self._armed

    def push(self, entry: WC, *, solicited: bool = False) -> None:
        """Add an entry; one that finds no room is lost, and breaks the queue."""
        if self.overran or len(self._entries) >= self.cqe:
            self._overrun()
            return
        self._entries.append(entry)
        if self._armed is not None and (solicited or entry.status or not self._solicited_only):
            self._notify()
        if self._waiter is not None:
            waiter, self._waiter = self._waiter, None
            waiter.resolve()

    def _notify(self) -> None:
        if self._armed is not None:
            armed, self._armed = self._armed, None
            armed.resolve()

    def _overrun(self) -> None:
        self.lost += 1
        if self.overran:
            return
        self.overran = True
        broken, self._when_overrun = self._when_overrun, []
        for each in broken:
            each()
        self._notify()  # nobody awaits `next`: a queue that is full has entries
