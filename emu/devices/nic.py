"""A NIC: queue pairs share one port; what they send is in devices/transmit.py, what comes in is taken here."""

from __future__ import annotations

from collections.abc import Callable

from emu import opcodes
from emu.addresses import Address
from emu.congestion.notification import NotificationPoint
from emu.devices.egress import Arbiter, wire_bytes_of
from emu.devices.nic_config import Congestion, NicTiming
from emu.devices.pauses import LinkPauses
from emu.devices.pull import PullPort
from emu.devices.queue_pair import QueuePairState
from emu.devices.queue_pairs import QueuePairs
from emu.devices.transmit import Transmit
from emu.engine import Engine
from emu.errors import ScenarioError
from emu.frame import Envelope, Frame, Message
from emu.parts import HOST, NIC, STALL
from emu.taps import Taps
from emu.transport.answer import AnyAnswer
from emu.transport.memory import MemoryTable
from emu.transport.requester import SendWqe
from emu.transport.wc import WcStatus


class Nic(QueuePairs):
    """One host port with its queue pairs and registered memory. Arriving frames are always taken in."""

    __slots__ = (
        "_congestion",
        "_taps",
        "address",
        "dropped",
        "memory",
        "name",
        "notices_taken",
        "notifier",
        "port",
        "received",
        "received_bytes",
    )

    def __init__(
        self,
        engine: Engine,
        address: Address,
        rate_bps: int,
        link: str,
        timing: NicTiming,
        taps: Taps,
        *,
        lanes: int = 1,
        arbiter: Arbiter | None = None,
        cost: Callable[[Frame], int] = wire_bytes_of,
        congestion: Congestion | None = None,
    ) -> None:
        super().__init__(engine, timing)
        self._taps = taps
        self._congestion = congestion
        self.name = address.name
        self.address = address
        self.memory = MemoryTable()
        self.received = 0
        self.received_bytes = 0
        self.dropped: dict[str, int] = {}
        self.notifier = NotificationPoint(congestion.min_notice_interval_ps) if congestion is not None else None
        self.notices_taken = 0  # CNPs that came in
        self._transmit = Transmit(engine, self._arm, self._finished, lanes=lanes, arbiter=arbiter, cost=cost)
        self.port = self._transmit.port = PullPort(engine, link, rate_bps, self._transmit, taps, self._transmit.lanes)

    @property
    def cnps(self) -> int:
        """Congestion notifications sent so far."""
        return self.notifier.sent if self.notifier is not None else 0

    def post(self, state: QueuePairState, wqe: SendWqe) -> None:
        """A work request was posted now; its frames may leave when the post leg has passed."""
        if state.rate is None and self._congestion is not None:
            state.rate = self._congestion.make_rate()
        if self.host is not None and state.memory is not None:
            self.host.post(state, wqe)
        else:
            self._engine.at(self._engine.now_ps + self.timing.post_ps, self._posted, (state, wqe))

    def start(self, state: QueuePairState, wqe: SendWqe, parts: int) -> None:
        """The work request's frames may leave from now on; where its age so far comes from: emu/parts.py."""
        if state.requester.failed:
            self._finish(state, [(wqe, WcStatus.WR_FLUSH_ERR)])
            return
        wqe.message.hops = [self.port.begin(parts, self._transmit.lanes[state.envelope.lane])]
        if state.parked is not None:
            state.parked.append(wqe)
            return
        state.requester.post(wqe)
        self._transmit.offer(state)

    def resume(self, state: QueuePairState, message: Message) -> None:
        """More bytes of a message are here; if the wire was idle for want of them, that is not the NIC's time."""
        state.requester.look_again()
        if state.requester.is_starved:
            return
        idle_ps = self._transmit.starved_ps(state)
        if idle_ps and message.steps is not None:
            message.hops[0].parts += (idle_ps << HOST) - (idle_ps << NIC)  # which its next frame's start adds
            message.steps[STALL] += idle_ps
        self._transmit.offer(state)

    def owe(self, state: QueuePairState, answer: AnyAnswer, fetched_ps: int = 0) -> None:
        """The answer may leave; what it brings took `fetched_ps` to come out of memory."""
        if not state.is_mute:
            self._transmit.owe(state, answer, (self.timing.ack_turnaround_ps << NIC) + (fetched_ps << HOST))

    def storm(self, priority: int, duration_ps: int) -> None:
        """Pause the peer's priority from now on, for so long, as a broken NIC does.

        Raises ScenarioError without PFC.
        """
        flow = self.port.flow
        if not isinstance(flow, LinkPauses):
            raise ScenarioError(f"{self.name} cannot storm with pauses: its link has no PFC (fabric.flow_control: pfc)")
        flow.storm(priority, duration_ps)

    def _posted(self, posted: tuple[QueuePairState, SendWqe]) -> None:
        state, wqe = posted
        self.start(state, wqe, (self._engine.now_ps - wqe.message.posted_ps) << NIC)

    def receive(self, frame: Frame) -> None:
        """A frame comes out of the receive pipeline; its last bit entered `receive_ps` ago."""
        self.received += 1
        self.received_bytes += frame.wire_bytes
        state = self.queue_pairs.get(frame.envelope.destination_qp)
        opcode = frame.opcode
        if frame.bad or state is None:
            self._drop("bad_crc" if frame.bad else "unknown_qp")
        elif opcode == opcodes.CNP:
            self._take_notice(state)
        elif opcode & opcodes.TRANSPORT_MASK != state.transport:
            self._drop("other_transport")
        elif opcode == opcodes.ACKNOWLEDGE:
            self._take_answer(state, state.requester.on_acknowledge(frame, self._engine.now_ps))
        elif state.holds_early:
            self._take_early(state, frame)
        elif opcode in opcodes.RESPONSES:
            self._take_response(state, frame)
        else:
            self._take_request(state, frame)

    def _take_early(self, state: QueuePairState, frame: Frame) -> None:
        """What may have to wait here for others, or others have waited for it."""
        is_response = frame.opcode in opcodes.RESPONSES
        take, next_held = (
            (self._take_response, state.next_response) if is_response else (self._take_request, state.next_request)
        )
        now_ps = frame.eligible_ps = self._engine.now_ps
        take(state, frame)
        while (held := next_held()) is not None:
            held.parts += now_ps - held.eligible_ps << NIC
            held.fecn = False  # the mark was seen to when it came
            take(state, held)

    def _take_request(self, state: QueuePairState, frame: Frame) -> None:
        engine, timing, responder = self._engine, self.timing, state.responder
        answer = responder.on_request(frame)
        host = self.host if state.memory is not None else None
        if answer is not None:
            engine.at(engine.now_ps + timing.ack_turnaround_ps, self._owe, (state, answer))
        notifier, headers = self.notifier, state.notice_envelope
        if frame.fecn and notifier is not None and headers is not None:
            answers = notifier.on_marked(frame.envelope.destination_qp, engine.now_ps)
            if answers:
                engine.at(engine.now_ps + timing.ack_turnaround_ps, self._notify, headers)
        if host is not None:
            host.land(responder.landed, frame, ends=responder.message_done)
        elif responder.message_done and frame.message is not None:
            self._arrived(frame.message, frame)
        if responder.completions:
            self._received(state, responder.completions)
            responder.completions = []
        if responder.failed:
            self._flush(state)

    def _take_response(self, state: QueuePairState, frame: Frame) -> None:
        done = state.requester.on_response(frame, self._engine.now_ps)
        wqe = state.requester.fetched
        ends = wqe is not None and wqe.message is frame.message
        if self.host is not None and state.memory is not None:
            self.host.land(state.requester.landed, frame, ends=ends)
        elif ends and wqe is not None:
            self._arrived(wqe.message, frame)
        self._take_answer(state, done)

    def _arrived(self, message: Message, frame: Frame) -> None:
        """The message's last frame is taken: its data is visible after the delivery leg."""
        if message.last_bit_ps >= 0:
            return  # a copy of an unreliable one: it is there already
        engine, timing = self._engine, self.timing
        message.last_bit_ps = engine.now_ps - timing.receive_ps
        message.parts = frame.parts + (timing.delivery_ps << NIC)
        engine.hold()  # a requester may see its CQE before the data can be seen here
        engine.at(engine.now_ps + timing.delivery_ps, self.deliver, message)

    def _notify(self, envelope: Envelope) -> None:
        """A congestion notification is ready to leave; it is no frame on its way before."""
        notice = Frame(envelope, opcodes.CNP, 0)
        notice.becn = True
        if not self._transmit.notify(notice) and self.notifier is not None:
            self.notifier.sent -= 1
            self.notifier.suppressed += 1

    def _take_notice(self, state: QueuePairState) -> None:
        """A CNP, whose BECN says that this queue pair's frames met congestion."""
        self.notices_taken += 1
        if state.rate is not None:
            state.rate.on_cnp(self._engine.now_ps)
            state.rate.on_timer(self._engine.now_ps)
            self._transmit.rate_changed(state)

    def deliver(self, message: Message) -> None:
        """The message's data is visible now; its parts are complete."""
        message.delivered_ps = self._engine.now_ps
        if self._taps.message_delivered:
            self._taps.message_delivered(message)
        self._engine.release()

    def _owe(self, owed: tuple[QueuePairState, AnyAnswer]) -> None:
        state, answer = owed
        if state.is_mute:
            return
        if self.host is not None and state.memory is not None:
            self.host.owe(state, answer)
        else:
            self.owe(state, answer)

    def _drop(self, reason: str) -> None:
        self.dropped[reason] = self.dropped.get(reason, 0) + 1
