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
from emu.transport.work import FETCHES, SEGMENTS, Segments, WROpcode
from emu.verbs.qp import QP, TRANSPORTS

READ_SEGMENTS: Segments = (
    opcodes.READ_RESPONSE_FIRST,
    opcodes.READ_RESPONSE_MIDDLE,
    opcodes.READ_RESPONSE_LAST,
    opcodes.READ_RESPONSE_ONLY,
)
ATOMIC_SEGMENTS: Segments = (opcodes.ATOMIC_ACKNOWLEDGE,) * 4
REQUESTS = {
    WROpcode.RDMA_READ: opcodes.READ_REQUEST,
    WROpcode.ATOMIC_CMP_AND_SWP: opcodes.COMPARE_SWAP,
    WROpcode.ATOMIC_FETCH_AND_ADD: opcodes.FETCH_ADD,
}
RESPONSES = dict.fromkeys(REQUESTS, ATOMIC_SEGMENTS) | {WROpcode.RDMA_READ: READ_SEGMENTS}


class Routes:
    """Paths and floors, worked out once for each queue pair, path and size."""

    def __init__(self, fabric: Fabric, scenario: Scenario) -> None:
        self._fabric = fabric
        self._scenario = scenario
        self._hops: dict[Envelope, tuple[Hop, ...]] = {}  # a queue pair that is connected again has others
        self._floors: dict[tuple[tuple[Hop, ...], tuple[Hop, ...], int, WROpcode, int], int] = {}

    @cached_property
    def _by_port(self) -> dict[int, tuple[str, Link]]:
        return {id(port): (name, link) for name, (link, port) in self._fabric.links.items()}

    def path(self, qp: QP) -> list[tuple[str, Link]]:
        """The directions of links, in order, that a connected queue pair's frames take; none for datagrams."""
        if not qp.destination:
            return []
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
        return self.floor_ps(cast(QP, message.flow), message.size_bytes, WROpcode[message.operation])

    def floor_ps(self, qp: QP, size_bytes: int, operation: WROpcode = WROpcode.RDMA_WRITE, messages: int = 1) -> int:
        """The same for that many messages of `size_bytes` on this queue pair, posted at once; 0 for none.

        0 too for datagrams, which have no one way.
        """
        peer = qp.far
        if peer is None:
            return 0
        key = (self._way(qp), self._way(peer), size_bytes, operation, messages)
        if key not in self._floors:
            nic = self._scenario.host.nic
            there, back, *_ = key
            if operation in FETCHES:
                asked = transit_ps(there, [(self._size(qp, REQUESTS[operation], 0), 1)])
                transit = asked + nic.receive_ps + nic.ack_turnaround_ps
                brought = size_bytes if operation is WROpcode.RDMA_READ else 0  # an atomic's is a header
                transit += transit_ps(back, self._runs(peer, RESPONSES[operation], brought), messages)
            else:
                transit = transit_ps(there, self._runs(qp, SEGMENTS[operation], size_bytes), messages)
            # By PCIe the data is visible after a crossing whose least is its own business: nothing is assumed of it.
            delivery_ps = nic.delivery_ps if self._scenario.host.path == "none" else 0
            self._floors[key] = nic.post_ps + transit + nic.receive_ps + delivery_ps
        return self._floors[key]

    def flow_floor_ps(self, qp: QP, flow: Flow) -> int:
        """The least that a flow's delivered messages can take together; 0 where there is none to tell.

        It is worked out for messages of one size and kind.
        """
        if not flow.messages or flow.size_bytes < 0 or not flow.operation:
            return 0
        return self.floor_ps(qp, flow.size_bytes, WROpcode[flow.operation], flow.messages)

    def _way(self, qp: QP) -> tuple[Hop, ...]:
        hops = self._hops.get(qp.envelope)
        if hops is None:
            hops = self._hops[qp.envelope] = self._hops_of(qp)
        return hops

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

    def _runs(self, qp: QP, segments: Segments, size_bytes: int) -> Runs:
        """The frames that many bytes are cut into, by their bytes on the wire."""
        mtu_bytes = self._scenario.fabric.path_mtu_bytes
        packets = max(1, -(-size_bytes // mtu_bytes))
        last_bytes = size_bytes - (packets - 1) * mtu_bytes
        first, middle, last, only = segments
        if packets == 1:
            return [(self._size(qp, only, size_bytes), 1)]
        return [
            (self._size(qp, first, mtu_bytes), 1),
            (self._size(qp, middle, mtu_bytes), packets - 2),
            (self._size(qp, last, last_bytes), 1),
        ]

    @staticmethod
    def _size(qp: QP, opcode: int, payload_bytes: int) -> int:
        base = TRANSPORTS[qp.qp_type]
        return Frame(qp.envelope, base | opcode, 0, bytes(payload_bytes)).wire_bytes
