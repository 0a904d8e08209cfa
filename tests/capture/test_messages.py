"""Messages told from scripts of packets: PSNs that wrap, gaps, what is sent again, answers, READs asked for anew."""

from __future__ import annotations

import pytest

from emu.capture.messages import HOLE_LIMIT, PENDING_LIMIT, UNSEEN_PACKETS, Packet, RequestStream, Room, SeenMessage
from emu.opcodes import READ_REQUEST, SEND_ONLY, WRITE_FIRST, WRITE_LAST, WRITE_MIDDLE, WRITE_ONLY

MTU = 1024
KINDS = {"F": WRITE_FIRST, "M": WRITE_MIDDLE, "L": WRITE_LAST, "O": WRITE_ONLY, "S": SEND_ONLY}


class Script:
    """A stream, and every message it told of."""

    def __init__(self, start_psn: int = 0, room: Room | None = None) -> None:
        self.begun: list[SeenMessage] = []
        self.settled: list[SeenMessage] = []
        self.stream = RequestStream(self.begun.append, self.settled.append, room)
        self._start_psn, self._number = start_psn, 0

    def send(self, text: str, *, answered: bool = True) -> Script:
        """`F0 M1 L2`: a kind and a PSN (from the start) each; a packet a microsecond."""
        for word in text.split():
            self._number += 1
            psn = (self._start_psn + int(word[1:])) % 2**24
            packet = Packet(self._number, self._number * 1000, KINDS[word[0]], psn, MTU, (0, 0, 5000))
            self.stream.on_packet(packet, answered=answered)
        return self

    def answer(self, psn: int, *, inclusive: bool = True) -> Script:
        self._number += 1
        psn = (self._start_psn + psn) % 2**24
        self.stream.on_answer(psn, self._number, self._number * 1000, inclusive=inclusive)
        return self


@pytest.mark.parametrize("start_psn", [0, 2**24 - 2, 2**23 - 1])
def test_a_message_from_first_to_last_and_its_answer(start_psn: int) -> None:
    script = Script(start_psn).send("F0 M1 L2 O3").answer(2)
    first, second = script.begun
    assert (first.operation, first.first_frame, first.last_frame) == ("RC RDMA Write", 1, 3)
    assert (first.first_psn, first.last_psn) == (start_psn, (start_psn + 2) % 2**24)
    assert (first.last_ns - first.first_ns, first.payload_bytes, first.dma_bytes) == (2000, 3 * MTU, 5000)
    assert (first.complete, first.answered_frame, first.answered_ns) == (True, 5, 5000)
    assert second.answered_ns is None
    assert script.settled == [first]
    script.answer(3)
    assert script.settled == [first, second]
    assert second.answered_frame == 6


def test_one_answer_is_for_all_before_it_and_a_nak_for_those_before_its_psn() -> None:
    script = Script().send("O0 O1 O2 O3").answer(2, inclusive=False)
    assert [message.first_psn for message in script.settled] == [0, 1]
    script.answer(1).answer(9)
    assert [message.first_psn for message in script.settled] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("packets", "again", "complete", "missing"),
    [
        ("F0 M1 L2 M1 L2", 2, [True], 0),  # lost behind the tap
        ("F0 L2 M1 L2", 1, [True], 0),  # lost before it: M1 fills the gap, L2 comes again
        ("F0 M1 L2 O3 F0 M1 L2 O3", 4, [True, True], 0),
        ("M1 L2 F0 M1 L2", 2, [True], 0),  # the very first one lost
        ("O0 M2 L3 F1 M2 L3", 2, [True, True], 0),
        ("O0 L3 F1 M2 L3", 1, [True, True], 0),
        ("F0 M1 F3 L4 L2 F3 L4", 2, [True, True], 0),  # the last one lost
        ("F0 M1 F5 L6 M2 M3 L4 F5 L6", 2, [True, True], 0),
        ("O9 M2 L3 F0", 3, [True], 0),  # from before the capture's start: nothing is known of them
        ("F0 M1 L3", 0, [False], 1),
        ("F0 M1 O7", 0, [False, True], 5),
        ("M1 L2", 0, [False], 0),
    ],
)
def test_gaps_and_what_is_sent_again(packets: str, again: int, complete: list[bool], missing: int) -> None:
    script = Script().send(packets)
    assert script.stream.retransmitted == again
    assert script.stream.missing == missing
    script.stream.finish()
    assert [message.complete for message in script.begun] == complete
    if all(complete) and packets[:2] != "O9":
        assert sum(message.payload_bytes for message in script.begun) == MTU * len(set(packets.split()))
    assert sorted(map(id, script.settled)) == sorted(map(id, script.begun))


def test_without_acknowledgements_a_message_is_over_with_its_last_packet() -> None:
    script = Script().send("F0 L1 O2", answered=False)
    assert script.settled == script.begun
    assert not script.stream.pending


def test_a_read_asked_for_anew_is_no_second_message() -> None:
    script = Script()
    read = Packet(1, 0, READ_REQUEST, 103, 0, (0x1000, 7, 3000))
    script.stream.on_packet(read, answered=True)
    script.stream.on_packet(read._replace(number=2, psn=104, reth=(0x1400, 7, 1976)), answered=True)
    assert script.stream.retransmitted == 1
    assert script.stream.could_answer(105)
    script.stream.on_answer(105, 3, 3000, inclusive=True)
    script.stream.on_packet(read._replace(number=4, psn=106, reth=(0x9000, 7, 10)), answered=True)
    assert [message.first_psn for message in script.begun] == [103, 106]
    assert [message.answered_ns for message in script.begun] == [3000, None]
    assert script.stream.missing == 0


def test_what_is_remembered_has_a_limit() -> None:
    script = Script()
    for psn in range(PENDING_LIMIT + 10):
        script.send(f"O{psn}")
    assert len(script.stream.pending) == PENDING_LIMIT
    assert len(script.settled) == 10
    script.send(" ".join(f"O{psn}" for psn in range(10_000, 10_000 + 20 * HOLE_LIMIT, 2)))
    assert len(script.stream._holes) == HOLE_LIMIT


def test_room_is_shared_and_given_back() -> None:
    room = Room(3)
    one, other = Script(room=room).send("O0 O1"), Script(room=room).send("O0 O1 O2")
    assert (len(one.stream.pending), len(other.stream.pending), room.left) == (2, 1, 0)
    one.answer(1)
    other.send("O3 O4")
    assert (len(other.stream.pending), room.left) == (3, 0)
    other.stream.finish()
    assert room.left == 3


@pytest.mark.parametrize("psn", [0, 1, 2, 3])
def test_what_could_be_answered(psn: int) -> None:
    assert not Script().stream.could_answer(psn)
    assert Script().send("O0 F1").stream.could_answer(psn) == (psn < 2)
    assert Script().send("O1 O2").answer(1).stream.could_answer(psn) == (psn < 3)


@pytest.mark.parametrize("start_psn", [0, 2**24 - 2, 2**23 - 1])
def test_what_was_sent_shortly_before_the_capture_could_be_answered_too(start_psn: int) -> None:
    stream = Script(start_psn).send("O9000 O9001 O8990").stream
    first = 8990 - UNSEEN_PACKETS
    could = [psn for psn in range(10_000) if stream.could_answer((start_psn + psn) % 2**24)]
    assert could == list(range(first, 9002))
