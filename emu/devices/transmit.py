"""A NIC's transmit side: lanes of notifications, answers and queue pairs, whose frames are made as they can leave."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from emu import opcodes
from emu.devices.egress import Arbiter, Highest, wire_bytes_of
from emu.devices.lane import Lane
from emu.devices.port import Port
from emu.devices.queue_pair import QueuePairState
from emu.engine import Engine, Timer
from emu.frame import Frame
from emu.parts import NIC
from emu.transport.answer import AnyAnswer, AtomicAnswer, Early, ReadAnswer, acknowledge, merge

NOTICES_LIMIT = 256  # that wait in one lane: more than come in while one frame leaves, so reached only when held back


class TransmitLane(Lane):
    """Notifications first, then acknowledgements; then queue pairs that answer READs and those that ask, in turn."""

    __slots__ = ("answers", "notices", "pending", "pending_of", "reads", "reads_turn", "ready")

    def __init__(self, number: int) -> None:
        super().__init__(number, NIC)
        self.notices: deque[Frame] = deque()
        self.answers: deque[QueuePairState] = deque()
        self.reads: deque[QueuePairState] = deque()  # whose next answer is a READ's
        self.reads_turn = False  # whether the last data frame was no READ's response, so that one is next
        self.ready: deque[QueuePairState] = deque()
        self.pending: Frame | None = None  # made, and not sent yet
        self.pending_of: QueuePairState | None = None  # whose data it is

    def first(self) -> Frame:
        assert self.pending is not None
        return self.pending


class Transmit:
    """The source that a NIC's port pulls from.

    `arm` is told of each queue pair whose deadline may have moved, `finished` of those that sending has finished.
    """

    __slots__ = ("_arbiter", "_arm", "_cost", "_costs", "_engine", "_finished", "_waiting", "lanes", "port")

    port: Port

    def __init__(
        self,
        engine: Engine,
        arm: Callable[[QueuePairState], object],
        finished: Callable[[QueuePairState], object],
        *,
        lanes: int,
        arbiter: Arbiter | None = None,
        cost: Callable[[Frame], int] = wire_bytes_of,
    ) -> None:
        self._engine = engine
        self._arm = arm
        self._finished = finished
        self._arbiter = arbiter or Highest()
        self._cost = cost
        self._costs = [0] * lanes
        self._waiting = 0  # bit n: lane n may have frames
        self.lanes: Sequence[TransmitLane] = tuple(TransmitLane(number) for number in range(lanes))

    def waiting(self) -> bool:
        """Whether the port should ask again when its wire is free."""
        return self._waiting != 0

    def owe(self, state: QueuePairState, answer: AnyAnswer, waited: int) -> None:
        """An answer may leave, after those of its queue pair; where its time since was: emu/parts.py.

        An acknowledgement is merged with one before it; the answers to early packets, which cannot be, have a limit.
        """
        answers = state.answers
        if not isinstance(answer, tuple):
            if isinstance(answer, Early) and len(answers) > state.early_limit:
                return
            self._go_on(state, answer, waited)
        if answers and isinstance(answer, tuple) and isinstance(answers[-1], tuple):
            answers[-1] = merge(answers[-1], answer)
        else:
            answers.append(answer)
        if not state.is_answering:
            self._line_up_answers(state)
        self.port.kick()

    def notify(self, frame: Frame) -> bool:
        """A congestion notification may leave; False: too many wait already, and this one is forgotten."""
        lane = self.lanes[frame.envelope.lane]
        if len(lane.notices) >= NOTICES_LIMIT:
            return False
        lane.notices.append(frame)
        self._waiting |= lane.bit
        self.port.kick()
        return True

    def offer(self, state: QueuePairState) -> None:
        """A queue pair may have something to send."""
        if not state.queued and state.requester.can_send():
            state.queued = True
            self._line_up(state)

    def hush(self, state: QueuePairState) -> None:
        """A queue pair answers nothing more."""
        state.answers.clear()
        if state.is_answering:
            state.is_answering = False
            lane = self.lanes[state.envelope.lane]
            (lane.reads if state in lane.reads else lane.answers).remove(state)

    def forget(self, state: QueuePairState) -> None:
        """Nor does it send, not even what was made and has to wait."""
        self.hush(state)
        if state.pacer is not None and state.pacer.running:
            state.pacer.stop()
        lane = self.lanes[state.envelope.lane]
        if lane.pending is not None and (lane.pending_of is state or lane.pending.envelope is state.envelope):
            lane.pending = lane.pending_of = None
            self.port.unblock(lane)
            self.port.kick()

    def starved_ps(self, state: QueuePairState) -> int:
        """For how long the wire was idle since the queue pair had nothing for it but bytes still on their way."""
        since_ps, waits = state.starved_ps
        if since_ps < 0:
            return 0
        state.starved_ps = (-1, 0)
        return self.port.idle_ps(since_ps, waits, self.lanes[state.envelope.lane])

    def rate_changed(self, state: QueuePairState) -> None:
        """A notification was taken: who waits for its pacing waits for another time."""
        if state.pacer is not None and state.pacer.running:
            state.pacer.stop()
            self._paced(state)

    def pop(self) -> Frame | None:
        """The port's wire is free: the frame that starts now, if any may."""
        waiting, flow, ready = self._waiting, self.port.flow, 0
        alone = not waiting & waiting - 1
        while waiting:
            lane = self.lanes[waiting.bit_length() - 1]
            waiting &= ~lane.bit
            frame = lane.pending or self._make(lane)
            if frame is None:
                continue
            if flow is not None and not flow.may_start(frame):
                self.port.block(lane)
                continue
            if alone:
                return self._take(lane, frame)
            ready |= lane.bit
            self._costs[lane.number] = self._cost(frame)
        if not ready:
            return None
        lane = self.lanes[self._arbiter.pick(ready, self._costs)]
        return self._take(lane, lane.first())

    def abandon(self, lane_number: int) -> None:
        """Throw away the frame of a blocked lane, which was made already."""
        lane = self.lanes[lane_number]
        state, lane.pending, lane.pending_of = lane.pending_of, None, None
        if state is not None and state.requester.finished:
            self._finished(state)

    def _make(self, lane: TransmitLane) -> Frame | None:
        frame: Frame | None = None
        if lane.notices:
            frame = lane.notices.popleft()
        elif lane.answers:
            frame = self._make_answer(lane.answers.popleft())
        elif lane.reads and (lane.reads_turn or not lane.ready):
            frame = self._make_answer(lane.reads.popleft())
            lane.reads_turn = False
        elif lane.ready:
            frame = self._make_data(lane)
            lane.reads_turn = True
            if frame is None and lane.reads:
                frame = self._make_answer(lane.reads.popleft())
        lane.pending = frame
        if frame is None:
            self._waiting &= ~lane.bit
        return frame

    def _make_answer(self, state: QueuePairState) -> Frame:
        """The next frame of what a queue pair owes; it stays in line while it owes more."""
        answers = state.answers
        answer = answers[0]
        if isinstance(answer, tuple):
            frame = acknowledge(state.envelope, answer)
            answers.popleft()
        else:
            frame = answer.next_frame(state.envelope)
            if answer.age is not None:
                frame.message, frame.hop = answer.age.message, answer.age.hop
            if answer.is_done:
                answers.popleft()
        state.is_answering = False
        if answers:
            self._line_up_answers(state)
        return frame

    def _go_on(self, state: QueuePairState, answer: ReadAnswer | AtomicAnswer | Early, waited: int) -> None:
        """What comes back is the same message still: its books go on where the request arrived."""
        age = answer.age
        if age is None or age.message is None:
            return
        hops = age.message.hops
        passage = self.port.begin(age.parts + waited, self.lanes[state.envelope.lane])
        if age.hop < len(hops):
            hops[age.hop] = passage
        else:
            hops.append(passage)

    def _line_up_answers(self, state: QueuePairState) -> None:
        state.is_answering = True
        lane = self.lanes[state.envelope.lane]
        (lane.reads if isinstance(state.answers[0], ReadAnswer) else lane.answers).append(state)
        self._waiting |= lane.bit

    def _make_data(self, lane: TransmitLane) -> Frame | None:
        now_ps, ready = self._engine.now_ps, lane.ready
        while ready:
            state = ready[0]
            requester = state.requester
            if not requester.can_send():
                ready.popleft().queued = False
                if requester.is_starved:
                    state.starved_ps = (now_ps, self.port.waits_of(lane))
                continue
            if state.rate is not None and state.rate.next_start_ps(now_ps) > now_ps:
                ready.popleft()
                self._pace(state)
                continue
            frame = requester.next_frame(now_ps)
            lane.pending_of = state
            if requester.can_send():
                ready.rotate(-1)
            else:  # as after a message's last frame: the wire need not ask again
                ready.popleft().queued = False
                if requester.is_starved:
                    state.starved_ps = (now_ps, self.port.waits_of(lane))
            if state.armed_ps != requester.deadline_ps:
                self._arm(state)
            return frame
        return None

    def _take(self, lane: TransmitLane, frame: Frame) -> Frame:
        """The frame starts now."""
        now_ps = self._engine.now_ps
        self.port.unblock(lane)
        if not (lane.ready or lane.answers or lane.reads or lane.notices):
            self._waiting &= ~lane.bit
        state, lane.pending, lane.pending_of = lane.pending_of, None, None
        if state is not None:
            if state.rate is not None:
                state.rate.on_bytes_sent(frame.wire_bytes, now_ps)
                state.rate.pace(frame.wire_bytes, now_ps)
            if state.requester.finished:
                self._finished(state)
        if frame.message is not None and frame.message.first_bit_ps < 0 and frame.opcode not in opcodes.ASKS:
            frame.message.first_bit_ps = now_ps
        return frame

    def _line_up(self, state: QueuePairState) -> None:
        lane = self.lanes[state.envelope.lane]
        lane.ready.append(state)
        self._waiting |= lane.bit
        self.port.kick()

    def _pace(self, state: QueuePairState) -> None:
        """Wait until its next frame may start, or its rate changes."""
        rate, now_ps = state.rate, self._engine.now_ps
        if rate is None:
            return
        start_ps, timer_ps = rate.next_start_ps(now_ps), rate.on_timer(now_ps)
        if state.pacer is None:
            state.pacer = Timer(self._engine, lambda: self._paced(state))
        state.pacer.start(start_ps if timer_ps is None else min(start_ps, timer_ps))

    def _paced(self, state: QueuePairState) -> None:
        now_ps = self._engine.now_ps
        if state.rate is not None and state.rate.next_start_ps(now_ps) > now_ps:
            self._pace(state)
        else:
            self._line_up(state)
