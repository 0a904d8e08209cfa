"""A small host on a bench: a device, a root complex and its memory; or one link alone, arrivals noted."""

from __future__ import annotations

from emu.engine import Engine
from emu.host.address_space import AddressSpace
from emu.host.dma import DmaEngine
from emu.host.forwarder import Forwarder
from emu.host.link import FarEnd, PcieLink
from emu.host.memory import Memory
from emu.pcie.bandwidth import tlp_rate_bps
from emu.pcie.framing import memory_read, memory_write
from emu.pcie.tlp import Tlp
from emu.taps import Taps

RATE_BPS = 400 * 10**9  # 20 ps a byte
BASE = 1 << 40  # of the memory: addresses take 64 bits
SIZE_BYTES = 1 << 24
DEVICE, DRAM = 0x0100, 0x0008
LINK_PS, ROOT_PS, MEMORY_LINK_PS, READ_PS = 40_000, 115_000, 7_000, 210_000
ONE_WAY_PS = LINK_PS + ROOT_PS + MEMORY_LINK_PS


class Sink:
    """An end that notes when what arrives."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.arrived: list[tuple[int, Tlp]] = []

    def receive(self, tlp: Tlp) -> None:
        """As devices do."""
        self.arrived.append((self._engine.now_ps, tlp))

    @property
    def times(self) -> list[int]:
        """When, in picoseconds."""
        return [when_ps for when_ps, _ in self.arrived]


class Note:
    """A note that knows what of it has arrived."""

    def __init__(self) -> None:
        self.arrivals: list[Tlp] = []

    def arrived(self, tlp: Tlp) -> None:
        """As memories call it."""
        self.arrivals.append(tlp)


def link(engine: Engine, name: str = "nic-root", rate_bps: int = RATE_BPS, latency_ps: int = LINK_PS) -> PcieLink:
    """A link whose far end is not joined yet."""
    return PcieLink(engine, name, rate_bps, latency_ps, Taps())


def write_of(length: int, address: int = BASE) -> Tlp:
    """An MWr of 24 bytes more."""
    return memory_write(address, bytes(length), DEVICE)


def read_of(length: int, address: int = BASE, tag: int = 0) -> Tlp:
    """An MRd of 24 bytes."""
    return memory_read(address, length, DEVICE, tag)


class Host:
    """Device - root complex - memory; both links have two directions."""

    def __init__(
        self,
        *,
        mps: int = 256,
        mrrs: int = 512,
        rcb: int = 64,
        tags: int = 256,
        read_ps: int = READ_PS,
        rate_bps: int = 0,
    ) -> None:
        self.engine = Engine()
        self.taps = Taps()
        self.rate_bps = rate_bps or tlp_rate_bps(5, 16, mps)
        self.up, self.down = self._link("nic-root", LINK_PS), self._link("root-nic", LINK_PS)
        self.to_memory, self.from_memory = (
            self._link("root-dram", MEMORY_LINK_PS),
            self._link("dram-root", MEMORY_LINK_PS),
        )
        self.links = (self.up, self.down, self.to_memory, self.from_memory)
        self.space = AddressSpace(BASE, SIZE_BYTES)
        self.memory = Memory(
            "dram", self.space, self.from_memory, completer=DRAM, mps_bytes=mps, rcb_bytes=rcb, read_ps=read_ps
        )
        self.dma = DmaEngine(self.up, DEVICE, mps_bytes=mps, mrrs_bytes=mrrs, tags=tags)
        self.root = Forwarder("root", ROOT_PS)
        self.root.claim(BASE, SIZE_BYTES, self.to_memory)
        self.root.claim_requester(DEVICE, self.down)
        for upward in (self.up, self.from_memory):
            upward.join(self.root.far_end())
        self.down.join(FarEnd(self.dma.complete))
        self.to_memory.join(self.memory.far_end())

    def _link(self, name: str, latency_ps: int) -> PcieLink:
        return PcieLink(self.engine, name, self.rate_bps, latency_ps, self.taps)

    def ser_ps(self, wire_bytes: int) -> int:
        """On any of its links."""
        return self.up.serialization_ps(wire_bytes)

    def check_books(self) -> None:
        """What was sent arrived, was lost, or is on its way; a forwarder passes on what it gets."""
        sent = sum(link.tlps for link in self.links)
        lost = sum(link.lost_tlps for link in self.links)
        received = self.root.received + self.memory.received + self.dma.received
        assert sent == received + lost + len(self.engine.pending(Tlp))
        assert self.root.received == self.to_memory.tlps + self.down.tlps + self.root.unsupported
        assert self.up.tlps == self.dma.writes + self.dma.reads
        assert self.memory.received == self.memory.reads + self.memory.writes + self.memory.unexpected
