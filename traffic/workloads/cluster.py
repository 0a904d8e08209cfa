"""What a workload is given: the hosts' contexts, the clock, the seed; and the buffers and queue pairs most need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from emu.engine import Engine, stream
from emu.errors import InvariantBroken, MachineError
from emu.transport.memory import Access
from emu.verbs import CQ, MR, PD, QP, SGE, Context, SendWR

TILE_BYTES = 65_521  # a prime: repeats of the pattern never line up with packets
SHIFTS, SHIFT_BYTES = 61, 64  # messages of a queue pair begin at so many places of the source in turn
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
    _domains: dict[str, PD] = field(init=False, default_factory=dict)
    _sources: dict[str, MR] = field(init=False, default_factory=dict)
    _places: Counter[str] = field(init=False, default_factory=Counter)

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
            region = self._sources[host] = self._register(host, length)
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
        offset: int = 0,
        depth: int = 1,
        priority: int | None = None,
        kind: str = "write",
    ) -> Channel:
        """A connected queue pair that writes `length` bytes at a time from about `offset` of the source.

        At the destination there is room for `depth` messages side by side, within ROOM_BYTES. `priority`: the SL or
        802.1p priority of its data, the fabric's unless given; `kind`: which traffic it belongs to.
        """
        sender, receiver = self.domain(source), self.domain(destination)
        cq = self.contexts[source].create_cq(depth)
        qp = sender.create_qp(cq, depth, kind=kind, priority=priority)
        answers = self.contexts[destination].create_cq(1)
        qp.connect(receiver.create_qp(answers, kind=kind, priority=priority))
        slots = max(1, min(depth, ROOM_BYTES // max(length, 1)))
        target = self._register(destination, slots * length, Access.LOCAL_WRITE | Access.REMOTE_WRITE)
        return Channel(
            qp, cq, self.source(source, offset + length + SHIFTS * SHIFT_BYTES), offset, target, length, slots
        )

    def _register(self, host: str, length: int, access: Access = Access.LOCAL_WRITE) -> MR:
        self.memory_bytes -= length
        if self.memory_bytes < 0:
            raise MachineError(
                f"the traffic's buffers need more than the memory this machine has available ({-self.memory_bytes}"
                " bytes more so far): use smaller messages, or fewer hosts or queue pairs"
            )
        return self.domain(host).reg_mr(length, access)


@dataclass(slots=True)
class Channel:
    """One queue pair and the buffers that its WRITEs go between: each message has other bytes than the one before."""

    qp: QP
    cq: CQ
    source: MR
    offset: int
    target: MR
    length: int
    slots: int
    posted: int = 0

    def post_write(self) -> None:
        """Post the next message, to the next place in turn."""
        number = self.posted
        self.posted += 1
        sge = SGE(addr=self._from(number), length=self.length, lkey=self.source.lkey)
        self.qp.post_send(SendWR(wr_id=number, sge=sge, remote_addr=self._to(number), rkey=self.target.rkey))

    def verify(self, number: int) -> None:
        """Raise InvariantBroken unless message `number` is in the target (or a later one was posted to its place)."""
        if self.posted > number + self.slots:
            return
        at = self._to(number) - self.target.addr
        sent = self.source.slice(self._from(number), self.length)
        if not self.target.buffer.startswith(sent, at):  # compared where it lies: no copy, no view's slow compare
            raise InvariantBroken(f"queue pair {self.qp.qp_num:#x}: message {number} is not in the target's memory")

    def _from(self, number: int) -> int:
        return self.source.addr + self.offset + number % SHIFTS * SHIFT_BYTES

    def _to(self, number: int) -> int:
        return self.target.addr + number % self.slots * self.length
