"""The machines of every transport alone, without a NIC that sorts frames by opcode: each gets whatever was decoded."""

from __future__ import annotations

import random

from emu import opcodes
from emu.addresses import address_of
from emu.devices.credits import CreditLink, LinkCredits
from emu.devices.pauses import LinkPauses, PauseLink
from emu.devices.queue_pair import ReceiveSide
from emu.engine import Engine
from emu.frame import Buffer, ControlFrame, Frame, Message
from emu.linklayer.credits import CreditConfig
from emu.linklayer.pause import PauseConfig
from emu.transport.answer import AnyAnswer, ReadAnswer
from emu.transport.memory import MemoryTable
from emu.transport.place import SENDS, STARTS
from emu.transport.psn import PSN_MASK
from emu.transport.receive_queue import ReceiveQueue
from emu.transport.received import ResponderConfig
from emu.transport.requester import Requester, RequesterConfig, SendWqe
from emu.transport.responder import Responder
from emu.transport.selective import SelectiveRequester, SelectiveResponder
from emu.transport.unreliable import UcResponder, UdResponder, UnreliableRequester
from emu.transport.work import RecvWqe, Scatter, WROpcode
from tests.fuzz.aim import Aim
from tests.fuzz.corpus import ROCE
from tests.fuzz.store import SLOTS, Store

QKEY, QP = 0x11111111, 0x77
DEPTH, WINDOW, QUEUE = 4, 16, 8
VLS = 4
OPERATIONS = (WROpcode.RDMA_WRITE, WROpcode.SEND, WROpcode.RDMA_READ, WROpcode.ATOMIC_FETCH_AND_ADD)


class Beside:
    """The egress beside an ingress, which only counts."""

    def __init__(self) -> None:
        self.name = "beside"
        self.rate_bps = 10**11
        self.credit_frames = self.pause_frames = self.kicks = 0

    def kick(self) -> None:
        self.kicks += 1

    def recheck(self) -> None:
        self.kicks += 1

    def hand_over(self, frame: ControlFrame, delay_ps: int) -> None:
        raise AssertionError("nobody initialises this link")


class Machines:
    """Responders and requesters of every transport over one memory, and a link's two kinds of flow control."""

    def __init__(self, numbers: random.Random, mtu_bytes: int) -> None:
        self._numbers, self._mtu_bytes = numbers, mtu_bytes
        self.memory = MemoryTable()
        self.store = Store(self.memory, numbers)
        first_psn = numbers.choice((0, 5, PSN_MASK - 3))
        self._is_selective = numbers.random() < 0.5
        config = ResponderConfig(
            path_mtu_bytes=mtu_bytes,
            max_dest_rd_atomic=DEPTH,
            hold_packets=WINDOW if self._is_selective else 0,
            end_to_end_credits=True,
        )
        self.queues = [ReceiveQueue(QUEUE) for _ in range(3)]
        self._make_responder = SelectiveResponder if self._is_selective else Responder
        self.rc: Responder = self._make_responder(self.memory, config, self.queues[0], first_psn)
        self.uc = UcResponder(self.memory, mtu_bytes, self.queues[1], first_psn)
        self.ud = UdResponder(self.memory, self.queues[2], QKEY)
        self.responders: tuple[ReceiveSide, ...] = (self.rc, self.uc, self.ud)
        address = address_of("h0", 0)
        self.envelope = ROCE.envelope(address_of("h1", 1), address, destination_qp=QP, source_qp=1)
        self.requester = self._requester(first_psn)
        self.unreliable = UnreliableRequester(lambda _: self.envelope, opcodes.UC, mtu_bytes, first_psn)
        self.engine = Engine()
        pause = PauseConfig(rate_bps=10**11, guard_ps=10**6)
        self.pauses = LinkPauses(self.engine, 0, Beside(), PauseLink(config=pause, overhead_bytes=20), address.mac)
        self.credits = LinkCredits(self.engine, 0, Beside(), _credit_link(), address.mac)
        self.now_ps = 0
        self.naks = 0

    def _requester(self, first_psn: int) -> Requester:
        config = RequesterConfig(
            path_mtu_bytes=self._mtu_bytes,
            window_packets=WINDOW,
            ack_every_packets=4,
            ack_timeout_code=10,
            retry_cnt=7,
            max_rd_atomic=DEPTH,
            selective=self._is_selective,
            end_to_end_credits=self._numbers.random() < 0.5,
        )
        return (SelectiveRequester if self._is_selective else Requester)(self.envelope, config, first_psn)

    def receive(self) -> RecvWqe:
        """A place for a message."""
        return RecvWqe(0, self.store.sink(self.store.inbox, self._numbers.randrange(SLOTS)))

    def aim(self) -> Aim:
        """All that is to be known of them."""
        requester = self.requester
        return Aim(
            self.envelope,
            self._numbers.choice((opcodes.RC, opcodes.RC, opcodes.UC, opcodes.UD)),
            self._mtu_bytes,
            QKEY,
            self.store.regions,
            lambda: self._numbers.choice((self.rc._expected, self.uc._expected)),
            lambda: (requester._acked, requester._highest),
            lambda: amid(self.rc),
        )

    def take(self, frame: Frame) -> None:
        """One frame to all of them. Everything that may not be is an AssertionError."""
        self.now_ps += 1000
        if isinstance(frame, ControlFrame):
            self._hear(frame)
            return
        for queue in self.queues:
            while len(queue) < QUEUE // 2:
                queue.post(self.receive())
        before, opcode = self.store.look(), frame.opcode
        for responder in self.responders:
            self._check_answer(responder.on_request(frame), frame)
            assert len(responder.completions) <= 2
            responder.completions = []
        self.store.check(opcode, before)
        self._take_held()
        self._refresh()
        before = self.store.look()
        for requester in (self.requester, self.unreliable):
            done = requester.on_acknowledge(frame, self.now_ps) + requester.on_response(frame, self.now_ps)
            while isinstance(requester, SelectiveRequester) and (held := requester.next_held()) is not None:
                done += requester.on_response(held, self.now_ps)
            assert len(done) <= QUEUE
        if opcode not in opcodes.RESPONSES and not frame.payload:
            self.store.check(None, before)
        self._drain()

    def _take_held(self) -> None:
        """What came early and has its turn now."""
        while isinstance(self.rc, SelectiveResponder) and (frame := self.rc.next_held()) is not None:
            before = self.store.look()
            self._check_answer(self.rc.on_request(frame), frame)
            self.rc.completions = []
            self.store.check(frame.opcode, before)
        assert not isinstance(self.rc, SelectiveResponder) or len(self.rc._held) <= WINDOW

    def _check_answer(self, answer: AnyAnswer | None, frame: Frame) -> None:
        if isinstance(answer, tuple) and answer[1] >= 0x20:
            self.naks += 1
        if isinstance(answer, ReadAnswer):
            most = self.store.readable.length // self._mtu_bytes + 1
            assert answer.packets <= most, "what may not be read would be read"
            if self._numbers.random() < 0.8:  # the others are never sent
                sent = b"".join(bytes(answer.next_frame(self.envelope).payload) for _ in range(answer.packets))
                assert answer.is_done
                assert len(sent) == answer.length, "another length than asked for came back"
                assert sent in bytes(self.store.readable.buffer), "what may not be read was read"
        assert max(len(self.rc._owed), len(self.rc._repeats)) <= DEPTH

    def _refresh(self) -> None:
        """Machines that have failed take no part any more: new ones take their places, mostly where they were."""
        if self.rc.failed:
            config, queue = self.rc._config, self.queues[0]
            assert len(self.rc.flush()) <= QUEUE + 1
            self.rc = self._make_responder(self.memory, config, queue, self.rc._expected)
            self.responders = (self.rc, self.uc, self.ud)
        if self.requester.failed:
            assert not self.requester.can_send()
            self.requester = self._requester(self.requester._next & PSN_MASK)

    def _drain(self) -> None:
        """What the requesters send: no more than their windows, and more work where there is room."""
        requester, sent = self.requester, 0
        while requester.can_send():
            requester.next_frame(self.now_ps)
            sent += 1
            assert sent <= WINDOW, "more frames than the window has"
        assert requester.failed or requester._acked == requester._highest or requester.deadline_ps > 0, "no timer runs"
        if 0 < requester.deadline_ps <= self.now_ps or self._numbers.random() < 0.02:
            requester.on_deadline(max(self.now_ps, requester.deadline_ps))
        while len(requester._wqes) < QUEUE // 2 and not requester.failed:
            requester.post(self._wqe(self._numbers.choice(OPERATIONS)))
        while self.unreliable.can_send():
            self.unreliable.next_frame(self.now_ps)
        self.unreliable.finished.clear()
        self.unreliable.post(self._wqe(WROpcode.SEND))

    def _wqe(self, opcode: WROpcode) -> SendWqe:
        numbers = self._numbers
        size = numbers.choice((0, 1, 8, self._mtu_bytes, 600))
        data: Buffer = self.store.source.slice(self.store.source.addr, size)
        sink = Scatter(())
        if opcode in (WROpcode.RDMA_READ, WROpcode.ATOMIC_FETCH_AND_ADD):
            length, data = (8 if opcode is WROpcode.ATOMIC_FETCH_AND_ADD else size), b""
            sink = self.store.sink(self.store.fetched, numbers.randrange(SLOTS), length)
        return SendWqe(Message(None, 0, size, 0), 0, data, 0x1000, 5, opcode=opcode, sink=sink)

    def _hear(self, frame: ControlFrame) -> None:
        for ingress in (self.pauses, self.credits):
            ingress.on_control(frame.control)
            ingress.on_stranger(frame.control)
            ingress.on_counts(frame.control)
        self.engine.run(self.engine.now_ps + 10**6)
        assert len(self.engine.queue) <= 1000


def amid(responder: ReceiveSide) -> tuple[int, int]:
    """What a responder has begun and not ended, as Aim has it."""
    if isinstance(responder, Responder):
        if responder._receive is not None:
            return SENDS, 0
        return (STARTS if responder._region is not None else 0), responder._left_bytes
    if isinstance(responder, UcResponder):
        return responder._sending, responder._left_bytes
    return 0, 0


def _credit_link() -> CreditLink:
    return CreditLink(
        config=CreditConfig(capacity_blocks=1024, threshold_blocks=64, mtu_blocks=20),
        vls=VLS,
        framing_overhead_bytes=8,
        refresh_ps=10**6,
        fcp_wire_bytes=14,
    )
