"""A NIC: queue pairs share one port; the port pulls, acknowledgements first, then the queue pairs in turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from emu import opcodes
from emu.addresses import Address
from emu.devices.pull import PullPort
from emu.engine import Engine, Timer
from emu.frame import Envelope, Frame, Message
from emu.parts import NIC
from emu.taps import Taps
from emu.transport.memory import MemoryTable
from emu.transport.requester import Completion, Requester, RequesterConfig, SendWqe
from emu.transport.responder import Answer, Responder, acknowledge, merge
from emu.transport.wc import WcStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class NicTiming:
    """The legs that a message spends in NICs, in picoseconds."""

    post_ps: int  # from posting a work request to its first bit being ready to leave
    receive_ps: int  # from a frame's last bit in to the transport acting on it
    ack_turnaround_ps: int  # from there to the acknowledgement being ready to leave
    delivery_ps: int  # from there to the data being visible in memory
    cqe_ps: int  # from an acknowledgement taken to the CQE being seen


class QueuePairState:
    """What a NIC holds of one connected queue pair."""

    __slots__ = ("answer", "armed_ps", "complete", "envelope", "queued", "requester", "responder", "timer")

    def __init__(
        self,
        envelope: Envelope,
        requester: Requester,
        responder: Responder,
        complete: Callable[[Completion], object],
    ) -> None:
        self.envelope = envelope
        self.requester = requester
        self.responder = responder
        self.complete = complete
        self.answer: Answer | None = None  # owed and ready to leave; a newer one is merged into it
        self.queued = False  # whether it waits for its turn to send
        self.armed_ps = -1
        self.timer: Timer | None = None


class Nic:
    """One host port with its queue pairs and registered memory. Arriving frames are always taken in."""

    __slots__ = (
        "_answers",
        "_engine",
        "_next_qp",
        "_ready",
        "_taps",
        "address",
        "dropped",
        "memory",
        "name",
        "port",
        "queue_pairs",
        "received",
        "received_bytes",
        "timing",
    )

    def __init__(
        self, engine: Engine, address: Address, rate_bps: int, link: str, timing: NicTiming, taps: Taps
    ) -> None:
        self._engine = engine
        self._taps = taps
        self._ready: deque[QueuePairState] = deque()
        self._answers: deque[QueuePairState] = deque()
        self._next_qp = 0x11  # 0 and 1 are management, a few more are left free as real NICs do
        self.name = address.name
        self.address = address
        self.timing = timing
        self.memory = MemoryTable()
        self.queue_pairs: dict[int, QueuePairState] = {}
        self.received = 0
        self.received_bytes = 0
        self.dropped: dict[str, int] = {}
        self.port = PullPort(engine, link, rate_bps, self, taps)

    def allocate_qp(self) -> int:
        """A queue pair number not used before."""
        number = self._next_qp
        self._next_qp += 1
        return number

    def connect(
        self,
        qp_num: int,
        envelope: Envelope,
        config: RequesterConfig,
        complete: Callable[[Completion], object],
    ) -> QueuePairState:
        """Make queue pair `qp_num` ready to receive and to send; `complete` gets each finished work request."""
        state = QueuePairState(
            envelope, Requester(envelope, config), Responder(self.memory, config.path_mtu_bytes), complete
        )
        state.timer = Timer(self._engine, lambda: self._timed_out(state))
        self.queue_pairs[qp_num] = state
        return state

    def post(self, state: QueuePairState, wqe: SendWqe) -> None:
        """A work request was posted now; its frames may leave when the post leg has passed."""
        self._engine.at(self._engine.now_ps + self.timing.post_ps, self._posted, (state, wqe))

    def _posted(self, posted: tuple[QueuePairState, SendWqe]) -> None:
        state, wqe = posted
        if state.requester.failed:
            self._finish(state, [(wqe, WcStatus.WR_FLUSH_ERR)])
            return
        post_ps = self._engine.now_ps - wqe.message.posted_ps
        wqe.message.hops = [self.port.begin(post_ps << NIC)]
        state.requester.post(wqe)
        self._offer(state)

    def pop(self) -> Frame | None:
        """The port's wire is free: an acknowledgement if one is owed, else the next queue pair's next frame."""
        if self._answers:
            state = self._answers.popleft()
            answer, state.answer = state.answer, None
            return acknowledge(state.envelope, answer) if answer else None
        now_ps = self._engine.now_ps
        ready = self._ready
        while ready:
            state = ready[0]
            requester = state.requester
            if not requester.can_send():
                ready.popleft().queued = False
                continue
            frame = requester.next_frame(now_ps)
            ready.rotate(-1)
            if state.armed_ps != requester.deadline_ps:
                self._arm(state)
            if frame.message is not None and frame.message.first_bit_ps < 0:
                frame.message.first_bit_ps = now_ps
            return frame
        return None

    def waiting(self) -> bool:
        """Whether the port should ask again when its wire is free."""
        return bool(self._answers or self._ready)

    def receive(self, frame: Frame) -> None:
        """A frame comes out of the receive pipeline; its last bit entered `receive_ps` ago."""
        self.received += 1
        self.received_bytes += frame.wire_bytes
        state = self.queue_pairs.get(frame.envelope.destination_qp)
        if frame.bad or state is None:
            self._drop("bad_crc" if frame.bad else "unknown_qp")
        elif frame.opcode == opcodes.ACKNOWLEDGE:
            self._take_answer(state, frame)
        else:
            self._take_request(state, frame)

    def _take_request(self, state: QueuePairState, frame: Frame) -> None:
        engine, timing = self._engine, self.timing
        answer = state.responder.on_request(frame)
        if answer is not None:
            engine.at(engine.now_ps + timing.ack_turnaround_ps, self._owe, (state, answer))
        message = frame.message
        if state.responder.message_done and message is not None:
            message.last_bit_ps = engine.now_ps - timing.receive_ps
            message.parts = frame.parts + (timing.delivery_ps << NIC)
            engine.hold()  # a requester may see its CQE before the data can be seen here
            engine.at(engine.now_ps + timing.delivery_ps, self._delivered, message)

    def _delivered(self, message: Message) -> None:
        message.delivered_ps = self._engine.now_ps
        if self._taps.message_delivered:
            self._taps.message_delivered(message)
        self._engine.release()

    def _owe(self, owed: tuple[QueuePairState, Answer]) -> None:
        state, answer = owed
        if state.answer is None:
            self._answers.append(state)
            state.answer = answer
        else:
            state.answer = merge(state.answer, answer)
        self.port.kick()

    def _take_answer(self, state: QueuePairState, frame: Frame) -> None:
        done = state.requester.on_acknowledge(frame, self._engine.now_ps)
        if state.armed_ps != state.requester.deadline_ps:
            self._arm(state)
        if done:
            self._finish(state, done)
        self._offer(state)

    def _timed_out(self, state: QueuePairState) -> None:
        self._finish(state, state.requester.on_deadline(self._engine.now_ps))
        self._arm(state)
        self._offer(state)

    def _finish(self, state: QueuePairState, done: list[Completion]) -> None:
        when_ps = self._engine.now_ps + self.timing.cqe_ps
        for completion in done:
            self._engine.at(when_ps, state.complete, completion)

    def _offer(self, state: QueuePairState) -> None:
        if not state.queued and state.requester.can_send():
            state.queued = True
            self._ready.append(state)
            self.port.kick()

    def _arm(self, state: QueuePairState) -> None:
        deadline_ps = state.armed_ps = state.requester.deadline_ps
        if state.timer is None:
            return
        if deadline_ps < 0:
            state.timer.stop()
        else:
            state.timer.start(deadline_ps)

    def _drop(self, reason: str) -> None:
        self.dropped[reason] = self.dropped.get(reason, 0) + 1
