"""Selective repeat, after IRN (SIGCOMM 2018): what comes early is kept, and only what is missing is sent again.

On the wire it is a reliable connection like any other, but for one field: the NAK 0x60 that answers an early packet
names the packet expected, as ever, and has in its MSN the number of the one that came. There is one for each.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from emu.frame import Envelope, Frame
from emu.transport.answer import AnyAnswer, Early
from emu.transport.memory import MemoryTable
from emu.transport.psn import PSN_MASK, expand
from emu.transport.receive_queue import ReceiveQueue
from emu.transport.received import Received, ResponderConfig
from emu.transport.requester import Completion, Requester
from emu.transport.requester_config import RequesterConfig
from emu.transport.responder import Responder
from emu.transport.segment import fetch_frame, segment_frame
from emu.transport.syndrome import NAK_PSN_SEQUENCE_ERROR
from emu.transport.work import SendWqe


class SelectiveResponder(Responder):
    """Takes everything in order still: what comes early waits, `hold_packets` of it at most, for `next_held`."""

    __slots__ = ("_held",)

    def __init__(self, memory: MemoryTable, config: ResponderConfig, queue: ReceiveQueue, first_psn: int = 0) -> None:
        super().__init__(memory, config, queue, first_psn)
        self._held: dict[int, Frame] = {}

    @property
    def hold_packets(self) -> int:
        """As many of them as wait at once, and so as many answers as may wait to say so."""
        return self._config.hold_packets

    def next_held(self) -> Frame | None:
        """What came early and is expected now, to be handed in again; ask again after that."""
        return self._held.pop(self._expected, None) if self._held else None

    def flush(self) -> list[Received]:
        """As ever; nothing is held then."""
        self._held.clear()
        return super().flush()

    def _out_of_order(self, frame: Frame) -> AnyAnswer | None:
        number = expand(frame.psn, self._expected)
        if number < self._expected:
            return self._again(frame, number)
        if number not in self._held:
            if len(self._held) >= self._config.hold_packets:  # numbers that were skipped since are nobody's
                self._held = {held: each for held, each in self._held.items() if held > self._expected}
            if len(self._held) >= self._config.hold_packets:
                return None
            frame.ack_request = True  # its sender should know at once that the gap is filled
            self._held[number] = frame
        return Early(self._expected & PSN_MASK, frame.psn)


class SelectiveRequester(Requester):
    """Never goes back: `_next` is always `_highest`, and what was lost is sent again from a list of its own."""

    __slots__ = ("_answered", "_arrived", "_asked", "_held_back", "_looked", "_missing")

    def __init__(self, envelope: Envelope, config: RequesterConfig, first_psn: int = 0) -> None:
        super().__init__(envelope, config, first_psn)
        self._arrived: set[int] = set()  # early, and not acknowledged: a belief, for the peer may have to drop them
        self._missing: list[int] = []  # to be sent again, smallest first
        self._looked = first_psn  # losses before this one were noticed, once each: the next time is a timeout
        self._held_back: dict[int, Frame] = {}  # responses that came early
        self._answered = first_psn  # lost responses before this one were noticed
        self._asked: dict[int, int] = {}  # gaps in them that were asked for again: first packet, and the one after

    def can_send(self) -> bool:
        """Whether `next_frame` has one."""
        return self._may_repeat() or super().can_send()

    def next_frame(self, now_ps: int) -> Frame:
        """The next request frame, what is missing first; only while `can_send()`."""
        if not self._may_repeat():
            return super().next_frame(now_ps)
        number = self._missing.pop(0)
        wqe = self._wqes[self._place_of(number)]
        if wqe.segments is None:
            frame = self._fetch_again(wqe, number)
        else:
            frame = segment_frame(self._envelope, wqe, number, self._mtu_bytes, ask=True)
        wqe.message.retransmitted += 1
        if self.deadline_ps < 0:
            self._restart_timer(now_ps)
        return frame

    def on_acknowledge(self, frame: Frame, now_ps: int) -> list[Completion]:
        """Take an ACK, NAK or RNR NAK; returns the work requests it finishes, in order."""
        if frame.aeth is None or frame.aeth[0] != NAK_PSN_SEQUENCE_ERROR or self.failed:
            return super().on_acknowledge(frame, now_ps)
        expected = expand(frame.psn, self._acked)
        came = expand(frame.aeth[1], expected)
        if not expected < came < self._highest:
            return []  # about packets never sent: a ghost
        done = self._up_to(expected, now_ps)
        if came < self._acked or self.failed:
            return done  # an old one
        self._arrived.add(came)
        begin = max(self._looked, self._acked)
        if begin < came:
            self._miss(self._packets(begin, came))
        self._looked = max(self._looked, came + 1)
        self._forget()
        return done

    def on_response(self, frame: Frame, now_ps: int) -> list[Completion]:
        """Take what comes back, or keep it for `next_held`; returns the work requests it finishes, in order."""
        if self.failed or not self._fetches:
            return super().on_response(frame, now_ps)
        expected = self._fetches[0].first + self._fetches[0].received
        number = expand(frame.psn, self._acked)
        if not expected < number < self._highest:
            return super().on_response(frame, now_ps)
        self.fetched, self.landed = None, ()
        if number not in self._held_back and len(self._held_back) < self._window:
            self._held_back[number] = frame
        self._miss(self._gaps(max(self._answered, expected), number))
        self._answered = max(self._answered, number + 1)
        self._forget_asked()
        return self._advance(expected, now_ps)

    def next_held(self) -> Frame | None:
        """A response that came early and is expected now, to be handed in again; ask again after that."""
        if not self._held_back or not self._fetches:
            return None
        return self._held_back.pop(self._fetches[0].first + self._fetches[0].received, None)

    def _may_repeat(self) -> bool:
        """Whether something is to be sent again now: the peer answers only so many fetches again at a time."""
        if not self._missing or self._refused >= 0 or self.failed:
            return False
        if len(self._asked) < self._config.max_rd_atomic:
            return True
        return self._wqes[self._place_of(self._missing[0])].segments is not None

    def on_deadline(self, now_ps: int) -> list[Completion]:
        """No answer came in time: send again what is not known to be there, or give up; or the peer may be ready."""
        done = super().on_deadline(now_ps)
        if self.deadline_ps < 0 and self._acked < self._highest and not self.failed:
            self._restart_timer(now_ps)
        return done

    def _go_back(self) -> None:
        if self._refused >= 0:  # the peer has dropped it, though it may have said that it came
            again = [self._refused]
        else:
            self._asked.clear()
            self._answered = self._acked
            again = list(self._gaps(self._acked, self._highest))
        if self._refused < 0 and not self._implied:
            self._looked = self._acked
            again += filter(self._is_doubtful, self._packets(self._acked, self._highest))
        self._arrived.difference_update(again)
        self._miss(again)

    def _is_doubtful(self, number: int) -> bool:
        """Not known to be there, or else it would have been acknowledged."""
        return number not in self._arrived or number == self._acked

    def _retire(self, acked: int) -> list[Completion]:
        done = super()._retire(acked)
        if self._held_back:
            self._held_back = {number: each for number, each in self._held_back.items() if number >= acked}
        if self._asked:
            self._forget_asked()
        if self._arrived or self._missing:
            self._arrived = {number for number in self._arrived if number >= acked}
            self._forget()
        return done

    def _miss(self, numbers: Iterable[int]) -> None:
        self._missing = sorted({*self._missing, *numbers} - self._arrived)

    def _forget(self) -> None:
        """What is there by now need not be sent again."""
        self._missing = [each for each in self._missing if each >= self._acked and each not in self._arrived]

    def _forget_asked(self) -> None:
        """Gaps whose last packet has come are asked for no longer."""
        self._asked = {
            first: after
            for first, after in self._asked.items()
            if after > self._acked and after - 1 not in self._held_back
        }

    def _packets(self, begin: int, end: int) -> Iterator[int]:
        """The request packets from one number to before another: of a fetch the one for what is left of it."""
        for place in range(self._place_of(begin), len(self._wqes)):
            wqe = self._wqes[place]
            if wqe.first >= end:
                return
            if wqe.segments is not None:
                after = min(end, wqe.first + wqe.packets)
                yield from range(max(begin, wqe.first), after)
            elif begin <= wqe.first + wqe.received < end:
                yield wqe.first + wqe.received

    def _gaps(self, begin: int, end: int) -> Iterator[int]:
        """Where responses are missing that should have come by now: the first of each run of them."""
        for wqe in self._fetches:
            start = max(begin, wqe.first + wqe.received)
            for number in range(start, min(end, wqe.first + wqe.packets)):
                if number not in self._held_back and (number == start or number - 1 in self._held_back):
                    yield number

    def _fetch_again(self, wqe: SendWqe, number: int) -> Frame:
        """Ask for what is missing from that packet on, up to what is here."""
        frame = fetch_frame(self._envelope, wqe, number, self._mtu_bytes)
        end = wqe.first + wqe.packets
        after = self._asked[number] = min((held for held in self._held_back if number < held < end), default=end)
        if after < end and frame.reth is not None:
            addr, rkey, _ = frame.reth
            frame.reth = (addr, rkey, (after - number) * self._mtu_bytes)
        return frame

    def _place_of(self, number: int) -> int:
        return max(0, bisect_right(self._wqes, number, key=lambda wqe: wqe.first) - 1)
