"""Flows as a capture shows them: what one queue pair sent to another, on one interface, and what was answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from emu import opcodes
from emu.capture.answers import Answers
from emu.capture.flow import Flow, FlowKey
from emu.capture.messages import Packet, RequestStream, Room, SeenMessage
from emu.capture.seen import KIND_MASK, NAK, RNR_NAK
from emu.framing.dissection import Dissection
from emu.opcodes import OPERATIONS, Position

FLOW_LIMIT = 65_536  # frames of further flows are counted, but not told apart
CE = 3  # RFC 3168: congestion experienced
ANSWERS = range(opcodes.READ_RESPONSE_FIRST, opcodes.ATOMIC_ACKNOWLEDGE + 1)
READ_RESPONSES = range(opcodes.READ_RESPONSE_FIRST, opcodes.READ_RESPONSE_ONLY + 1)
ANSWERED = (opcodes.RC, opcodes.XRC)  # the transports that acknowledge


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
        self._answers = Answers()
        self._on_message = on_message
        self._room = Room()
        self.left_out = 0  # frames of flows beyond the limit
        self.answered: frozenset[int] = frozenset()  # at the end: numbers of the flows whose answers are known

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
            immediate = int(frame.headers["immdt"][0]) if "immdt" in frame.headers else None
            packet = Packet(seen.number, seen.time_ns, frame.opcode, frame.psn, seen.payload_bytes, target, immediate)
            self._stream(flow).on_packet(packet, answered=frame.opcode & 0xE0 in ANSWERED)

    def finish(self) -> None:
        """The capture is over: what was still on its way stays as it is."""
        for flow in self:
            if flow.stream is not None:
                flow.stream.finish()
        self._answers.finish(sees_all=not self.left_out)
        self.answered = frozenset(flow.number for flow in self if flow.answers is not None)

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
            self._answers.add_flow(flow)
        return flow

    def _stream(self, flow: Flow) -> RequestStream:
        if flow.stream is None:
            flow.stream = RequestStream(
                lambda message: self._on_message(flow.number, message),
                lambda message: _settle(flow, message),
                self._room,
            )
            self._answers.add_requester(flow)
        return flow.stream

    def _take_answer(self, flow: Flow, seen: Sighting, opcode: int, psn: int) -> None:
        position, aeth = OPERATIONS[opcode].position, seen.dissection.headers.get("aeth")
        syndrome = int(aeth[0]) if aeth is not None else 0
        is_nak = syndrome & KIND_MASK in (NAK, RNR_NAK)
        if is_nak:
            flow.refusals[syndrome] += 1
        asked = flow.answered
        if asked is None and position is not Position.MIDDLE:  # the middle of a READ's response answers nothing else
            asked = self._answers.asked(flow, psn)
        if asked is None or asked.stream is None:
            return
        if opcode % 32 in READ_RESPONSES:
            asked.stream.on_response(psn, seen.payload_bytes, seen.time_ns)
        if is_nak:
            asked.stream.on_refusal(psn, syndrome, seen.time_ns)
        if position is not Position.MIDDLE:
            inclusive = not is_nak and position is not Position.FIRST
            asked.stream.on_answer(psn, seen.number, seen.time_ns, inclusive=inclusive)


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


def _settle(flow: Flow, message: SeenMessage) -> None:
    flow.messages += 1
    flow.message_bytes += message.payload_bytes
    if message.complete:
        flow.complete += 1
        flow.duration.add(message.last_ns - message.first_ns)
        if message.answered_ns is not None:
            flow.answer.add(message.answered_ns - message.first_ns)
