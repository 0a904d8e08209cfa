"""A host's PCIe tree: a switch, or the root complex itself, with NIC, GPU and CPU round it, one link each."""

from __future__ import annotations

from collections.abc import Callable

from emu.engine import Engine
from emu.host.address_space import AddressSpace
from emu.host.dma import DmaEngine
from emu.host.forwarder import Forwarder
from emu.host.link import FarEnd, PcieLink
from emu.host.memory import Memory
from emu.host.places import (
    CPU_ID,
    GPU_BYTES,
    GPU_ID,
    GPU_QUEUES,
    GPU_QUEUES_BYTES,
    GPU_START,
    HOST_BYTES,
    HOST_START,
    NIC_ID,
    UAR_START,
)
from emu.mlx5.doorbell import UAR_BYTES
from emu.pcie.bandwidth import tlp_rate_bps
from emu.scenario.host import Host as HostModel
from emu.taps import Taps
from emu.topology import PCIE_LEAVES, PCIE_MIDDLE, part_name, pcie_link_names
from emu.wire.base import Wire


class Tree:
    """Links, memories, and the DMA engines of the three. `deliver_nic`: what the NIC does with a packet."""

    def __init__(
        self, engine: Engine, host: str, model: HostModel, taps: Taps, deliver_nic: Callable[..., object]
    ) -> None:
        pcie, gpu, cpu = model.pcie, model.gpu, model.cpu
        assert pcie is not None and gpu is not None and cpu is not None
        rate_bps = tlp_rate_bps(pcie.generation, pcie.width, pcie.mps_bytes)
        middle_ps = pcie.switch_ps if pcie.attach == "switch" else pcie.root_complex_ps
        self.host = host
        self.middle = Forwarder(part_name(host, PCIE_MIDDLE), middle_ps)
        self.links = {
            name: PcieLink(engine, name, rate_bps, pcie.link_ps, taps)
            for both in pcie_link_names(host)
            for name in both
        }
        queues, host_space = AddressSpace(GPU_QUEUES, GPU_QUEUES_BYTES), AddressSpace(HOST_START, HOST_BYTES)
        self.gpu_memory = self._memory("gpu", queues, GPU_ID, pcie.mps_bytes, gpu.read_ps)
        self.host_memory = self._memory("cpu", host_space, CPU_ID, pcie.mps_bytes, cpu.read_ps)
        self.gpu, self.nic, self.cpu = (
            DmaEngine(self.out(leaf), number, mps_bytes=pcie.mps_bytes, mrrs_bytes=pcie.mrrs_bytes, tags=pcie.tags)
            for leaf, number in (("gpu", GPU_ID), ("nic", NIC_ID), ("cpu", CPU_ID))
        )
        self._claim()
        self._ends = {
            "gpu": self.gpu_memory.far_end(),
            "nic": FarEnd(deliver_nic),
            "cpu": self.host_memory.far_end(),
        }

    def out(self, leaf: str) -> PcieLink:
        """The link from that leaf to the middle."""
        return self.links[f"{part_name(self.host, leaf)}-{self.middle.name}"]

    def to(self, leaf: str) -> PcieLink:
        """The link from the middle to that leaf."""
        return self.links[f"{self.middle.name}-{part_name(self.host, leaf)}"]

    def join(self, gpu_wires: tuple[Wire, Wire] | None = None) -> None:
        """Connect everything; the GPU's link, by those wires (out, in) if there are any."""
        for leaf in PCIE_LEAVES:
            out, back = gpu_wires if gpu_wires is not None and leaf == "gpu" else (None, None)
            self.out(leaf).join(self.middle.far_end(), out)
            self.to(leaf).join(self._ends[leaf], back)

    def _memory(self, leaf: str, space: AddressSpace, number: int, mps_bytes: int, read_ps: int) -> Memory:
        return Memory(
            part_name(self.host, leaf), space, self.out(leaf), completer=number, mps_bytes=mps_bytes, read_ps=read_ps
        )

    def _claim(self) -> None:
        middle = self.middle
        middle.claim(GPU_START, GPU_BYTES, self.to("gpu"))
        middle.claim(HOST_START, HOST_BYTES, self.to("cpu"))
        middle.claim(UAR_START, UAR_BYTES, self.to("nic"))
        for leaf, number in (("gpu", GPU_ID), ("nic", NIC_ID), ("cpu", CPU_ID)):
            middle.claim_requester(number, self.to(leaf))
