"""The requester of a reliable connection: work requests in, request frames out, acknowledgements back.

A machine without I/O: the caller pulls frames, hands acknowledgements in and says when a deadline has passed.
IBTA vol. 1, 9.7.5 and 9.9.2: go-back-N, one timer a queue pair, `retry_cnt` tries without progress.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from emu import opcodes
from emu.frame import Envelope, Frame, Message
from emu.transport.psn import PSN_MASK, expand
from emu.transport.syndrome import NAK_PSN_SEQUENCE_ERROR, is_ack, is_nak, nak_status
from emu.transport.wc import WcStatus

ACK_TIMEOUT_UNIT_PS = 4_096_000  # IBTA vol. 1, 9.7.6.1.3: the timeout is 4.096 us x 2^code


@dataclass(frozen=True, slots=True, kw_only=True)
class RequesterConfig:
    """How a requester behaves. A timeout code of 0 never fires."""

    path_mtu_bytes: int
    window_packets: int
    ack_every_packets: int
    ack_timeout_code: int
    retry_cnt: int

    @property
    def ack_timeout_ps(self) -> int:
        """How long to wait for an acknowledgement, in picoseconds; 0: for ever."""
        return ACK_TIMEOUT_UNIT_PS << self.ack_timeout_code if self.ack_timeout_code else 0


class SendWqe:
    """A work request in the send queue: its bytes, where they go, and the packets it takes."""

    __slots__ = ("first", "message", "packets", "payload", "remote_addr", "rkey", "signaled", "wr_id")

    def __init__(
        self, message: Message, wr_id: int, payload: memoryview, remote_addr: int, rkey: int, signaled: bool
    ) -> None:
        self.message = message
        self.wr_id = wr_id
        self.payload = payload
        self.remote_addr = remote_addr
        self.rkey = rkey
        self.signaled = signaled
        self.first = 0  # the sequence number of its first packet, once queued
        self.packets = 0


Completion = tuple[SendWqe, WcStatus]


class Requester:
    """One send queue. Sequence numbers are unwrapped; `deadline_ps` is -1 while nothing is awaited."""

    __slots__ = (
        "_acked",
        "_ack_every",
        "_config",
        "_envelope",
        "_highest",
        "_mtu_bytes",
        "_next",
        "_queued",
        "_since_request",
        "_tries_left",
        "_window",
        "_wqes",
        "_write_index",
        "deadline_ps",
        "failed",
    )

    def __init__(self, envelope: Envelope, config: RequesterConfig, first_psn: int = 0) -> None:
        self._envelope = envelope
        self._config = config
        self._mtu_bytes, self._window = config.path_mtu_bytes, config.window_packets
        self._ack_every = config.ack_every_packets
        self._wqes: deque[SendWqe] = deque()  # not yet acknowledged, oldest first
        self._write_index = 0  # of the WQE that the next frame belongs to
        self._acked = first_psn  # every packet before this is acknowledged
        self._next = first_psn  # the next to send
        self._highest = first_psn  # everything before was sent at least once
        self._queued = first_psn  # the first number that no WQE has taken
        self._since_request = 0  # frames sent since one asked for an acknowledgement
        self._tries_left = config.retry_cnt
        self.deadline_ps = -1
        self.failed = False

    def post(self, wqe: SendWqe) -> None:
        """Queue a work request behind all others."""
        wqe.first = self._queued
        wqe.packets = max(1, -(-len(wqe.payload) // self._mtu_bytes))
        self._queued += wqe.packets
        self._wqes.append(wqe)

    def can_send(self) -> bool:
        """Whether `next_frame` has one: something is left to send, and the window is open."""
        return self._next < self._queued and self._next - self._acked < self._window and not self.failed

    def next_frame(self, now_ps: int) -> Frame:
        """The next request frame; only while `can_send()`."""
        number, mtu_bytes = self._next, self._mtu_bytes
        wqe = self._wqes[self._write_index]
        index, last = number - wqe.first, wqe.packets - 1
        start = index * mtu_bytes
        reth = (wqe.remote_addr, wqe.rkey, len(wqe.payload)) if index == 0 else None
        if index == last:
            opcode = opcodes.WRITE_ONLY if last == 0 else opcodes.WRITE_LAST
            self._write_index += 1
        else:
            opcode = opcodes.WRITE_FIRST if index == 0 else opcodes.WRITE_MIDDLE
        self._since_request += 1
        window_full = number + 1 - self._acked >= self._window
        ask = index == last or window_full or self._since_request >= self._ack_every
        if ask:
            self._since_request = 0
        payload = wqe.payload[start : start + mtu_bytes]
        frame = Frame(self._envelope, opcode, number & PSN_MASK, payload, wqe.message, ask, reth)
        self._next = number + 1
        if number < self._highest:
            wqe.message.retransmitted += 1
        else:
            self._highest = number + 1
        if self.deadline_ps < 0:
            self._restart_timer(now_ps)
        return frame

    def on_acknowledge(self, frame: Frame, now_ps: int) -> list[Completion]:
        """Take an ACK or NAK; returns the work requests it finishes, in order."""
        if frame.aeth is None or self.failed:
            return []
        syndrome, _msn = frame.aeth
        number = expand(frame.psn, self._acked)
        if not self._acked - 1 <= number < self._highest:
            return []  # about packets never sent: a ghost
        if is_ack(syndrome):
            return self._advance(number + 1, now_ps)
        if not is_nak(syndrome):
            return []  # receiver not ready: no verb here needs a receive
        done = self._advance(number, now_ps)
        if syndrome == NAK_PSN_SEQUENCE_ERROR:
            return done + self._retry(now_ps)
        return done + self._fail(nak_status(syndrome))

    def on_deadline(self, now_ps: int) -> list[Completion]:
        """No acknowledgement came in time: send again from the oldest, or give up."""
        if self._acked == self._highest or self.failed:
            self.deadline_ps = -1
            return []
        return self._retry(now_ps)

    def _advance(self, acked: int, now_ps: int) -> list[Completion]:
        done: list[Completion] = []
        if acked <= self._acked:
            return done
        self._acked = acked
        self._tries_left = self._config.retry_cnt
        while self._wqes and self._wqes[0].first + self._wqes[0].packets <= acked:
            done.append((self._wqes.popleft(), WcStatus.SUCCESS))
        if self._next < acked:  # acknowledged by an earlier copy while being sent again
            self._next = acked
            self._since_request = 0
            self._write_index = 0
        else:
            self._write_index = max(0, self._write_index - len(done))
        if self._acked == self._highest:
            self.deadline_ps = -1
        else:
            self._restart_timer(now_ps)
        return done

    def _retry(self, now_ps: int) -> list[Completion]:
        if self._tries_left == 0:
            return self._fail(WcStatus.RETRY_EXC_ERR)
        self._tries_left -= 1
        self._next = self._acked
        self._since_request = 0
        self._write_index = 0
        self._restart_timer(now_ps)
        return []

    def _fail(self, status: WcStatus) -> list[Completion]:
        """The queue pair goes to the error state: the oldest request carries the status, the rest are flushed."""
        self.failed = True
        self.deadline_ps = -1
        done = [(wqe, status if index == 0 else WcStatus.WR_FLUSH_ERR) for index, wqe in enumerate(self._wqes)]
        self._wqes.clear()
        return done

    def _restart_timer(self, now_ps: int) -> None:
        timeout_ps = self._config.ack_timeout_ps
        self.deadline_ps = now_ps + timeout_ps if timeout_ps else -1
