"""Floods of one kind of frame at line rate, while nothing can leave: what is owed and what is kept has a bound."""

from __future__ import annotations

import gc
import random
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from emu import opcodes
from emu.frame import Envelope, Frame
from emu.framing.control import Pfc, control_frame
from emu.transport.answer import Owed
from emu.transport.cm import GSI_QKEY, GSI_QP, Mad, encode
from emu.transport.cm_message import Path, Req
from emu.transport.psn import PSN_MASK
from emu.verbs.cm import Managers
from tests.fuzz.world import World

ROCE = "profile: roce"
IB_CCA = "profile: roce, congestion_control: ib_cca, cc_preset: default"
SELECTIVE = "selective repeat, "
FIRST, MORE = 1500, 2000  # frames before and between the two looks at what is kept
GROWTH_BYTES = 16 * 1024  # 8 bytes a frame
EVENTS = 2500  # on their way at once: answers in their turnaround, notices, timers
REQ = Req(
    local_id=0,
    service_id=1,
    ca_guid=bytes(8),
    qpn=1,
    starting_psn=0,
    responder_resources=1,
    initiator_depth=1,
    remote_timeout=1,
    local_timeout=1,
    mtu_code=1,
    primary=Path(),
)
PAUSE = control_frame(Pfc(1, 0xFF, (0xFFFF,) * 8))


class Victim:
    """A world of one connection whose peer is silent, and frames to it."""

    def __init__(self, kind: str = ROCE) -> None:
        self.world = World(random.Random(5), kind.removeprefix(SELECTIVE), selective=kind.startswith(SELECTIVE))
        self.here, there = self.world.pairs[0]
        self.store = self.world.victim.store
        peer, own = self.world.peer.context, self.world.victim.context
        self.envelope: Envelope = peer.envelopes(peer.address, own.address, there.qp_num, self.here.qp_num, None)[0]
        self.psn = self.here.attr.rq_psn or 0

    def frame(self, opcode: int, ahead: int = 0, payload: bytes = b"") -> Frame:
        """A request whose number is so far from the first."""
        frame = Frame(self.envelope, opcode, self.psn + ahead & PSN_MASK, payload)
        if opcode in (opcodes.READ_REQUEST, opcodes.WRITE_ONLY, opcodes.WRITE_ONLY_WITH_IMMEDIATE):
            region = self.store.readable if opcode == opcodes.READ_REQUEST else self.store.writable
            frame.reth = (region.addr, region.rkey, region.length if opcode == opcodes.READ_REQUEST else len(payload))
        if opcode == opcodes.FETCH_ADD:
            frame.extension = (self.store.atomic.addr, self.store.atomic.rkey, 1, 0)
        if opcode == opcodes.WRITE_ONLY_WITH_IMMEDIATE:
            frame.extension = (77,)
        return frame

    def strike(self, frame: Frame) -> None:
        """It comes in, as bytes, and takes its time on the wire; the wire out stays paused."""
        door = self.world.doors[0]
        door.take_in(PAUSE)
        self.world.take(frame.envelope.framing.encode(frame))
        self.world.go_on(door.serialization_ps(frame.wire_bytes))
        assert len(self.world.engine.queue) < EVENTS, f"{len(self.world.engine.queue)} events are scheduled"


def duplicate_atomics(victim: Victim) -> Iterator[Frame]:
    while True:
        yield victim.frame(opcodes.FETCH_ADD)


def duplicate_atomics_and_sends(victim: Victim) -> Iterator[Frame]:
    yield victim.frame(opcodes.FETCH_ADD)
    while True:
        yield victim.frame(opcodes.FETCH_ADD)
        yield victim.frame(opcodes.SEND_ONLY, -1)


def new_atomics(victim: Victim) -> Iterator[Frame]:
    for number in range(2**23):
        yield victim.frame(opcodes.FETCH_ADD, number)


def duplicate_reads(victim: Victim) -> Iterator[Frame]:
    while True:
        yield victim.frame(opcodes.READ_REQUEST)


def gaps(victim: Victim) -> Iterator[Frame]:
    number = 1
    while True:
        number = number % 2**22 + 1
        yield victim.frame(opcodes.SEND_ONLY, number, b"gap")


def one_gap(victim: Victim) -> Iterator[Frame]:
    """The same early packet, each copy of which is answered."""
    while True:
        yield victim.frame(opcodes.SEND_ONLY, 3, b"gap")


def gaps_filled(victim: Victim) -> Iterator[Frame]:
    """Early packets, and then what they have waited for."""
    for start in range(0, 2**22, 8):
        for ahead in (*range(7, 0, -1), 0):
            yield victim.frame(opcodes.WRITE_ONLY, start + ahead)


def immediates(victim: Victim) -> Iterator[Frame]:
    for _ in range(3):
        victim.world.work()
    number = 0
    while True:  # with and without receives, done and refused
        yield victim.frame(opcodes.WRITE_ONLY_WITH_IMMEDIATE, number, b"data")
        number = victim.here._attached().responder._expected - victim.psn  # type: ignore[attr-defined]


def marked(victim: Victim) -> Iterator[Frame]:
    while True:
        frame = victim.frame(opcodes.SEND_ONLY, -1)
        frame.fecn = True
        yield frame


def notifications(victim: Victim) -> Iterator[Frame]:
    victim.world.work()
    while True:
        frame = victim.frame(opcodes.CNP)
        frame.becn = True
        yield frame


def refusals(victim: Victim) -> Iterator[Frame]:
    """NAKs and RNR NAKs to a requester at work."""
    numbers = random.Random(1)
    while True:
        victim.world.work()
        requester = victim.here._attached().requester
        frame = victim.frame(opcodes.ACKNOWLEDGE)
        frame.psn = numbers.randint(requester._acked, requester._acked + 3) & PSN_MASK  # type: ignore[attr-defined]
        frame.aeth = (numbers.choice((0x20, 0x21, 0x60, 0x1F)), 0)
        yield frame


def strangers(victim: Victim) -> Iterator[Frame]:
    number = 0
    envelope = victim.envelope
    while True:
        number += 1
        victim.envelope = Envelope(
            envelope.framing,
            source=number,
            destination=envelope.destination,
            source_mac=number,
            destination_mac=envelope.destination_mac,
            destination_qp=number % 2**24 if number % 2 else envelope.destination_qp,
            udp_source_port=number % 2**16,
        )
        yield victim.frame(opcodes.SEND_ONLY, number % 7 + 1)


def management(victim: Victim) -> Iterator[Frame]:
    """Requests for a service that nobody offers, each of which is refused."""
    Managers().of(victim.world.victim.context)
    envelope = victim.world.peer.context.envelopes(
        victim.world.peer.context.address, victim.world.victim.context.address, 1, GSI_QP, None
    )[0]
    for number in range(2**31):
        req = replace(REQ, local_id=number)
        frame = Frame(envelope, opcodes.UD | opcodes.SEND_ONLY, 0, encode(Mad(number, req)))
        frame.extension = (GSI_QKEY, GSI_QP)
        yield frame


FLOODS: dict[str, tuple[Callable[[Victim], Iterator[Frame]], str]] = {
    "duplicate atomics": (duplicate_atomics, ROCE),
    "duplicate atomics and SENDs": (duplicate_atomics_and_sends, ROCE),
    "new atomics": (new_atomics, ROCE),
    "duplicate READs": (duplicate_reads, ROCE),
    "gaps": (gaps, ROCE),
    "gaps, selective": (gaps, SELECTIVE + ROCE),
    "one gap, selective": (one_gap, SELECTIVE + ROCE),
    "gaps that are filled, selective": (gaps_filled, SELECTIVE + ROCE),
    "immediates": (immediates, ROCE),
    "marked, DCQCN": (marked, ROCE),
    "marked, IB CCA": (marked, IB_CCA),
    "notifications": (notifications, ROCE),
    "refusals": (refusals, ROCE),
    "strangers": (strangers, ROCE),
    "management": (management, ROCE),
}


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_leaves_nothing_behind(name: str) -> None:
    make, kind = FLOODS[name]
    tracemalloc.start()  # first of all: what comes and goes is counted as it comes
    try:
        victim = Victim(kind)
        frames = make(victim)
        for _ in range(FIRST):
            victim.strike(next(frames))
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(MORE):
            victim.strike(next(frames))
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < GROWTH_BYTES, f"{grown} bytes more after {MORE} frames"
    victim.world.settle()


def test_answers_without_a_bound_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Owed, "is_full", lambda self: False)
    victim = Victim()
    frames = duplicate_atomics(victim)
    with pytest.raises(AssertionError, match="answers are owed"):
        for _ in range(FIRST):
            victim.strike(next(frames))
