"""Unreliable connections and datagrams: what a loss costs, what is dropped, and that nothing is ever answered."""

from __future__ import annotations

import pytest

from emu import opcodes
from emu.frame import Frame, Message
from emu.transport.memory import MemoryTable
from emu.transport.receive_queue import ReceiveQueue
from emu.transport.unreliable import GRH_BYTES, UcResponder, UdResponder, UnreliableRequester
from emu.transport.wc import WcStatus
from emu.transport.work import RecvWqe, Scatter, SendWqe, WROpcode
from emu.verbs.posting import Destination
from tests.transport.machines import ALL, FRAMING, HERE, NO_CREDIT, THERE

MTU = 256
SEND, WRITE, WRITE_IMM = WROpcode.SEND, WROpcode.RDMA_WRITE, WROpcode.RDMA_WRITE_WITH_IMM
QKEY = 0x1234
ENVELOPE = FRAMING.envelope(HERE, THERE, source_qp=1, destination_qp=2)


class Peers:
    """A UC requester and its responder."""

    def __init__(self, receives: int = 8, receive_bytes: int = 1000) -> None:
        self.memory, self.queue = MemoryTable(), ReceiveQueue(64)
        self.target = self.memory.register(4096, ALL)
        self.buffers = [bytearray(receive_bytes) for _ in range(receives)]
        for number, buffer in enumerate(self.buffers):
            self.queue.post(RecvWqe(number, Scatter([memoryview(buffer)])))
        self.requester = UnreliableRequester(lambda _: ENVELOPE, opcodes.UC, MTU)
        self.responder = UcResponder(self.memory, MTU, self.queue)
        self.whole = 0

    def frames(self, opcode: WROpcode, data: bytes, offset: int = 0, rkey: int | None = None) -> list[Frame]:
        key = self.target.rkey if rkey is None else rkey
        message = Message(None, 0, len(data), 0)
        self.requester.post(SendWqe(message, 0, data, self.target.addr + offset, key, opcode=opcode, imm_data=9))
        out = []
        while self.requester.can_send():
            out.append(self.requester.next_frame(0))
        return out

    def deliver(self, frames: list[Frame]) -> None:
        for frame in frames:
            self.responder.on_request(frame)
            self.whole += self.responder.message_done

    def received(self) -> list[tuple[int, int]]:
        """Which receives were used, and for how many bytes."""
        return [(each.wqe.wr_id, each.byte_len) for each in self.responder.completions]


@pytest.mark.parametrize("lost", [0, 1, 2])
@pytest.mark.parametrize("opcode", [SEND, WRITE, WRITE_IMM])
def test_a_gap_drops_its_message_and_the_next_one_is_taken(opcode: WROpcode, lost: int) -> None:
    peers = Peers()
    frames = peers.frames(opcode, b"\xee" * 700, offset=2000)
    peers.deliver(frames[:lost] + frames[lost + 1 :])
    assert (peers.whole, peers.received()) == (0, [])
    peers.deliver(peers.frames(opcode, b"\x55" * 600, offset=0))
    assert peers.whole == 1
    assert peers.received() == ([] if opcode is WRITE else [(0, 600)])  # the receive that the lost message had
    holds = peers.buffers[0] if opcode is SEND else peers.target.buffer
    assert holds[:600] == b"\x55" * 600


def test_a_lost_last_packet_and_a_new_first_one_cost_one_message() -> None:
    peers = Peers()
    peers.deliver(peers.frames(SEND, bytes(700))[:2])
    peers.deliver(peers.frames(WRITE, b"\x55" * 700))
    peers.deliver(peers.frames(SEND, b"\x66" * 10))
    assert peers.whole == 2
    assert peers.received() == [(0, 10)]


def test_whole_messages_may_be_missing() -> None:
    peers = Peers()
    for number in range(6):
        frames = peers.frames(SEND, bytes([number]) * 300)
        if number % 2:
            peers.deliver(frames)
    assert [bytes(buffer[:1]) for buffer in peers.buffers[:3]] == [b"\1", b"\3", b"\5"]


def test_a_repeated_or_late_middle_drops_the_message() -> None:
    peers = Peers()
    first, middle, last = peers.frames(WRITE, b"\xee" * 700)
    peers.deliver([first, middle, middle, last])
    first, middle, last = peers.frames(SEND, b"\xee" * 700)
    peers.deliver([first, last, middle])
    assert (peers.whole, peers.received()) == (0, [])


@pytest.mark.parametrize(("offset", "key_change"), [(0, 1), (4000, 0), (-1, 0)])
def test_a_write_that_may_not_be_is_dropped(offset: int, key_change: int) -> None:
    peers = Peers()
    peers.deliver(peers.frames(WRITE, b"\xee" * 600, offset, peers.target.rkey ^ key_change))
    assert not any(peers.target.buffer)
    assert (peers.whole, peers.responder.failed) == (0, False)
    peers.deliver(peers.frames(WRITE, b"\x55"))
    assert peers.whole == 1


def test_without_a_receive_or_with_one_too_small_a_message_is_dropped() -> None:
    none, small = Peers(receives=0), Peers(receive_bytes=500)
    for peers in (none, small):
        peers.deliver(peers.frames(SEND, b"\xee" * 501))
        assert (peers.whole, peers.received(), peers.responder.failed) == (0, [], False)
    none.deliver(none.frames(WRITE_IMM, b"\xee" * 10))
    assert (none.whole, none.received()) == (0, [])
    small.deliver(small.frames(SEND, b"\x55" * 500))
    assert small.received() == [(0, 500)]


def test_what_is_no_request_of_this_transport_is_ignored() -> None:
    peers = Peers()
    for opcode in range(256):
        if opcode >> 5 != 1:
            peers.deliver([Frame(ENVELOPE, opcode, 0, b"\xee" * MTU, reth=(peers.target.addr, peers.target.rkey, MTU))])
    assert (peers.whole, peers.received()) == (0, [])
    assert not any(peers.target.buffer)


def test_flushing_gives_back_the_receive_of_a_message_that_has_begun() -> None:
    peers = Peers(receives=3)
    peers.deliver(peers.frames(SEND, bytes(700))[:1])
    flushed = peers.responder.flush()
    assert [(each.wqe.wr_id, each.status) for each in flushed] == [(n, WcStatus.WR_FLUSH_ERR) for n in range(3)]
    assert peers.responder.flush() == []


def test_answers_are_ghosts_and_nothing_is_waited_for() -> None:
    peers = Peers()
    frames = peers.frames(SEND, bytes(700))
    ack = Frame(ENVELOPE, opcodes.UC | opcodes.ACKNOWLEDGE, 2, aeth=(NO_CREDIT, 1))
    requester = peers.requester
    assert requester.on_acknowledge(ack, 0) == requester.on_response(ack, 0) == requester.on_deadline(0) == []
    assert (requester.deadline_ps, len(requester.finished), len(frames)) == (-1, 1, 3)


class Datagrams:
    """A UD queue pair that receives, with receives of so many bytes."""

    def __init__(self, *receives: int) -> None:
        self.queue = ReceiveQueue(64)
        self.buffers = [bytearray(size) for size in receives]
        for number, buffer in enumerate(self.buffers):
            self.queue.post(RecvWqe(number, Scatter([memoryview(buffer)])))
        self.responder = UdResponder(MemoryTable(), self.queue, QKEY)

    def deliver(self, data: bytes, qkey: int = QKEY) -> None:
        requester = UnreliableRequester(lambda _: ENVELOPE, opcodes.UD, MTU, 0, 0x99)
        wqe = SendWqe(Message(None, 0, len(data), 0), 0, data, opcode=SEND)
        wqe.target = Destination(THERE, None, 2, qkey)
        requester.post(wqe)
        self.responder.on_request(requester.next_frame(0))


def test_a_datagram_needs_room_for_40_bytes_more() -> None:
    """One that is too small is dropped and its receive stays; the next that fits takes it."""
    datagrams = Datagrams(49, 50)
    datagrams.deliver(b"\xee" * 10)
    assert datagrams.responder.completions == []
    datagrams.deliver(b"\x55" * 9)
    datagrams.deliver(b"\x66" * 10)
    assert [each.byte_len for each in datagrams.responder.completions] == [49, 50]
    assert datagrams.buffers[0][GRH_BYTES:] == b"\x55" * 9
    datagrams.deliver(b"none is left")
    assert len(datagrams.responder.completions) == 2


def test_a_datagram_of_another_key_is_dropped() -> None:
    datagrams = Datagrams(100)
    datagrams.deliver(b"\xee", QKEY ^ 1)
    assert (datagrams.responder.completions, len(datagrams.queue)) == ([], 1)
