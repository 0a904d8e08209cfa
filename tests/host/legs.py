"""What one WRITE takes by each path, leg by leg: arithmetic on a scenario's values, apart from what it checks.

All times in picoseconds. One message alone, its addresses whole pages, over one switch, of a queue pair that the NIC
has not seen yet.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from emu.scenario.model import Scenario

SECOND = 10**12
PAGE = 4096
MWR, MRD, CPLD = 24, 24, 20  # reference.md 4.7: link bytes beside the data, at 64-bit addresses


def tlp_rate(generation: int, width: int, mps: int) -> int:
    """reference.md 4.7: the rate after encoding, less two DLLPs of 8 B in each ack limit, and SKP sets."""
    lanes = {3: 8, 4: 16, 5: 32}[generation] * 10**9 * width
    small = {1: 14, 2: 14, 4: 14, 8: 25, 16: 30}[width]
    large = {1: 10, 2: 10, 4: 10, 8: 10, 16: 20}[width]
    limit = (mps + 28) * (small if mps <= 256 else large) // (10 * width) + 115
    return int(Fraction(lanes * 128, 130) * (1 - Fraction(16, limit) - Fraction(4, 1538)))


def whole_dws(size: int) -> int:
    return -(-size // 4) * 4


def cut(size: int, limit: int) -> list[int]:
    """A transfer from a page's beginning on, in pieces of that limit."""
    return [min(limit, size - at) for at in range(0, size, limit)]


@dataclass
class Wire:
    """One link between a part and the PCIe switch, in one direction: packets in turn."""

    rate: int
    free: int = 0

    def ser(self, size: int) -> int:
        return -(-size * 8 * SECOND // self.rate)

    def send(self, at: int, size: int) -> int:
        """When the packet, ready at `at`, starts."""
        start = max(at, self.free)
        self.free = start + self.ser(size)
        return start


@dataclass
class Legs:
    """`h0` to `h1`; only the directions where packets meet their own kind matter."""

    scenario: Scenario
    rate: int = field(init=False)

    def __post_init__(self) -> None:
        host = self.scenario.host
        assert host.pcie is not None and host.gpu is not None and host.cpu is not None and host.queues is not None
        self.pcie, self.gpu, self.cpu, self.queues, self.nic = host.pcie, host.gpu, host.cpu, host.queues, host.nic
        self.path, self.direct = host.path, host.gpu_direct
        self.rate = tlp_rate(self.pcie.generation, self.pcie.width, self.pcie.mps_bytes)
        self.on_gpu = self.path == "ibgda" and self.queues.nic_buf_memtype == "gpumem"

    @property
    def way(self) -> int:
        """From one part to another, without the packet itself."""
        middle = self.pcie.switch_ps if self.pcie.attach == "switch" else self.pcie.root_complex_ps
        return 2 * self.pcie.link_ps + middle

    def ser(self, size: int) -> int:
        return Wire(self.rate).ser(size)

    def written(self, size: int) -> int:
        """A write, from its first bit out to its last byte in memory."""
        return self.way + sum(self.ser(MWR + whole_dws(piece)) for piece in cut(size, self.pcie.mps_bytes))

    def read(self, at: int, size: int, *, gpu: bool) -> list[tuple[int, int]]:
        """A read asked for at `at`: when how many bytes are here, from the first on, request by request."""
        found: list[tuple[int, int]] = []
        here, tags = 0, self.pcie.tags
        asks, answers = Wire(self.rate), Wire(self.rate)
        for request in cut(size, self.pcie.mrrs_bytes):
            may = found[len(found) - tags][0] if len(found) >= tags else at  # its tag comes free
            asked = asks.send(may, MRD) + self.way + self.ser(MRD)
            ready = asked + (self.gpu.read_ps if gpu else self.cpu.read_ps)
            end = 0
            for piece in cut(request, self.pcie.mps_bytes):
                packet = CPLD + whole_dws(piece)
                end = answers.send(ready, packet) + self.way + self.ser(packet)
            here += request
            found.append((end, here))
        return found

    def inline(self, size: int) -> bool:
        return 0 < size <= self.queues.inline_bytes

    def wqe_bytes(self, size: int) -> int:
        segments = 2 + (-(-(4 + size) // 16) if self.inline(size) else 1 if size else 0)
        return -(-segments * 16 // 64) * 64

    def doorbell_at_nic(self, size: int) -> tuple[int, bool]:
        """When the NIC is told, and whether the WQE came along."""
        copies = not self.direct and size and not (self.path == "ibgda" and self.inline(size))
        at = self.gpu.copy_ps + self.written(size) if copies else 0
        if self.path == "ibgda":
            at += self.gpu.post_ps
            out = Wire(self.rate)
            if not self.on_gpu:
                for piece in cut(self.wqe_bytes(size), 64):
                    out.send(at, MWR + piece)
            at += self.gpu.ring_ps
            if self.queues.nic_handler == "cpu":
                at = out.send(at, MWR + 8) + self.written(8)
                at += self.cpu.poll_ps + self.cpu.post_ps
                out = Wire(self.rate)
                if self.on_gpu:
                    out.send(at, MWR + 4)  # the doorbell record
            elif not self.on_gpu:
                out.send(at, MWR + 4)
            return out.send(at, MWR + 8) + self.written(8), False
        if self.path == "cpu_proxy":
            at += self.gpu.request_ps + self.written(32) + self.cpu.poll_ps + self.cpu.request_ps
        else:
            at += self.cpu.synchronize_ps + self.cpu.post_ps
        wqe = self.wqe_bytes(size)
        if self.cpu.blueflame and wqe <= self.pcie.mps_bytes:
            return at + self.written(wqe), True
        return at + self.written(8), False

    def payload(self, size: int) -> list[tuple[int, int]]:
        """When how much of the payload is in the NIC."""
        at, carried = self.doorbell_at_nic(size)
        at = self.read(at, 256, gpu=False)[-1][0]  # the queue pair's context, in host memory
        if not carried:
            at = self.read(at, self.wqe_bytes(size), gpu=self.on_gpu)[-1][0]
        if not size or self.inline(size):
            return [(at, size)]
        return self.read(at, size, gpu=self.direct)

    def frames(self, size: int) -> list[tuple[int, int]]:
        """Payload and wire bytes of each frame: LRH 8, BTH 12, RETH 16 in the first, ICRC 4, VCRC 2."""
        fabric = self.scenario.fabric
        beside = 8 + 12 + 4 + 2 + fabric.framing_overhead_bytes
        pieces = cut(size, fabric.path_mtu_bytes) or [0]
        return [(piece, beside + whole_dws(piece) + (0 if number else 16)) for number, piece in enumerate(pieces)]

    def crossing(self) -> int:
        """Two cables and a switch."""
        fabric = self.scenario.fabric
        cable = fabric.host_cable_mm * fabric.propagation_ps_per_m // 1000
        return 2 * cable + fabric.hop_latency_ps

    def last_bits(self, size: int) -> list[int]:
        """Of each frame, into the far NIC; it leaves as soon as its bytes are here and the one before is out."""
        payload, mtu = self.payload(size), self.scenario.fabric.path_mtu_bytes
        begin = next(when for when, here in payload if here >= min(mtu, size)) + self.nic.post_ps
        wire = Wire(self.scenario.fabric.rate_bps)
        sent, found = 0, []
        for piece, wire_bytes in self.frames(size):
            sent += piece
            here = next(when for when, here in payload if here >= sent)
            end = wire.send(max(begin, here), wire_bytes) + wire.ser(wire_bytes)
            found.append(end + self.crossing())
        return found

    def visible(self, size: int) -> int:
        """The last byte in the far GPU's memory."""
        bus, at = Wire(self.rate), 0
        for (piece, _), last_bit in zip(self.frames(size), self.last_bits(size), strict=True):
            at = last_bit + self.nic.receive_ps
            for packet in cut(piece, self.pcie.mps_bytes):
                packet_bytes = MWR + whole_dws(packet)
                at = bus.send(last_bit + self.nic.receive_ps, packet_bytes) + self.way + self.ser(packet_bytes)
        return at if self.direct or not size else at + self.gpu.copy_ps + self.copied_out(size)

    def copied_out(self, size: int) -> int:
        """Frame by frame, as it came."""
        packets = [packet for piece, _ in self.frames(size) for packet in cut(piece, self.pcie.mps_bytes)]
        return self.way + sum(self.ser(MWR + whole_dws(packet)) for packet in packets)

    def completed(self, size: int) -> int:
        """The program knows."""
        ack_bytes = 8 + 12 + 4 + 4 + 2 + self.scenario.fabric.framing_overhead_bytes
        at = self.last_bits(size)[-1] + self.nic.receive_ps + self.nic.ack_turnaround_ps
        at += Wire(self.scenario.fabric.rate_bps).ser(ack_bytes) + self.crossing() + self.nic.receive_ps
        at += self.written(64)
        if self.path == "ibgda":
            return at + self.gpu.poll_ps
        at += self.cpu.poll_ps
        return at if self.path == "cpu_sync" else at + self.written(8) + self.gpu.poll_ps
