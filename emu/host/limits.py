"""What bounds a host's message rate: each term of the design's minimum, and which of them binds.

`min(NIC ceiling, tags / (reads per message x read RTT), PCIe bytes per second and direction / bytes per message,
queue pairs x per-QP rate)`, and who posts. All in messages a second; exact fractions.
"""

from __future__ import annotations

from fractions import Fraction

from emu.mlx5.cqe import CQE_BYTES
from emu.mlx5.doorbell import DOORBELL_BYTES
from emu.mlx5.segments import WQEBB_BYTES
from emu.pcie.bandwidth import tlp_rate_bps
from emu.scenario.host import Host
from emu.units import SECOND

POSTERS = {"ibgda": "GPU warps", "cpu_proxy": "proxy threads", "cpu_sync": "synchronisation with the host"}
HEADER_BYTES, COMPLETION_BYTES = 24, 20  # of link time, besides data: reference 4.7
RCB_BYTES = 64


class Limits:
    """Of RDMA WRITEs of `size_bytes` over `qps` queue pairs; `wire_ps`: what each takes of the network's link."""

    def __init__(self, host: Host, *, size_bytes: int, qps: int, wire_ps: Fraction) -> None:
        assert host.pcie is not None and host.gpu is not None and host.cpu is not None and host.queues is not None
        self._host, self._pcie, self._gpu, self._cpu = host, host.pcie, host.gpu, host.cpu
        self._queues = host.queues
        self._size_bytes = size_bytes
        self._qps = qps
        self._wire_ps = wire_ps
        self._byte_ps = Fraction(
            8 * SECOND, tlp_rate_bps(self._pcie.generation, self._pcie.width, self._pcie.mps_bytes)
        )

    def terms(self) -> dict[str, Fraction]:
        """Each bound by its name, in messages a second."""
        nic = self._host.nic
        assert nic.message_rate is not None and nic.qp_message_rate is not None
        out_bytes, in_bytes, landed_bytes = self._pcie_bytes()
        reads, read_ps = self._reads()
        terms = {
            "NIC message rate": Fraction(nic.message_rate),
            "queue pairs": Fraction(nic.qp_message_rate * self._qps),
            "PCIe from the NIC": SECOND / (out_bytes * self._byte_ps),
            "PCIe to the NIC": SECOND / (in_bytes * self._byte_ps),
            "network": SECOND / self._wire_ps,
            POSTERS[self._host.path]: self._poster(),
        }
        if landed_bytes:
            terms["PCIe at the receiver"] = SECOND / (landed_bytes * self._byte_ps)
        if reads:
            terms["read tags"] = self._pcie.tags * SECOND / read_ps
        return terms

    def binding(self) -> tuple[str, Fraction]:
        """The lowest, and its name."""
        return min(self.terms().items(), key=lambda term: term[1])

    def _batch(self) -> int:
        return self._queues.num_requests_in_batch if self._host.path == "ibgda" else 1

    def _wqe_read_blocks(self) -> Fraction:
        """WQEs that one read brings; 0 where they come with the doorbell."""
        if self._host.path != "ibgda" and self._cpu.blueflame:
            return Fraction(0)
        a_read = self._pcie.mrrs_bytes // WQEBB_BYTES
        batch = self._batch()
        return Fraction(batch, -(-batch // a_read))

    def _is_inline(self) -> bool:
        return 0 < self._size_bytes <= self._queues.inline_bytes

    def _payload_reads(self) -> int:
        return 0 if self._is_inline() else -(-self._size_bytes // self._pcie.mrrs_bytes)

    def _completions_bytes(self, length: int) -> int:
        """Link bytes of the completions of reads of so many bytes in all."""
        return length + -(-length // self._pcie.mps_bytes) * COMPLETION_BYTES

    def _pcie_bytes(self) -> tuple[Fraction, Fraction, Fraction]:
        """From the sender's NIC, to it, and into the receiver's memory, a message."""
        blocks, payload = self._wqe_read_blocks(), 0 if self._is_inline() else self._size_bytes
        wqe_reads = 1 / blocks if blocks else Fraction(0)
        from_nic = HEADER_BYTES * (self._payload_reads() + wqe_reads) + HEADER_BYTES + CQE_BYTES
        to_nic = Fraction(self._completions_bytes(payload))
        if blocks:
            to_nic += wqe_reads * self._completions_bytes(int(blocks) * WQEBB_BYTES)
            to_nic += Fraction(HEADER_BYTES + DOORBELL_BYTES, self._batch())
        else:
            to_nic += HEADER_BYTES + WQEBB_BYTES
        landed = self._size_bytes + -(-self._size_bytes // self._pcie.mps_bytes) * HEADER_BYTES
        return Fraction(from_nic), to_nic, Fraction(landed)

    def _reads(self) -> tuple[Fraction, Fraction]:
        """Reads a message, and for how long they hold tags in all, unloaded."""
        blocks, payload_reads = self._wqe_read_blocks(), self._payload_reads()
        on_gpu = self._host.path == "ibgda" and self._queues.nic_buf_memtype == "gpumem"
        held_ps = Fraction(0)
        if blocks:
            held_ps += self._read_ps(int(blocks) * WQEBB_BYTES, on_gpu=on_gpu) / blocks
        if payload_reads:
            each = min(self._size_bytes, self._pcie.mrrs_bytes)
            held_ps += payload_reads * self._read_ps(each, on_gpu=self._host.gpu_direct)
        return (1 / blocks if blocks else Fraction(0)) + payload_reads, held_ps

    def _read_ps(self, length: int, *, on_gpu: bool) -> Fraction:
        pcie = self._pcie
        middle_ps = pcie.switch_ps if pcie.attach == "switch" else pcie.root_complex_ps
        memory_ps = self._gpu.read_ps if on_gpu else self._cpu.read_ps
        bytes_ps = (HEADER_BYTES + self._completions_bytes(length)) * self._byte_ps
        return 2 * (2 * pcie.link_ps + middle_ps) + memory_ps + bytes_ps

    def _poster(self) -> Fraction:
        """Who builds WQEs and rings."""
        gpu, cpu = self._gpu, self._cpu
        if self._host.path == "ibgda":
            return gpu.warps * SECOND / (gpu.post_ps + Fraction(gpu.ring_ps, self._batch()))
        if self._host.path == "cpu_sync":
            return Fraction(SECOND, cpu.synchronize_ps + cpu.post_ps)
        thread = Fraction(SECOND * cpu.batch, cpu.poll_ps + cpu.batch * cpu.request_ps)
        return min(min(cpu.cores, self._qps) * thread, Fraction(gpu.warps * SECOND, gpu.request_ps))
