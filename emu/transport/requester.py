"""The requester of a reliable connection: work requests in, request frames out, acknowledgements and responses back.

A machine without I/O: the caller pulls frames, hands answers in and says when a deadline has passed. IBTA vol. 1, 9.7.5
and 9.9.2: go-back-N, one timer a queue pair, `retry_cnt` tries without progress; receiver-not-ready has its own count.
"""

from __future__ import annotations

from collections import deque

from emu import opcodes
from emu.frame import Envelope, Frame
from emu.transport.psn import expand
from emu.transport.requester_config import RequesterConfig
from emu.transport.segment import fetch_frame, segment_frame
from emu.transport.syndrome import (
    CODE_MASK,
    CREDITS,
    NAK_PSN_SEQUENCE_ERROR,
    RNR_TIMER_PS,
    is_ack,
    is_nak,
    is_rnr,
    nak_status,
)
from emu.transport.wc import WcStatus
from emu.transport.work import ATOMICS, CONSUMES_RECEIVE, SendWqe

__all__ = ["Completion", "Requester", "RequesterConfig", "SendWqe"]

RNR_RETRY_ENDLESS = 7
SSN_MASK = 0xFFFFFF

Completion = tuple[SendWqe, WcStatus]


class Requester:
    """One send queue. Sequence numbers are unwrapped; `deadline_ps` is -1 while nothing is awaited."""

    __slots__ = (
        "_acked",
        "_ack_every",
        "_config",
        "_envelope",
        "_fetches",
        "_held",
        "_highest",
        "_implied",
        "_limit",
        "_mtu_bytes",
        "_next",
        "_queued",
        "_rnr_left",
        "_rnr_waits",
        "_since_request",
        "_ssn",
        "_timeout_ps",
        "_tries_left",
        "_window",
        "_wqes",
        "_write_index",
        "deadline_ps",
        "failed",
        "fetched",
    )

    finished: list[Completion] = []  # noqa: RUF012 - nothing is finished by sending it: empty for ever

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
        self._tries_left = config.retry_cnt
        self._rnr_left = config.rnr_retry
        self._rnr_waits = False  # until the deadline: the peer had no receive
        self._held = False  # the WQE to go on with has to wait: for fetches before it, or for the peer's receives
        self._fetches: deque[SendWqe] = deque()  # READs and atomics that were asked for, oldest first
        self._implied = False  # a gap in what came back has made us send again already
        self._ssn = 0  # messages queued so far (IBTA vol. 1, 9.7.7.2)
        self._limit = -1  # up to which the peer has receives for them, as far as it said; -1: for all
        self.deadline_ps = -1
        self.failed = False
        self.fetched: SendWqe | None = None  # whose last response the last one taken was

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

    def can_send(self) -> bool:
        """Whether `next_frame` has one: something is left to send, the window is open, and nothing holds it."""
        return (
            self._next < self._queued
            and self._next - self._acked < self._window
            and not self._held
            and not self._rnr_waits
            and not self.failed
        )

    def next_frame(self, now_ps: int) -> Frame:
        """The next request frame; only while `can_send()`."""
        number = self._next
        wqe = self._wqes[self._write_index]
        if wqe.segments is None:
            frame = fetch_frame(self._envelope, wqe, number, self._mtu_bytes)
            if not self._fetches or self._fetches[-1] is not wqe:
                self._fetches.append(wqe)
            after = wqe.first + wqe.packets
            self._since_request = 0
        else:
            after = number + 1
            ends = after == wqe.first + wqe.packets
            self._since_request += 1
            ask = ends or after - self._acked >= self._window or self._since_request >= self._ack_every
            if ask:
                self._since_request = 0
            frame = segment_frame(self._envelope, wqe, number, self._mtu_bytes, ask=ask)
        self._next = after
        if after == wqe.first + wqe.packets:
            self._write_index += 1
            self._look_ahead()
        if number < self._highest:
            wqe.message.retransmitted += 1
        if after > self._highest:
            self._highest = after
        if self.deadline_ps < 0:
            self._restart_timer(now_ps)
        return frame

    def on_acknowledge(self, frame: Frame, now_ps: int) -> list[Completion]:
        """Take an ACK, NAK or RNR NAK; returns the work requests it finishes, in order."""
        if frame.aeth is None or self.failed:
            return []
        syndrome, msn = frame.aeth
        number = expand(frame.psn, self._acked)
        if not self._acked - 1 <= number < self._highest:
            return []  # about packets never sent: a ghost
        if is_ack(syndrome):
            self._take_credits(syndrome & CODE_MASK, msn)
            return self._up_to(number + 1, now_ps)
        done = self._up_to(number, now_ps)
        if self.failed:
            return done
        if is_rnr(syndrome):
            return done + self._wait_for_receive(syndrome & CODE_MASK, now_ps)
        if not is_nak(syndrome):
            return done
        if syndrome == NAK_PSN_SEQUENCE_ERROR:
            return done + self._retry(now_ps)
        return done + self._fail(nak_status(syndrome))

    def on_response(self, frame: Frame, now_ps: int) -> list[Completion]:
        """Take a READ response or an atomic's answer; returns the work requests it finishes, in order."""
        self.fetched = None
        if self.failed or not self._fetches:
            return []
        wqe = self._fetches[0]
        number, expected = expand(frame.psn, self._acked), wqe.first + wqe.received
        if number < expected or number >= self._highest:
            return []  # it was here already, or answers nothing
        if number > expected:  # a gap: what was asked for before is lost
            done = self._advance(expected, now_ps)
            return done if self._implied else done + self._retry(now_ps, implied=True)
        if wqe.opcode in ATOMICS:
            if frame.opcode != opcodes.ATOMIC_ACKNOWLEDGE or not frame.extension:
                return self._advance(expected, now_ps) + self._fail(WcStatus.BAD_RESP_ERR)
            wqe.sink.write(0, frame.extension[0].to_bytes(8, "little"))
        else:
            start = wqe.received * self._mtu_bytes
            wanted = min(self._mtu_bytes, wqe.size_bytes - start)
            if frame.opcode == opcodes.ATOMIC_ACKNOWLEDGE or len(frame.payload) != wanted:
                return self._advance(expected, now_ps) + self._fail(WcStatus.BAD_RESP_ERR)
            wqe.sink.write(start, frame.payload)
        wqe.received += 1
        if wqe.received == wqe.packets:
            self._fetches.popleft()
            self.fetched = wqe
        return self._advance(number + 1, now_ps)

    def on_deadline(self, now_ps: int) -> list[Completion]:
        """No answer came in time: send again from the oldest, or give up; or the peer may have a receive by now."""
        if self._rnr_waits:
            self._rnr_waits = False
            self.deadline_ps = -1
            return []
        if self._acked == self._highest or self.failed:
            self.deadline_ps = -1
            return []
        return self._retry(now_ps)

    def flush(self) -> list[Completion]:
        """The queue pair goes to the error state: what is queued comes back flushed."""
        return self._fail(WcStatus.WR_FLUSH_ERR)

    def _up_to(self, acked: int, now_ps: int) -> list[Completion]:
        """All packets before `acked` were taken; but a fetch is done only when what it asked for is here."""
        if self._fetches:
            wqe = self._fetches[0]
            expected = wqe.first + wqe.received
            if expected < acked:  # its answer was lost on the way
                done = self._advance(expected, now_ps)
                return done if self._implied else done + self._retry(now_ps, implied=True)
        return self._advance(acked, now_ps)

    def _advance(self, acked: int, now_ps: int) -> list[Completion]:
        done: list[Completion] = []
        if acked <= self._acked:
            return done
        self._acked = acked
        self._tries_left, self._rnr_left = self._config.retry_cnt, self._config.rnr_retry
        self._implied = False
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
        if self._acked == self._highest:
            self.deadline_ps = -1
        elif not self._rnr_waits:
            self._restart_timer(now_ps)
        return done

    def _retry(self, now_ps: int, *, implied: bool = False) -> list[Completion]:
        if self._tries_left == 0:
            return self._fail(WcStatus.RETRY_EXC_ERR)
        self._tries_left -= 1
        self._implied = implied
        self._go_back()
        self._restart_timer(now_ps)
        return []

    def _go_back(self) -> None:
        self._next = self._acked
        self._since_request = 0
        self._write_index = 0
        self._fetches.clear()  # they will be asked for again
        self._look_ahead()

    def _wait_for_receive(self, code: int, now_ps: int) -> list[Completion]:
        if self._rnr_left == 0:
            return self._fail(WcStatus.RNR_RETRY_EXC_ERR)
        if self._config.rnr_retry != RNR_RETRY_ENDLESS:
            self._rnr_left -= 1
        self._go_back()
        self._rnr_waits = True
        self.deadline_ps = now_ps + RNR_TIMER_PS[code]
        return []

    def _take_credits(self, code: int, msn: int) -> None:
        if self._config.end_to_end_credits and code < len(CREDITS):
            self._limit = expand(msn + CREDITS[code] & SSN_MASK, self._ssn)
        elif code >= len(CREDITS):
            self._limit = -1
        if self._held:
            self._look_ahead()

    def _look_ahead(self) -> None:
        """Whether the WQE that comes next may not begin yet."""
        self._held = False
        if self._write_index >= len(self._wqes):
            return
        wqe = self._wqes[self._write_index]
        if not wqe.special or self._next > wqe.first:
            return
        outstanding = len(self._fetches)
        if wqe.fence and outstanding:
            self._held = True
        elif wqe.segments is None:
            self._held = outstanding >= self._config.max_rd_atomic
        elif wqe.opcode in CONSUMES_RECEIVE and 0 <= self._limit < wqe.ssn:
            self._held = self._acked < wqe.first  # one may go beyond the limit, to ask

    def _fail(self, status: WcStatus) -> list[Completion]:
        """The queue pair goes to the error state: the oldest request carries the status, the rest are flushed."""
        self.failed = True
        self.deadline_ps = -1
        done = [(wqe, status if index == 0 else WcStatus.WR_FLUSH_ERR) for index, wqe in enumerate(self._wqes)]
        self._wqes.clear()
        self._fetches.clear()
        return done

    def _restart_timer(self, now_ps: int) -> None:
        self.deadline_ps = now_ps + self._timeout_ps if self._timeout_ps else -1
