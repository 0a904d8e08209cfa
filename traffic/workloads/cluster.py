"""What a workload is given: the hosts' contexts, the clock, the seed; and the buffers and queue pairs most need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from emu.engine import Engine, stream
from emu.errors import InvariantBroken, MachineError
from emu.transport.memory import Access
from emu.verbs import CQ, MR, PD, QP, SGE, Context, SendWR

TILE_BYTES = 65_521  # a prime: repeats of the pattern never line up with packets


def available_memory_bytes() -> int:
    """What the kernel says can be had without swapping (proc(5), MemAvailable), less a tenth to be kind."""
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

    def connect(self, source: str, destination: str, length: int, offset: int = 0, depth: int = 1) -> Channel:
        """A connected queue pair with `length` bytes to send from `offset` of the source, and room for them."""
        sender, receiver = self.domain(source), self.domain(destination)
        cq = self.contexts[source].create_cq(depth)
        qp = sender.create_qp(cq, depth)
        qp.connect(receiver.create_qp(self.contexts[destination].create_cq(1)))
        target = self._register(destination, length, Access.LOCAL_WRITE | Access.REMOTE_WRITE)
        return Channel(qp, cq, self.source(source, offset + length), offset, target)

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
    """One queue pair and the two buffers that its WRITEs go between."""

    qp: QP
    cq: CQ
    source: MR
    offset: int
    target: MR
    _numbers: count[int] = field(default_factory=count)

    def post_write(self) -> None:
        """Post a WRITE of the whole target."""
        sge = SGE(addr=self.source.addr + self.offset, length=self.target.length, lkey=self.source.lkey)
        self.qp.post_send(
            SendWR(wr_id=next(self._numbers), sge=sge, remote_addr=self.target.addr, rkey=self.target.rkey)
        )

    def verify(self) -> None:
        """Raise InvariantBroken unless the target holds what was sent."""
        sent = self.source.slice(self.source.addr + self.offset, self.target.length)
        if self.target.buffer != sent:
            raise InvariantBroken(f"queue pair {self.qp.qp_num:#x}: the bytes that arrived are not those sent")


async def write_all(engine: Engine, channel: Channel, *, count: int, depth: int, start_ps: int) -> None:
    """Send `count` WRITEs, `depth` of them outstanding; stops at the first that fails."""
    if start_ps > engine.now_ps:
        await engine.sleep(start_ps - engine.now_ps)
    posted = done = failed = 0
    while done + failed < posted or (posted < count and not failed):
        while posted < count and not failed and posted - done < depth:
            channel.post_write()
            posted += 1
        completion = await channel.cq.next()
        if completion.status:
            failed += 1
        else:
            done += 1
    if not failed:
        channel.verify()
