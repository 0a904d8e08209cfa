"""The way a queue pair's frames take, and the physical floor of its messages on that way."""

from __future__ import annotations

from functools import cached_property
from typing import cast

from emu import opcodes
from emu.errors import InvariantBroken
from emu.fabric import Fabric
from emu.frame import Envelope, Frame, Message
from emu.measure.floor import Hop, Runs, transit_ps
from emu.measure.measurement import Flow
from emu.scenario.model import Scenario
from emu.topology import Link
from emu.verbs import QP


class Routes:
    """Paths and floors, worked out once for each queue pair, path and size."""

    def __init__(self, fabric: Fabric, scenario: Scenario) -> None:
        self._fabric = fabric
        self._scenario = scenario
        self._hops: dict[QP, tuple[Hop, ...]] = {}
        self._floors: dict[tuple[tuple[Hop, ...], int, int], int] = {}

    @cached_property
    def _by_port(self) -> dict[int, tuple[str, Link]]:
        return {id(port): (name, link) for name, (link, port) in self._fabric.links.items()}

    def path(self, qp: QP) -> list[tuple[str, Link]]:
        """The directions of links, in order, that a connected queue pair's frames take."""
        envelope, node = qp.envelope, qp.pd.context.name
        path = [self._by_port[id(self._fabric.nics[node].port)]]
        while True:
            name, link = path[-1]
            node = link.b.node if name == link.name else link.a.node
            if node in self._fabric.nics:
                return path
            port = self._fabric.switches[node].choose(envelope.destination, envelope.path_hash)
            if port is None or len(path) > len(self._fabric.links):
                raise InvariantBroken(f"switch {node} has no way to the peer of queue pair {qp.qp_num:#x}")
            path.append(self._by_port[id(port)])

    def message_floor_ps(self, message: Message) -> int:
        """The least that a message can take from posting to visible, in picoseconds."""
        return self.floor_ps(cast(QP, message.flow), message.size_bytes)

    def floor_ps(self, qp: QP, size_bytes: int, messages: int = 1) -> int:
        """The same for that many messages of `size_bytes` on this queue pair, posted at once; 0 for none."""
        hops = self._hops.get(qp)
        if hops is None:
            hops = self._hops[qp] = self._hops_of(qp)
        key = (hops, size_bytes, messages)
        if key not in self._floors:
            nic = self._scenario.host.nic
            transit = transit_ps(hops, self._runs(qp.envelope, size_bytes), messages)
            self._floors[key] = nic.post_ps + transit + nic.receive_ps + nic.delivery_ps
        return self._floors[key]

    def flow_floor_ps(self, qp: QP, flow: Flow) -> int:
        """The least that a flow's delivered messages can take together; 0 where there is none to tell.

        It is worked out for messages of one size, as all workloads send them so far.
        """
        return self.floor_ps(qp, flow.size_bytes, flow.messages) if flow.messages and flow.size_bytes >= 0 else 0

    def _hops_of(self, qp: QP) -> tuple[Hop, ...]:
        fabric = self._scenario.fabric
        path = self.path(qp)
        hops = []
        for number, (_, link) in enumerate(path):
            last = number == len(path) - 1
            hops.append(
                Hop(
                    rate_bps=link.rate_bps,
                    propagation_ps=link.propagation_ps,
                    hop_latency_ps=0 if last else fabric.hop_latency_ps,
                    stores=not last and fabric.switching == "store_and_forward",
                    stores_slow_to_fast=not last and fabric.slow_to_fast == "store_and_forward",
                )
            )
        return tuple(hops)

    def _runs(self, envelope: Envelope, size_bytes: int) -> Runs:
        """The frames a WRITE of that size is cut into, by their bytes on the wire."""
        mtu_bytes = self._scenario.fabric.path_mtu_bytes
        packets = max(1, -(-size_bytes // mtu_bytes))
        last_bytes = size_bytes - (packets - 1) * mtu_bytes

        def size(opcode: int, payload_bytes: int) -> int:
            return Frame(envelope, opcode, 0, bytes(payload_bytes)).wire_bytes

        if packets == 1:
            return [(size(opcodes.WRITE_ONLY, size_bytes), 1)]
        return [
            (size(opcodes.WRITE_FIRST, mtu_bytes), 1),
            (size(opcodes.WRITE_MIDDLE, mtu_bytes), packets - 2),
            (size(opcodes.WRITE_LAST, last_bytes), 1),
        ]
