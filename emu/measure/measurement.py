"""Watches a run through its taps and adds up: latencies, where the time went, flows. Keeps nothing of a frame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from emu.errors import InvariantBroken
from emu.frame import Message
from emu.measure.connections import Connections
from emu.measure.fairness import Fairness
from emu.measure.flow import Flow as Flow
from emu.measure.flow import FlowKey as FlowKey
from emu.measure.slowest import Slowest
from emu.measure.values import Values
from emu.parts import ANSWER, HOST_PLACE, PARTS, STEPS, unpack
from emu.taps import Taps

FETCHING = ("RDMA_READ", "ATOMIC_CMP_AND_SWP", "ATOMIC_FETCH_AND_ADD")
FloorOf = Callable[[Message], int]


class Measurement:
    """Everything a result says about messages. Nothing here grows with a run but the number of flows."""

    def __init__(self, taps: Taps, floor_ps: FloorOf, on_message: Callable[[Message], object] | None = None) -> None:
        """`on_message` gets each message once it has both arrived and completed, or failed."""
        self.latency_ps = Values()  # posting to visible at the destination
        self.fabric_ps = Values()  # first bit out to last bit in
        self.completion_ps = Values()  # posting to CQE seen
        self.parts_ps = [0] * len(PARTS)
        self.steps_ps = [0] * len(STEPS)
        self.flows: dict[FlowKey, Flow] = {}
        self.posted = self.delivered = self.completed = self.failed = 0
        self.completed_bytes = 0
        self.statuses: Counter[str] = Counter()
        self.fairness = Fairness()
        self.slowest = Slowest()
        self.connections = Connections()
        self._floor_ps = floor_ps
        self._on_message = on_message
        self._awaited: dict[
            Message, None
        ] = {}  # completed, and not delivered yet; lost ones of unreliable transports too
        taps.message_posted = self._posted
        taps.message_delivered = self._delivered
        taps.message_completed = self._completed
        taps.connection_settled = self.connections.settled

    def _posted(self, message: Message) -> None:
        self.posted += 1
        flow = self.flows.get(message.flow)
        if flow is None:
            flow = self.flows[message.flow] = Flow()
            flow.start_ps = message.posted_ps
            flow.size_bytes, flow.operation = message.size_bytes, message.operation
            self.fairness.started(message.flow, message.posted_ps)
        elif flow.size_bytes != message.size_bytes:
            flow.size_bytes = -1
        elif flow.operation != message.operation:
            flow.operation = ""

    def _delivered(self, message: Message) -> None:
        latency_ps = message.delivered_ps - message.posted_ps
        parts_ps = unpack(message.parts)
        if sum(parts_ps) != latency_ps:
            raise InvariantBroken(
                f"message {message.number}: the parts {parts_ps} do not add up to its latency of {latency_ps} ps"
            )
        if not message.posted_ps <= message.first_bit_ps <= message.last_bit_ps <= message.delivered_ps:
            raise InvariantBroken(
                f"message {message.number}: its first bit left at {message.first_bit_ps} ps,"
                f" its last was in at {message.last_bit_ps} ps"
            )
        floor_ps = self._floor_ps(message)
        if latency_ps < floor_ps:
            raise InvariantBroken(
                f"message {message.number}: {latency_ps} ps is faster than its physical floor of {floor_ps} ps"
            )
        self.delivered += 1
        self.latency_ps.append(latency_ps)
        self.fabric_ps.append(message.last_bit_ps - message.first_bit_ps)
        totals = self.parts_ps
        for place, part_ps in enumerate(parts_ps):
            totals[place] += part_ps
        if message.steps is not None:
            self._add_steps(message, message.steps, parts_ps[HOST_PLACE])
        flow = self.flows[message.flow]
        flow.finish_ps = message.delivered_ps
        flow.messages += 1
        flow.bytes += message.size_bytes
        self.fairness.delivered(message.flow, flow.messages, message.delivered_ps)
        self.slowest.add(message, latency_ps, floor_ps)
        if self._on_message and message in self._awaited:
            del self._awaited[message]
            self._on_message(message)

    def _add_steps(self, message: Message, steps: list[int], host_ps: int) -> None:
        """What the host's part is made of; for what fetches, the rest of it passed at the far host."""
        rest_ps = host_ps - sum(steps[:ANSWER])
        if rest_ps < 0 or (rest_ps and message.operation not in FETCHING):
            raise InvariantBroken(
                f"message {message.number}: the steps {steps} do not add up to its host part of {host_ps} ps"
            )
        steps[ANSWER] = rest_ps
        totals = self.steps_ps
        for place, step_ps in enumerate(steps):
            totals[place] += step_ps

    def _completed(self, message: Message) -> None:
        flow = self.flows[message.flow]
        flow.retransmitted += message.retransmitted
        if message.status == "SUCCESS":
            self.completed += 1
            self.completed_bytes += message.size_bytes
            self.completion_ps.append(message.completed_ps - message.posted_ps)
        else:
            self.failed += 1
            flow.failed += 1
            self.statuses[message.status] += 1
        if self._on_message:
            if message.delivered_ps < 0 and message.status == "SUCCESS":
                self._awaited[message] = None
            else:
                self._on_message(message)

    def finish(self) -> None:
        """The run is over: messages that have completed and will not be delivered are told of too."""
        awaited, self._awaited = self._awaited, {}
        for message in awaited:
            if self._on_message:
                self._on_message(message)
