"""Shared receive queues."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from emu.transport.receive_queue import ReceiveQueue
from emu.transport.work import RecvWqe, Scatter
from emu.verbs.wr import SGE, RecvWR

ScatterOf = Callable[[Sequence[SGE]], Scatter]


class SRQ:
    """`ibv_create_srq`: receives that several queue pairs take from, in the order of need."""

    def __init__(self, scatter_of: ScatterOf, max_wr: int, host: str) -> None:
        self._scatter_of = scatter_of
        self.host = host  # whose queue pairs may take from it
        self.queue = ReceiveQueue(max_wr, is_shared=True)

    def post_recv(self, wr: RecvWR) -> None:
        """`ibv_post_srq_recv`. Raises VerbsError for a bad lkey or range, or a full queue."""
        self.queue.post(RecvWqe(wr.wr_id, self._scatter_of(wr.sg_list)))
