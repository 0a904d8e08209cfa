"""A send queue of a reliable connection: what is to be sent next, and what was sent and is not acknowledged yet."""

from __future__ import annotations

from collections import deque

from emu.frame import Envelope, Frame
from emu.transport.psn import HALF, expand
from emu.transport.requester_config import RequesterConfig
from emu.transport.segment import fetch_frame, segment_frame
from emu.transport.syndrome import CREDITS
from emu.transport.wc import WcStatus
from emu.transport.work import ATOMICS, CONSUMES_RECEIVE, SendWqe

SSN_MASK = 0xFFFFFF

Completion = tuple[SendWqe, WcStatus]


class SendQueue:
    """Work requests in, frames out. Sequence numbers are unwrapped; `deadline_ps` is -1 while nothing is awaited."""

    __slots__ = (
        "_ack_every",
        "_acked",
        "_config",
        "_envelope",
        "_fetches",
        "_held",
        "_highest",
        "_limit",
        "_mtu_bytes",
        "_next",
        "_queued",
        "_refused",
        "_since_request",
        "_ssn",
        "_timeout_ps",
        "_window",
        "_wqes",
        "_write_index",
        "deadline_ps",
        "failed",
        "is_starved",
    )

    def __init__(self, envelope: Envelope, config: RequesterConfig, first_psn: int = 0) -> None:
        self._envelope = envelope
        self._config = config
        self._mtu_bytes, self._window = config.path_mtu_bytes, config.window_packets
        self._ack_every, self._timeout_ps = config.ack_every_packets, config.ack_timeout_ps
        self._wqes: deque[SendWqe] = deque()  # not yet acknowledged, oldest first
        self._write_index = 0  # of the WQE that the next frame belongs to
        self._acked = first_psn  # every packet before this is acknowledged
        self._next = first_psn  # the next to send
        self._highest = first_psn  # everything before was sent at least once
        self._queued = first_psn  # the first number that no WQE has taken
        self._since_request = 0  # frames sent since one asked for an acknowledgement
        self._refused = -1  # the packet that the peer had no receive for: nothing is sent until the deadline
        self._held = False  # the WQE to go on with has to wait: for fetches before it, or for the peer's receives
        self._fetches: deque[SendWqe] = deque()  # READs and atomics asked for and not all here, oldest first
        self._ssn = 0  # messages queued so far (IBTA vol. 1, 9.7.7.2)
        self._limit = -1  # up to which the peer has receives for them, as far as it said; -1: for all
        self.deadline_ps = -1
        self.failed = False
        self.is_starved = False  # held for bytes that are still on their way to the NIC

    def look_again(self) -> None:
        """More of a work request's bytes are here."""
        self._look_ahead()

    def post(self, wqe: SendWqe) -> None:
        """Queue a work request behind all others."""
        wqe.first = self._queued
        wqe.packets = max(1, -(-wqe.size_bytes // self._mtu_bytes)) if wqe.opcode not in ATOMICS else 1
        self._ssn += 1
        wqe.ssn = self._ssn
        self._queued += wqe.packets
        self._wqes.append(wqe)
        if wqe.special and self._write_index == len(self._wqes) - 1:
            self._look_ahead()

    def withdraw(self) -> list[SendWqe]:
        """Take back the work requests that have not begun, oldest first; they may be posted again."""
        left = [wqe for wqe in self._wqes if wqe.first >= self._highest]
        for wqe in left:
            self._wqes.pop()
            self._queued -= wqe.packets
        self._ssn -= len(left)
        self._look_ahead()
        return left

    def configure(self, config: RequesterConfig) -> None:
        """Behave like this from now on; packets stay as large as they are."""
        self._config, self._timeout_ps = config, config.ack_timeout_ps

    def can_send(self) -> bool:
        """Whether `next_frame` has one: something is left to send, the window is open, and nothing holds it."""
        return (
            self._next < self._queued
            and self._next - self._acked < self._window
            and not self._held
            and self._refused < 0
            and not self.failed
        )

    def next_frame(self, now_ps: int) -> Frame:
        """The next request frame; only while `can_send()`."""
        number = self._next
        wqe = self._wqes[self._write_index]
        end = wqe.first + wqe.packets
        if wqe.segments is None:
            frame = fetch_frame(self._envelope, wqe, number, self._mtu_bytes)
            if number >= self._highest:
                self._fetches.append(wqe)
            after = end
            self._since_request = 0
        else:
            after = number + 1
            self._since_request += 1
            ask = after == end or after - self._acked >= self._window or self._since_request >= self._ack_every
            if ask:
                self._since_request = 0
            frame = segment_frame(self._envelope, wqe, number, self._mtu_bytes, ask=ask)
        self._next = after
        if number < self._highest:
            wqe.message.retransmitted += 1
        if after > self._highest:
            self._highest = after
        if after == end:
            self._write_index += 1
            self._look_ahead()
        elif wqe.available >= 0:
            self._look_ahead()
        if self.deadline_ps < 0:
            self._restart_timer(now_ps)
        return frame

    def _settled(self, acked: int) -> int:
        """How far an acknowledgement of all before `acked` reaches: up to the oldest fetch that is not all here."""
        if self._fetches:
            wqe = self._fetches[0]
            return min(acked, wqe.first + wqe.received)
        return acked

    def _retire(self, acked: int) -> list[Completion]:
        """All packets before `acked`, which is further than so far, are done with; the work requests that finishes."""
        done: list[Completion] = []
        self._acked = acked
        while self._wqes and self._wqes[0].first + self._wqes[0].packets <= acked:
            done.append((self._wqes.popleft(), WcStatus.SUCCESS))
        if self._next < acked:  # acknowledged by an earlier copy while being sent again
            self._next = acked
            self._since_request = 0
            self._write_index = 0
        else:
            self._write_index = max(0, self._write_index - len(done))
        if self._held or done:
            self._look_ahead()
        return done

    def _go_back(self) -> None:
        """Everything from the oldest unacknowledged packet on is sent again."""
        self._next = self._acked
        self._since_request = 0
        self._write_index = 0
        self._look_ahead()

    def _take_credits(self, code: int, msn: int) -> None:
        """An acknowledgement says how many receives there are after message `msn`."""
        if self._config.end_to_end_credits and code < len(CREDITS):
            granted = expand(msn + CREDITS[code] & SSN_MASK, self._ssn)
            self._limit = max(self._limit, granted)  # a receive that was there is still: codes only round down
        elif code >= len(CREDITS):
            self._limit = -1
        if self._held:
            self._look_ahead()

    def _look_ahead(self) -> None:
        """Whether the WQE that comes next may not begin yet. What was sent before may always be sent again."""
        self._held = self.is_starved = False
        if self._write_index >= len(self._wqes):
            return
        wqe = self._wqes[self._write_index]
        if not wqe.special:
            return
        if wqe.available >= 0:
            end = min((max(self._next, wqe.first) - wqe.first + 1) * self._mtu_bytes, wqe.size_bytes)
            self._held = self.is_starved = wqe.available < end
        if wqe.first < self._highest or self._held:
            return
        outstanding = len(self._fetches)
        if wqe.fence and outstanding:
            self._held = True
        elif wqe.segments is None:  # numbers more than half of all apart cannot be told from old ones
            too_far = wqe.first + wqe.packets - self._acked > HALF
            self._held = too_far or outstanding >= self._config.max_rd_atomic
        elif wqe.opcode in CONSUMES_RECEIVE and 0 <= self._limit < wqe.ssn:
            self._held = self._acked < wqe.first  # one may go beyond the limit, to ask

    def _restart_timer(self, now_ps: int) -> None:
        self.deadline_ps = now_ps + self._timeout_ps if self._timeout_ps else -1
