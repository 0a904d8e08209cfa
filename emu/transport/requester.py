"""The requester of a reliable connection: work requests in, request frames out, acknowledgements and responses back.

A machine without I/O: the caller pulls frames, hands answers in and says when a deadline has passed. IBTA vol. 1, 9.7.5
and 9.9.2: go-back-N, one timer a queue pair, `retry_cnt` tries without progress; receiver-not-ready has its own count.
"""

from __future__ import annotations

from emu import opcodes
from emu.frame import Envelope, Frame
from emu.transport.psn import expand
from emu.transport.requester_config import RequesterConfig
from emu.transport.send_queue import Completion, SendQueue
from emu.transport.syndrome import (
    CODE_MASK,
    NAK_PSN_SEQUENCE_ERROR,
    RNR_TIMER_PS,
    is_ack,
    is_nak,
    is_rnr,
    nak_status,
)
from emu.transport.wc import WcStatus
from emu.transport.work import ATOMICS, SendWqe

__all__ = ["Completion", "Requester", "RequesterConfig", "SendWqe"]

RNR_RETRY_ENDLESS = 7


class Requester(SendQueue):
    """A send queue that heeds answers, and their absence."""

    __slots__ = ("_implied", "_rnr_left", "_tries_left", "fetched")

    finished: list[Completion] = []  # noqa: RUF012 - nothing is finished by sending it: empty for ever

    def __init__(self, envelope: Envelope, config: RequesterConfig, first_psn: int = 0) -> None:
        super().__init__(envelope, config, first_psn)
        self._tries_left = config.retry_cnt
        self._rnr_left = config.rnr_retry
        self._implied = False  # a gap in what came back has made us send again already
        self.fetched: SendWqe | None = None  # whose last response the last one taken was

    def on_acknowledge(self, frame: Frame, now_ps: int) -> list[Completion]:
        """Take an ACK, NAK or RNR NAK; returns the work requests it finishes, in order."""
        if frame.aeth is None or self.failed:
            return []
        syndrome, msn = frame.aeth
        number = expand(frame.psn, self._acked)
        if number >= self._highest or number < self._acked - 1:
            return []  # about packets never sent, or long done with: a ghost
        if is_ack(syndrome):
            self._take_credits(syndrome & CODE_MASK, msn)
            return self._up_to(number + 1, now_ps)
        if number < self._acked:
            return []  # it has been taken since
        done = self._advance(self._settled(number), now_ps)
        if is_rnr(syndrome):
            return done + self._wait_for_receive(number, syndrome & CODE_MASK, now_ps)
        if not is_nak(syndrome):
            return done
        if syndrome != NAK_PSN_SEQUENCE_ERROR:
            return done + self._fail(nak_status(syndrome))
        if self._next <= number:
            return done  # it is about to be sent again anyway
        return done + self._retry(now_ps)

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
            return self._up_to(number, now_ps)
        if not self._take(wqe, frame):
            return self._advance(expected, now_ps) + self._fail(WcStatus.BAD_RESP_ERR)
        wqe.received += 1
        if wqe.received == wqe.packets:
            self._fetches.popleft()
            self.fetched = wqe
        return self._advance(number + 1, now_ps)

    def on_deadline(self, now_ps: int) -> list[Completion]:
        """No answer came in time: send again from the oldest, or give up; or the peer may have a receive by now."""
        if self._refused >= 0:
            self._refused = -1
            self.deadline_ps = -1
            return []
        if self._acked == self._highest or self.failed:
            self.deadline_ps = -1
            return []
        return self._retry(now_ps)

    def flush(self) -> list[Completion]:
        """The queue pair goes to the error state: what is queued comes back flushed."""
        return self._fail(WcStatus.WR_FLUSH_ERR)

    def _take(self, wqe: SendWqe, frame: Frame) -> bool:
        """Put what came back where it belongs; False: it is no answer to what was asked."""
        if wqe.opcode in ATOMICS:
            if frame.opcode != opcodes.ATOMIC_ACKNOWLEDGE or not frame.extension:
                return False
            wqe.sink.write(0, frame.extension[0].to_bytes(8, "little"))
            return True
        start = wqe.received * self._mtu_bytes
        wanted = min(self._mtu_bytes, wqe.size_bytes - start)
        if frame.opcode == opcodes.ATOMIC_ACKNOWLEDGE or len(frame.payload) != wanted:
            return False
        wqe.sink.write(start, frame.payload)
        return True

    def _up_to(self, acked: int, now_ps: int) -> list[Completion]:
        """All packets before `acked` were taken; but a fetch is done only when what it asked for is here."""
        if not self._fetches:
            return self._advance(acked, now_ps)
        settled = self._settled(acked)
        done = self._advance(settled, now_ps)
        if settled == acked or self._implied or self._next <= settled:
            return done
        return done + self._retry(now_ps, implied=True)  # its answer was lost on the way

    def _advance(self, acked: int, now_ps: int) -> list[Completion]:
        if acked <= self._acked:
            return []
        self._tries_left, self._rnr_left = self._config.retry_cnt, self._config.rnr_retry
        self._implied = False
        done = self._retire(acked)
        if self._refused < acked:  # a copy of what was refused was taken
            self._refused = -1
        if acked == self._highest:
            self.deadline_ps = -1
        elif self._refused < 0:
            self._restart_timer(now_ps)
        return done

    def _retry(self, now_ps: int, *, implied: bool = False) -> list[Completion]:
        if self._tries_left == 0:
            return self._fail(WcStatus.RETRY_EXC_ERR)
        self._tries_left -= 1
        self._implied = implied
        self._go_back()
        if self._refused < 0:
            self._restart_timer(now_ps)
        return []

    def _wait_for_receive(self, number: int, code: int, now_ps: int) -> list[Completion]:
        if number == self._refused:
            return []  # of an earlier copy: nothing was sent since
        if self._rnr_left == 0:
            return self._fail(WcStatus.RNR_RETRY_EXC_ERR)
        if self._config.rnr_retry != RNR_RETRY_ENDLESS:
            self._rnr_left -= 1
        self._refused = number
        self._go_back()
        self.deadline_ps = now_ps + RNR_TIMER_PS[code]
        return []

    def _fail(self, status: WcStatus) -> list[Completion]:
        """The queue pair goes to the error state: the oldest request carries the status, the rest are flushed."""
        self.failed = True
        self.deadline_ps = -1
        done = [(wqe, status if index == 0 else WcStatus.WR_FLUSH_ERR) for index, wqe in enumerate(self._wqes)]
        self._wqes.clear()
        self._fetches.clear()
        return done
