"""Our responder against what Linux 6.1's rdma_rxe driver answered: frame by frame, from BTH to padding."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from emu import opcodes
from emu.frame import Frame
from emu.transport.answer import AnyAnswer, acknowledge
from emu.transport.place import HAS_IMMEDIATE, SENDS
from emu.transport.receive_queue import ReceiveQueue
from emu.transport.received import Received, ResponderConfig
from emu.transport.responder import Responder
from emu.transport.unreliable import GRH_BYTES, UcResponder, UdResponder
from emu.transport.wc import WcStatus
from emu.transport.work import FETCHES, WRITES, RecvWqe, Scatter
from tests.transport.captured import MTU_BYTES, Direction, KnownMemory, Rooms, Seen, Work, directions, encoded, fetched
from tests.transport.cases import (
    ALL_CASES,
    CAPTURES,
    CASES,
    DIFFERENCES,
    Case,
    as_ours,
    id_of,
    load,
    transport_of,
    work_of,
)
from tests.tree import ROOT

IP_OFFSET, IP_BYTES = 14, 20


def test_every_capture_has_a_case() -> None:
    assert sorted(path.stem.partition("__")[2] for path in CAPTURES.glob("rxe61__*.pcap")) == sorted(CASES)
    for name, cases in CASES.items():
        assert [case.direction for case in cases] == list(range(len(directions(CAPTURES / f"rxe61__{name}.pcap"))))


def test_the_captures_are_the_shared_ones(shared_data: Path) -> None:
    for path in (shared_data / "captures").glob("rxe61__*.pcap"):
        assert (CAPTURES / path.name).read_bytes() == path.read_bytes()


def test_the_differences_are_documented() -> None:
    text = (ROOT / "docs" / "transport.md").read_text(encoding="utf-8")
    table = text.partition("| what | capture | Linux 6.1 | here |\n")[2].partition("\n\n")[0]
    rows = [re.split(r" *\| *", line.strip("| ")) for line in table.splitlines()[1:]]
    assert [tuple(cell.replace("`", "") for cell in row) for row in rows] == list(DIFFERENCES)


class Receives:
    """A responder's receives, and what each of them holds in the end."""

    def __init__(self, case: Case) -> None:
        self.queue = ReceiveQueue(64)
        self.buffers: list[bytearray] = []
        self._size = case.receive_bytes

    def post(self) -> None:
        for _ in range(32):
            self.buffers.append(bytearray(self._size))
            self.queue.post(RecvWqe(len(self.buffers) - 1, Scatter([memoryview(self.buffers[-1])])))

    def of(self, received: Received) -> bytes:
        return bytes(self.buffers[received.wqe.wr_id][: received.byte_len])


def rooms_of(case: Case, direction: Direction, memory: KnownMemory) -> Rooms:
    """The memory that the messages reach into, as it was when the first of them came."""
    if not case.is_registered:
        return Rooms(memory, [])
    rooms = Rooms(memory, direction.works, case.ends_at)
    for work in reversed(direction.works):
        if work.opcode in FETCHES:
            rooms.put(work, fetched(direction, work))
    return rooms


def frames_of(answer: AnyAnswer | None, direction: Direction) -> Iterator[Frame]:
    if answer is None:
        return
    envelope = direction.answers[0].frame.envelope
    if isinstance(answer, tuple):
        yield acknowledge(envelope, answer)
    else:
        yield answer.next_frame(envelope)
        while not answer.is_done:
            yield answer.next_frame(envelope)


def check_arrived(seen: Seen, work: Work, completions: list[Received], receives: Receives, rooms: Rooms) -> None:
    """A message is whole: its bytes are where they belong, and its receive says what it should."""
    if work.opcode in WRITES and work.size_bytes:
        assert rooms.get(work) == work.payload
    if seen.place & (SENDS | HAS_IMMEDIATE):
        (received,) = completions
        assert (received.status, received.solicited) == (WcStatus.SUCCESS, work.solicited)
        assert received.imm_data == (work.imm_data if "IMM" in work.opcode.name else None)
        assert received.is_write == (work.opcode in WRITES)
        if not received.is_write:
            is_datagram = received.frame is not None
            assert receives.of(received)[GRH_BYTES if is_datagram else 0 :] == work.payload
        assert received.byte_len == work.size_bytes + (GRH_BYTES if received.frame is not None else 0)
    else:
        assert completions == []


@pytest.mark.parametrize(("name", "case"), [each for each in ALL_CASES if each[1].is_answered], ids=id_of)
def test_our_responder_answers_as_the_driver_did(name: str, case: Case) -> None:
    direction = load(name, case)
    memory, receives = KnownMemory(), Receives(case)
    rooms = rooms_of(case, direction, memory)
    responder = responder_of(direction, case, memory, receives.queue)
    answers: list[bytes] = []
    whole = 0
    for seen in direction.requests:
        work = work_of(direction, seen)
        if seen.number >= case.receive_from and not receives.buffers:
            receives.post()
        if case.changes and work.opcode in FETCHES:
            rooms.put(work, fetched(direction, work))
        answer = responder.on_request(seen.frame)
        answers += (encoded(frame) for frame in frames_of(answer, direction))
        if responder.message_done:
            check_arrived(seen, work, responder.completions, receives, rooms)
            responder.completions.clear()
            whole += 1
    assert answers == [as_ours(name, seen.wire) for seen in direction.answers]
    assert not case.statuses or rooms.is_untouched()
    assert whole == (0 if case.statuses else sum(work.opcode not in FETCHES for work in direction.works))


def responder_of(
    direction: Direction, case: Case, memory: KnownMemory, queue: ReceiveQueue
) -> Responder | UcResponder | UdResponder:
    transport = transport_of(direction)
    if transport == opcodes.UC:
        return UcResponder(memory, MTU_BYTES, queue, direction.first_psn)
    if transport == opcodes.UD:
        extension = direction.requests[0].frame.extension
        assert extension is not None
        return UdResponder(memory, queue, extension[0])
    config = ResponderConfig(path_mtu_bytes=MTU_BYTES, min_rnr_timer=case.min_rnr_timer)
    return Responder(memory, config, queue, direction.first_psn)


def test_a_datagram_s_first_bytes_are_its_ip_header() -> None:
    direction, case = load("ud_send", CASES["ud_send"][0]), CASES["ud_send"][0]
    receives = Receives(case)
    receives.post()
    responder = responder_of(direction, case, KnownMemory(), receives.queue)
    for seen in direction.requests:
        responder.on_request(seen.frame)
        data = seen.frame.data
        assert data is not None
        head = receives.of(responder.completions[-1])[:GRH_BYTES]
        assert head == bytes(GRH_BYTES - IP_BYTES) + data[IP_OFFSET : IP_OFFSET + IP_BYTES]
