"""A closed loop for tests: senders with a rate control each, one queue that marks as RED does, CNPs back after a delay.

Frames of one size in discrete time, integers but for the marking draw; no switch, no NIC, no fabric.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

from emu.congestion.base import RateControl, gap_ps
from emu.congestion.notification import NotificationPoint
from emu.units import US


@dataclass(frozen=True, kw_only=True)
class Red:
    """Marking at enqueue by the queue's bytes: none up to kmin, up to pmax at kmax, all above."""

    kmin_bytes: int
    kmax_bytes: int
    pmax: float

    def chance(self, queue_bytes: int) -> float:
        if queue_bytes <= self.kmin_bytes:
            return 0.0
        if queue_bytes > self.kmax_bytes:
            return 1.0
        return self.pmax * (queue_bytes - self.kmin_bytes) / (self.kmax_bytes - self.kmin_bytes)


@dataclass(kw_only=True)
class Bottleneck:
    """Flow i begins at `starts_ps[i]` and always has something to send; run it, then read the traces."""

    flows: Sequence[RateControl]
    starts_ps: Sequence[int]
    red: Red
    min_time_between_cnps_ps: int
    line_rate_bps: int = 10**10
    frame_bytes: int = 1098  # 1024 of payload in a RoCEv2 frame with its gap
    feedback_ps: int = 5 * US  # from the queue's tail to the receiver and back as a CNP, queueing apart
    sample_ps: int = 100 * US
    seed: int = 1
    sent: list[list[int]] = field(default_factory=list)  # each sample's bytes of every flow that left the queue
    max_queue_bytes: int = 0
    marked: int = 0
    queued_bytes: int = 0  # the sum over samples, for the mean

    def run(self, until_ps: int) -> None:
        draw, order = random.Random(self.seed).random, count()
        point = NotificationPoint(self.min_time_between_cnps_ps)
        sent = [0] * len(self.flows)
        ser_ps = gap_ps(self.frame_bytes, self.line_rate_bps)
        leaving: deque[int] = deque()  # when each frame in the queue has left
        events: list[tuple[int, int, str, int]] = []
        for flow, start_ps in enumerate(self.starts_ps):
            heappush(events, (start_ps, next(order), "send", flow))
        heappush(events, (self.sample_ps, next(order), "sample", 0))
        while events[0][0] <= until_ps:
            now_ps, _, what, flow = heappop(events)
            if what == "sample":
                self.sent.append(sent)
                sent = [0] * len(self.flows)
                self.queued_bytes += self.frame_bytes * sum(at > now_ps for at in leaving)
                heappush(events, (now_ps + self.sample_ps, next(order), "sample", 0))
                continue
            control = self.flows[flow]
            if what == "cnp":
                control.on_cnp(now_ps)
                control.on_timer(now_ps)
                continue
            due_ps = control.next_start_ps(now_ps)
            if due_ps > now_ps and now_ps > self.starts_ps[flow]:  # slowed down meanwhile
                heappush(events, (due_ps, next(order), "send", flow))
                continue
            heappush(events, (control.pace(self.frame_bytes, now_ps), next(order), "send", flow))
            control.on_bytes_sent(self.frame_bytes, now_ps)
            while leaving and leaving[0] <= now_ps:
                leaving.popleft()
            queue_bytes = len(leaving) * self.frame_bytes
            self.max_queue_bytes = max(self.max_queue_bytes, queue_bytes)
            leaving.append((leaving[-1] if leaving else now_ps) + ser_ps)
            sent[flow] += self.frame_bytes
            if draw() < self.red.chance(queue_bytes):
                self.marked += 1
                if point.on_marked(flow, leaving[-1]):
                    heappush(events, (leaving[-1] + self.feedback_ps, next(order), "cnp", flow))

    def shares(self, window_ps: int) -> Iterator[tuple[int, list[float]]]:
        """For every window that ends at a sample: its end, and every flow's mean rate over it in fair shares."""
        width = window_ps // self.sample_ps
        fair_bytes = self.line_rate_bps * window_ps // (8 * 10**12) / len(self.flows)
        sums = [[0] * len(self.flows)]
        for sample in self.sent:
            sums.append([a + b for a, b in zip(sums[-1], sample, strict=True)])
        for end, (before, after) in enumerate(zip(sums, sums[width:], strict=False), width):
            yield end * self.sample_ps, [(b - a) / fair_bytes for a, b in zip(before, after, strict=True)]

    def converged_ps(self, window_ps: int, factor: float) -> int | None:
        """From when on every window's every share is within `factor` of fair, to the end; None: never."""
        since_ps: int | None = None
        for end_ps, shares in self.shares(window_ps):
            if all(1 / factor <= share <= factor for share in shares):
                since_ps = end_ps if since_ps is None else since_ps
            else:
                since_ps = None
        return since_ps
