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
from emu.transport.work import ATOMICS, Places, SendWqe

__all__ = ["Completion", "Requester", "RequesterConfig", "SendWqe"]

RNR_RETRY_ENDLESS = 7


class Requester(SendQueue):
    """A send queue that heeds answers, and their absence."""

    __slots__ = ("_fatal", "_implied", "_rnr_left", "_tries_left", "fetched", "fetched_bytes", "landed")

    finished: list[Completion] = []  # noqa: RUF012 - nothing is finished by sending it: empty for ever

    def __init__(self, envelope: Envelope, config: RequesterConfig, first_psn: int = 0) -> None:
        super().__init__(envelope, config, first_psn)
        self._tries_left = config.retry_cnt
        self._rnr_left = config.rnr_retry
        self._implied = False  # a gap in what came back has made us send again already
        self._fatal: tuple[int, WcStatus] | None = None  # a packet that the peer refused for good, and why
        self.landed: Places = ()  # where the payload of the last response went
        self.fetched_bytes = 0  # of payload that came back, in order
        self.fetched: SendWqe | None = None  # whose last response the last one taken was

    def configure(self, config: RequesterConfig) -> None:
        """As above; what changes gives back all tries."""
        if config != self._config:
            self._tries_left, self._rnr_left = config.retry_cnt, config.rnr_retry
        super().configure(config)

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
            return done + self._refuse(number, nak_status(syndrome), now_ps)
        if self._next <= number:
            return done  # it is about to be sent again anyway
        return done + self._retry(now_ps)

    def on_response(self, frame: Frame, now_ps: int) -> list[Completion]:
        """Take a READ response or an atomic's answer; returns the work requests it finishes, in order."""
        self.fetched, self.landed = None, ()
        if self.failed or not self._fetches:
            return []
        wqe = self._fetches[0]
        number, expected = expand(frame.psn, self._acked), wqe.first + wqe.received
        if number < expected or number >= self._highest:
            return []  # it was here already, or answers nothing
        if number > expected:  # a gap: what was asked for before is lost
            return self._up_to(number, now_ps)
        fault = self._take(wqe, frame)
        if fault:
            return self._advance(expected, now_ps) + self._fail(fault)
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

    def _take(self, wqe: SendWqe, frame: Frame) -> WcStatus:
        """Put what came back where it belongs; what is wrong with it, if anything is."""
        if not wqe.sink.region.is_known:
            return WcStatus.LOC_PROT_ERR
        if wqe.opcode in ATOMICS:
            if frame.opcode != opcodes.ATOMIC_ACKNOWLEDGE or not frame.extension:
                return WcStatus.BAD_RESP_ERR
            wqe.sink.write(0, frame.extension[0].to_bytes(8, "little"))
            self.landed = wqe.sink.places(0, 8)
            self.fetched_bytes += 8
            return WcStatus.SUCCESS
        start = wqe.received * self._mtu_bytes
        wanted = min(self._mtu_bytes, wqe.size_bytes - start)
        if len(frame.payload) != wanted or not is_due(frame.opcode, wqe, in_parts=self._config.selective):
            return WcStatus.BAD_RESP_ERR
        wqe.sink.write(start, frame.payload)
        self.landed = wqe.sink.places(start, wanted)
        self.fetched_bytes += wanted
        return WcStatus.SUCCESS

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
        if self._fatal is not None and acked >= self._fatal[0]:
            done += self._fail(self._fatal[1])
        return done

    def _refuse(self, number: int, status: WcStatus, now_ps: int) -> list[Completion]:
        """The peer refuses a packet for good: its work request fails, once what fetches before it are done."""
        self._fatal = (number, status)
        if self._acked >= number:
            return self._fail(status)
        if self._implied or self._next <= self._acked:
            return []
        return self._retry(now_ps, implied=True)

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
        done = [(wqe, status if index == 0 else self._flushed(wqe)) for index, wqe in enumerate(self._wqes)]
        self._wqes.clear()
        self._fetches.clear()
        return done

    def _flushed(self, wqe: SendWqe) -> WcStatus:
        """What a request behind the one that failed is told: the peer's refusal, if it was of that one."""
        if self._fatal is not None and wqe.first <= self._fatal[0] < wqe.first + wqe.packets:
            return self._fatal[1]
        return WcStatus.WR_FLUSH_ERR


def is_due(opcode: int, wqe: SendWqe, *, in_parts: bool) -> bool:
    """Whether a READ's next response may have that opcode; one that was asked for again begins anew where that is.

    `in_parts`: what is asked for again may end before the READ does.
    """
    if in_parts and wqe.message.retransmitted > 0:
        return opcodes.READ_RESPONSE_FIRST <= opcode <= opcodes.READ_RESPONSE_ONLY
    place, last = wqe.received, wqe.packets - 1
    if opcode == opcodes.READ_RESPONSE_MIDDLE:
        return 0 < place < last
    if opcode == opcodes.READ_RESPONSE_LAST:
        return 0 < place == last
    if opcode != (opcodes.READ_RESPONSE_ONLY if place == last else opcodes.READ_RESPONSE_FIRST):
        return False
    return place == 0 or wqe.message.retransmitted > 0
