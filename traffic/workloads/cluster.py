"""What a workload is given: the hosts' contexts, the clock, the seed; and the buffers and queue pairs most need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from emu.engine import Engine, stream
from emu.errors import MachineError
from emu.verbs import MR, PD, QP, Access, Context
from emu.verbs.cm import CmConfig
from traffic.workloads.channel import ATOMIC_BYTES, ATOMIC_OPS, RECEIVED_OPS, SHIFT_BYTES, SHIFTS, Channel, Receiver
from traffic.workloads.setup import Connect, Exchange

TILE_BYTES = 65_521  # a prime: repeats of the pattern never line up with packets
ROOM_BYTES = 1 << 24  # for messages outstanding side by side, where a queue pair keeps several


def available_memory_bytes() -> int:
    """What the kernel says can be had without swapping (proc(5), MemAvailable), less a tenth to be kind."""
    with suppress(OSError):  # no /proc here: nothing is known, so nothing is refused
        for line in Path("/proc/meminfo").read_text().splitlines():
            name, _, amount = line.partition(":")
            if name == "MemAvailable":
                return int(amount.split()[0]) * 1024 * 9 // 10
    return 1 << 62


@dataclass(slots=True)
class Cluster:
    """Hosts by name. One protection domain a host; source buffers hold numbers drawn from the seed."""

    engine: Engine
    contexts: Mapping[str, Context]
    seed: int
    memory_bytes: int = field(default_factory=available_memory_bytes)  # what buffers may take
    cm: CmConfig = field(default_factory=CmConfig)  # of queue pairs that connect over QP1
    _domains: dict[str, PD] = field(init=False, default_factory=dict)
    _sources: dict[str, MR] = field(init=False, default_factory=dict)
    _places: Counter[str] = field(init=False, default_factory=Counter)
    _exchange: Exchange | None = field(init=False, default=None)

    def numbers(self, kind: str) -> str:
        """The purpose of random numbers for the next traffic of a kind: `permutation/0`, then `permutation/1`."""
        self._places[kind] += 1
        return f"{kind}/{self._places[kind] - 1}"

    def domain(self, host: str) -> PD:
        """The host's protection domain."""
        if host not in self._domains:
            self._domains[host] = self.contexts[host].alloc_pd()
        return self._domains[host]

    def source(self, host: str, length: int) -> MR:
        """A registered buffer of at least `length` bytes of noise, one for all the host's transfers."""
        region = self._sources.get(host)
        if region is None or region.length < length:
            region = self._sources[host] = self.register(host, length, Access.LOCAL_WRITE | Access.REMOTE_READ)
            tile = stream(self.seed, f"payload/{host}").randbytes(min(length, TILE_BYTES))
            for start in range(0, length, TILE_BYTES):
                region.buffer[start : start + TILE_BYTES] = tile[: length - start]
        return region

    def connect(
        self,
        source: str,
        destination: str,
        length: int,
        *,
        op: str = "write",
        offset: int = 0,
        depth: int = 1,
        priority: int | None = None,
        kind: str = "write",
        setup: str = "direct",
    ) -> Channel:
        """A queue pair of `source`, whose messages carry `length` bytes of noise from about `offset` of it.

        Where they go there is room for `depth` of them side by side, within ROOM_BYTES. `priority`: the SL or 802.1p
        priority of its data, the fabric's unless given; `kind`: which traffic it belongs to. A `read` brings the bytes
        from `destination`. It is connected already, or (`setup` cm) will be by awaiting the channel's `connect`.
        """
        sender, receiver = self.domain(source), self.domain(destination)
        cq = self.contexts[source].create_cq(depth)
        qp = sender.create_qp(cq, depth, kind=kind, priority=priority)
        slots = max(1, min(depth, ROOM_BYTES // max(length, 1)))
        far_cq = self.contexts[destination].create_cq(max(slots, 1) + 1)
        far = receiver.create_qp(far_cq, max_recv_wr=slots + 1, kind=kind, priority=priority)
        connect = self._connect(qp, far, setup)
        giver, taker = (destination, source) if op == "read" else (source, destination)
        if op in ATOMIC_OPS:
            taker = source  # what was there before comes back
        target = self.register(taker, slots * length, Access.LOCAL_WRITE | Access.REMOTE_WRITE)
        noise = self.source(giver, offset + length + SHIFTS * SHIFT_BYTES)
        channel = Channel(qp, cq, noise, offset, target, length, slots, op, connect=connect)
        if op in ATOMIC_OPS:
            channel.counter = self.register(destination, ATOMIC_BYTES, Access.LOCAL_WRITE | Access.REMOTE_ATOMIC)
        if op in RECEIVED_OPS:
            channel.receiver = Receiver(far, far_cq, target, length, slots, op)
        return channel

    def _connect(self, qp: QP, far: QP, setup: str) -> Connect | None:
        if setup == "direct":
            qp.connect(far)
            return None
        if self._exchange is None:
            self._exchange = Exchange(self.cm)
        return self._exchange.between(qp, far)

    def register(self, host: str, length: int, access: Access = Access.LOCAL_WRITE) -> MR:
        """A buffer of zeros. Raises MachineError where that is more than this machine has."""
        self.memory_bytes -= length
        if self.memory_bytes < 0:
            raise MachineError(
                f"the traffic's buffers need more than the memory this machine has available ({-self.memory_bytes}"
                " bytes more so far): use smaller messages, or fewer hosts or queue pairs"
            )
        return self.domain(host).reg_mr(length, access)
