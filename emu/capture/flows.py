"""Flows as a capture shows them: what one queue pair sent to another, on one interface, and what was answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from emu import opcodes
from emu.capture.messages import Packet, RequestStream, Room, SeenMessage
from emu.framing.dissection import Dissection
from emu.opcodes import OPERATIONS, Position

FLOW_LIMIT = 65_536  # frames of further flows are counted, but not told apart
CANDIDATE_LIMIT = 64  # flows among which the one that an answer belongs to is looked for
CE = 3  # RFC 3168: congestion experienced
ANSWERS = range(opcodes.READ_RESPONSE_FIRST, opcodes.ATOMIC_ACKNOWLEDGE + 1)
ANSWERED = (opcodes.RC, opcodes.XRC)  # the transports that acknowledge
NAK = 0x60  # AETH's syndrome: the upper three bits say what it is (IBTA vol. 1, 9.7.5.1.1)
RNR_NAK = 0x20
KIND_MASK = 0xE0


class FlowKey(NamedTuple):
    """What tells flows apart. A reliable connection does not say its source queue pair."""

    interface: str
    network: str
    source: str
    destination: str
    destination_qp: int
    source_qp: int | None


@dataclass(slots=True)
class Spread:
    """Least, mean and most of a series of nanoseconds, without keeping it."""

    count: int = 0
    total: int = 0
    least: int = 0
    most: int = 0

    def add(self, value: int) -> None:
        """One more."""
        self.least = min(self.least, value) if self.count else value
        self.most = max(self.most, value) if self.count else value
        self.count += 1
        self.total += value

    def summary(self) -> dict[str, Any]:
        """As JSON has it."""
        mean = self.total / self.count if self.count else 0
        return {"count": self.count, "min": self.least, "mean": mean, "max": self.most}


@dataclass(slots=True)
class Flow:
    """Counts of one flow, its messages on their way, and the flow whose answers it carries, once known."""

    key: FlowKey
    number: int  # from 1
    source_port: int | None
    first_ns: int
    last_ns: int = 0
    frames: int = 0
    frame_bytes: int = 0
    payload_bytes: int = 0
    opcodes: Counter[int] = field(default_factory=Counter)
    icrc_bad: int = 0
    vcrc_bad: int = 0
    naks: int = 0
    marked: int = 0  # CE, FECN or BECN
    messages: int = 0
    complete: int = 0
    message_bytes: int = 0
    duration: Spread = field(default_factory=Spread)
    answer: Spread = field(default_factory=Spread)
    stream: RequestStream | None = None
    answered: Flow | None = None  # the flow whose requests this one answers
    candidates: list[Flow] | None = None  # while that is not clear yet
    answers: Flow | None = None  # the flow that answers this one's requests


class Sighting(NamedTuple):
    """One dissected frame of an RDMA network, where and when it was seen."""

    number: int
    time_ns: int
    interface: str
    dissection: Dissection
    payload_bytes: int


class FlowTable:
    """All flows of a capture; `on_message` gets each message when it begins, with its flow's number."""

    def __init__(self, on_message: Callable[[int, SeenMessage], object]) -> None:
        self._flows: dict[FlowKey, Flow] = {}
        self._requesters: dict[tuple[str, str, str, str], list[Flow]] = {}  # by interface, network, addresses
        self._ways_back: dict[str, str] = {}
        self._interfaces: set[str] = set()
        self._on_message = on_message
        self._room = Room()
        self.left_out = 0  # frames of flows beyond the limit

    def __iter__(self) -> Iterator[Flow]:
        return iter(self._flows.values())

    def __len__(self) -> int:
        return len(self._flows)

    def take(self, seen: Sighting) -> None:
        """Count one frame with a BTH; follow its message unless its ICRC or VCRC says that it is damaged."""
        frame = seen.dissection
        flow = self._flow(seen)
        if flow is None or frame.opcode is None:
            self.left_out += 1
            return
        _count(flow, seen)
        if frame.icrc == "bad" or frame.vcrc == "bad" or frame.psn is None or frame.opcode not in OPERATIONS:
            return
        if frame.opcode == opcodes.CNP:
            return
        if frame.opcode % 32 in ANSWERS and frame.opcode & 0xE0 in ANSWERED:
            self._take_answer(flow, seen, frame.opcode, frame.psn)
        else:
            reth = frame.headers.get("reth")
            target = (int(reth[0]), int(reth[1]), int(reth[2])) if reth else None
            packet = Packet(seen.number, seen.time_ns, frame.opcode, frame.psn, seen.payload_bytes, target)
            self._stream(flow).on_packet(packet, answered=frame.opcode & 0xE0 in ANSWERED)

    def finish(self) -> None:
        """The capture is over: what was still on its way stays as it is."""
        for flow in self:
            if flow.stream is not None:
                flow.stream.finish()

    def _flow(self, seen: Sighting) -> Flow | None:
        frame = seen.dissection
        if frame.destination_qp is None:
            return None
        deth = frame.headers.get("deth")
        source_qp = int(deth[1]) if deth else None
        key = FlowKey(seen.interface, frame.network, frame.source, frame.destination, frame.destination_qp, source_qp)
        flow = self._flows.get(key)
        if flow is None and len(self._flows) < FLOW_LIMIT:
            flow = self._flows[key] = Flow(key, len(self._flows) + 1, frame.source_port, seen.time_ns)
            self._interfaces.add(seen.interface)
        return flow

    def _stream(self, flow: Flow) -> RequestStream:
        if flow.stream is None:
            flow.stream = RequestStream(
                lambda message: self._on_message(flow.number, message),
                lambda message: _settle(flow, message),
                self._room,
            )
            place = (flow.key.interface, flow.key.network, flow.key.source, flow.key.destination)
            self._requesters.setdefault(place, []).append(flow)
        return flow.stream

    def _take_answer(self, flow: Flow, seen: Sighting, opcode: int, psn: int) -> None:
        position, aeth = OPERATIONS[opcode].position, seen.dissection.headers.get("aeth")
        is_nak = aeth is not None and aeth[0] & KIND_MASK in (NAK, RNR_NAK)
        flow.naks += is_nak
        if position is Position.MIDDLE:  # of a READ response: says nothing about what else came
            return
        asked = flow.answered or self._asked(flow, psn)
        if asked is not None and asked.stream is not None:
            inclusive = not is_nak and position is not Position.FIRST
            asked.stream.on_answer(psn, seen.number, seen.time_ns, inclusive=inclusive)

    def _asked(self, flow: Flow, psn: int) -> Flow | None:
        """The flow that this one answers, or None while that is not clear: queue pairs are told apart by PSNs alone."""
        if flow.candidates is None:
            key = flow.key
            place = (self._way_back(key.interface), key.network, key.destination, key.source)
            flow.candidates = [each for each in self._requesters.get(place, []) if each.answers is None]
            del flow.candidates[CANDIDATE_LIMIT:]
        fitting = [each for each in flow.candidates if each.answers is None and _could_be(each, psn)]
        if len(fitting) > 1 and flow.source_port:  # Linux derives it from both queue pairs: alike in both directions
            alike = [each for each in fitting if each.source_port == flow.source_port]
            fitting = alike or fitting
        if len(fitting) == 1:
            flow.answered, flow.candidates = fitting[0], None
            fitting[0].answers = flow
            return fitting[0]
        flow.candidates = fitting or None
        return None

    def _way_back(self, interface: str) -> str:
        """The interface of the other direction, by name as ours are called; the same one if there is no such."""
        known = self._ways_back.get(interface)
        if known is not None:
            return known
        name, mark, parallel = interface.partition("#")
        parts = name.split("-")
        for cut in range(1, len(parts)):
            back = "-".join(parts[cut:]) + "-" + "-".join(parts[:cut]) + mark + parallel
            if back in self._interfaces:
                self._ways_back[interface] = back
                return back
        return interface


def _count(flow: Flow, seen: Sighting) -> None:
    frame = seen.dissection
    flow.frames += 1
    flow.frame_bytes += frame.frame_bytes
    flow.payload_bytes += seen.payload_bytes
    flow.first_ns, flow.last_ns = min(flow.first_ns, seen.time_ns), max(flow.last_ns, seen.time_ns)
    if frame.opcode is not None:
        flow.opcodes[frame.opcode] += 1
    flow.icrc_bad += frame.icrc == "bad"
    flow.vcrc_bad += frame.vcrc == "bad"
    flow.marked += frame.ecn == CE or frame.fecn or frame.becn


def _could_be(asked: Flow, psn: int) -> bool:
    return asked.stream is not None and asked.stream.could_answer(psn)


def _settle(flow: Flow, message: SeenMessage) -> None:
    flow.messages += 1
    flow.message_bytes += message.payload_bytes
    if message.complete:
        flow.complete += 1
        flow.duration.add(message.last_ns - message.first_ns)
        if message.answered_ns is not None:
            flow.answer.add(message.answered_ns - message.first_ns)
