"""Sizes around the path MTU, for every operation of every transport: opcodes, padding, and what memory holds."""

from __future__ import annotations

from random import Random

import pytest

from emu import opcodes
from emu.frame import Frame, Message
from emu.transport.memory import MemoryTable
from emu.transport.receive_queue import ReceiveQueue
from emu.transport.unreliable import GRH_BYTES, UcResponder, UdResponder, UnreliableRequester
from emu.transport.wc import WcStatus
from emu.transport.work import WITH_IMMEDIATE, WRITES, RecvWqe, Scatter, SendWqe, WROpcode
from emu.verbs.posting import Destination
from tests.transport.machines import ALL, FRAMING, HERE, THERE, Machines, digest

MTUS = (256, 1024, 4096)
IMMEDIATE = 0xFFFF_FFFE  # an int of 32 bits would be negative
QKEY, SOURCE_QP = 0x11111111, 0x15
SEND, WRITE = "SEND", "RDMA Write"
# By operation: what First, Middle, Last and Only are called (IBTA vol. 1, table 38).
NAMES = {
    WROpcode.SEND: (SEND, ""),
    WROpcode.SEND_WITH_IMM: (SEND, " with Immediate"),
    WROpcode.SEND_WITH_INV: (SEND, " with Invalidate"),
    WROpcode.RDMA_WRITE: (WRITE, ""),
    WROpcode.RDMA_WRITE_WITH_IMM: (WRITE, " with Immediate"),
}


def sizes(mtu: int) -> list[int]:
    return [0, 1, 3, mtu - 1, mtu, mtu + 1, 2 * mtu, 2 * mtu + 1, 9001]


SIZES = [(mtu, size) for mtu in MTUS for size in sizes(mtu)]


def names(transport: str, opcode: WROpcode, packets: int) -> list[str]:
    kind, end = NAMES[opcode]
    if packets == 1:
        return [f"{transport} {kind} Only{end}"]
    return (
        [f"{transport} {kind} First"]
        + [f"{transport} {kind} Middle"] * (packets - 2)
        + [f"{transport} {kind} Last{end}"]
    )


def check_frames(frames: list[Frame], mtu: int, data: bytes) -> None:
    """Payload is cut to the MTU; in the bytes, padding is zero and fills the last word."""
    assert b"".join(bytes(frame.payload) for frame in frames) == data
    assert [len(frame.payload) for frame in frames[:-1]] == [mtu] * (len(frames) - 1)
    for frame in frames:
        wire = FRAMING.encode(frame)
        pad = -len(frame.payload) % 4
        assert wire[43] >> 4 & 3 == pad
        assert wire[42:-4].endswith(bytes(frame.payload) + bytes(pad))
        assert len(wire) == 42 + 12 + opcodes.EXTENSION_BYTES[frame.opcode] + len(frame.payload) + pad + 4


@pytest.mark.parametrize("opcode", NAMES)
@pytest.mark.parametrize(("mtu", "size"), SIZES)
def test_rc_sends_and_writes(mtu: int, size: int, opcode: WROpcode) -> None:
    machines = Machines(mtu=mtu)
    machines.receive(16_384)
    data, other = Random(size).randbytes(size), machines.memory.register(8, ALL)
    key = other.rkey if opcode is WROpcode.SEND_WITH_INV else IMMEDIATE
    before = bytes(machines.target.buffer)
    machines.post(opcode, data, offset=64, imm_data=key)
    frames = machines.frames()
    packets = max(1, -(-size // mtu))
    assert [opcodes.NAMES[frame.opcode] for frame in frames] == names("RC", opcode, packets)
    assert [frame.psn for frame in frames] == list(range(packets))
    assert [frame.ack_request for frame in frames] == [False] * (packets - 1) + [True]
    check_frames(frames, mtu, data)
    for frame in frames:
        for answer in machines.answers(FRAMING.decode(FRAMING.encode(frame))):
            machines.take(answer)
    assert [status for _, status in machines.done] == [WcStatus.SUCCESS]
    expected = before[:64] + data + before[64 + size :] if opcode in WRITES else before
    assert digest(machines.target.buffer) == digest(expected)
    if opcode is WROpcode.RDMA_WRITE:
        assert machines.received == []
        return
    (received,) = machines.received
    assert (received.byte_len, received.imm_data) == (size, key if opcode in WITH_IMMEDIATE else None)
    assert received.invalidated == (other.rkey if opcode is WROpcode.SEND_WITH_INV else None)
    assert (machines.memory.find(other.rkey, other.addr, 8, ALL) is None) == (opcode is WROpcode.SEND_WITH_INV)
    assert digest(machines.buffers[0]) == digest((b"" if opcode in WRITES else data).ljust(16_384, b"\0"))


@pytest.mark.parametrize(("mtu", "size"), SIZES)
def test_rc_reads(mtu: int, size: int) -> None:
    machines = Machines(mtu=mtu)
    machines.post(WROpcode.RDMA_READ, size=size, offset=64)
    (request,) = machines.frames()
    assert request.reth == (machines.target.addr + 64, machines.target.rkey, size)
    answers = machines.answers(request)
    packets = max(1, -(-size // mtu))
    place = ["Only"] if packets == 1 else ["First", *["Middle"] * (packets - 2), "Last"]
    assert [opcodes.NAMES[answer.opcode] for answer in answers] == [f"RC RDMA Read Response {each}" for each in place]
    assert [answer.psn for answer in answers] == list(range(packets))
    check_frames(answers, mtu, bytes(machines.target.buffer[64 : 64 + size]))
    assert all((answer.aeth is None) == ("Middle" in each) for answer, each in zip(answers, place, strict=True))
    for answer in answers:
        machines.take(FRAMING.decode(FRAMING.encode(answer)))
    assert [status for _, status in machines.done] == [WcStatus.SUCCESS]
    assert digest(machines.sinks[0]) == digest(machines.target.buffer[64 : 64 + size])


@pytest.mark.parametrize("opcode", [each for each in NAMES if each is not WROpcode.SEND_WITH_INV])
@pytest.mark.parametrize(("mtu", "size"), SIZES)
def test_uc_sends_and_writes(mtu: int, size: int, opcode: WROpcode) -> None:
    memory, queue, buffer = MemoryTable(), ReceiveQueue(1), bytearray(16_384)
    target, data = memory.register(16_384, ALL), Random(size).randbytes(size)
    queue.post(RecvWqe(3, Scatter([memoryview(buffer)])))
    envelope = FRAMING.envelope(HERE, THERE, source_qp=1, destination_qp=2)
    requester = UnreliableRequester(lambda _: envelope, opcodes.UC, mtu, 0xFFFFFF)
    wqe = SendWqe(Message(None, 0, size, 0), 7, data, target.addr, target.rkey, opcode=opcode, imm_data=IMMEDIATE)
    requester.post(wqe)
    frames = []
    while requester.can_send():
        assert requester.finished == []
        frames.append(requester.next_frame(0))
    assert requester.finished == [(wqe, WcStatus.SUCCESS)]
    packets = max(1, -(-size // mtu))
    assert [opcodes.NAMES[frame.opcode] for frame in frames] == names("UC", opcode, packets)
    assert [frame.psn for frame in frames] == [0xFFFFFF, *range(packets - 1)]
    assert not any(frame.ack_request for frame in frames)
    check_frames(frames, mtu, data)
    responder = UcResponder(memory, mtu, queue, 0xFFFFFF)
    for frame in frames:
        responder.on_request(FRAMING.decode(FRAMING.encode(frame)))
    assert responder.message_done
    holds = target.buffer if opcode in WRITES else buffer
    assert digest(holds) == digest(data.ljust(16_384, b"\0"))
    immediates = [(received.byte_len, received.imm_data) for received in responder.completions]
    takes = opcode is not WROpcode.RDMA_WRITE
    assert immediates == ([(size, IMMEDIATE if opcode in WITH_IMMEDIATE else None)] if takes else [])


@pytest.mark.parametrize("opcode", [WROpcode.SEND, WROpcode.SEND_WITH_IMM])
@pytest.mark.parametrize(("mtu", "size"), [each for each in SIZES if each[1] <= each[0]])
def test_datagrams(mtu: int, size: int, opcode: WROpcode) -> None:
    memory, queue, buffer = MemoryTable(), ReceiveQueue(1), bytearray(8192)
    data = Random(size).randbytes(size)
    queue.post(RecvWqe(3, Scatter([memoryview(buffer)])))
    envelope = FRAMING.envelope(HERE, THERE, source_qp=SOURCE_QP, destination_qp=2)
    requester = UnreliableRequester(lambda _: envelope, opcodes.UD, mtu, 5, SOURCE_QP)
    wqe = SendWqe(Message(None, 0, size, 0), 7, data, opcode=opcode, imm_data=IMMEDIATE)
    wqe.target = Destination(THERE, None, 2, QKEY)
    requester.post(wqe)
    frame = requester.next_frame(0)
    assert [opcodes.NAMES[frame.opcode], frame.psn] == [*names("UD", opcode, 1), 5]
    check_frames([frame], mtu, data)
    arrived = FRAMING.decode(FRAMING.encode(frame))
    responder = UdResponder(memory, queue, QKEY)
    responder.on_request(arrived)
    (received,) = responder.completions
    assert (received.byte_len, received.imm_data) == (
        GRH_BYTES + size,
        IMMEDIATE if opcode is WROpcode.SEND_WITH_IMM else None,
    )
    assert arrived.extension is not None
    assert arrived.extension[:2] == (QKEY, SOURCE_QP)
    assert digest(buffer[GRH_BYTES:]) == digest(data.ljust(8192 - GRH_BYTES, b"\0"))
