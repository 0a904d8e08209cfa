"""What bounds a host's message rate: each term of the design's minimum, and which of them binds.

`min(NIC ceiling, tags / (reads per message x read RTT), PCIe bytes per second and direction / bytes per message,
queue pairs x per-QP rate)`, and who posts. All in messages a second; exact fractions.
"""

from __future__ import annotations

from fractions import Fraction

from emu.mlx5.cqe import CQE_BYTES
from emu.mlx5.doorbell import BLUEFLAME_BUFFER_BYTES, DOORBELL_BYTES
from emu.mlx5.segments import WQEBB_BYTES, blocks_of, inline_segments
from emu.pcie.bandwidth import tlp_rate_bps
from emu.scenario.host import Host
from emu.units import SECOND

POSTERS = {"ibgda": "GPU warps", "cpu_proxy": "proxy threads", "cpu_sync": "synchronisation with the host"}
WRITE_SEGMENTS = 2  # of a WQE beside its data: control, remote address
HEADER_BYTES, COMPLETION_BYTES = 24, 20  # of link time, besides data: reference 4.7


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
        held_ps = self._held_ps()
        terms = {
            "NIC message rate": Fraction(nic.message_rate),
            "queue pairs": Fraction(nic.qp_message_rate * self._qps),
            "PCIe from the NIC": SECOND / (out_bytes * self._byte_ps),
            "PCIe to the NIC": SECOND / (in_bytes * self._byte_ps),
            "network": SECOND / self._wire_ps,
        }
        if poster_ps := self._poster_ps():
            terms[POSTERS[self._host.path]] = SECOND / poster_ps
        if landed_bytes:
            terms["PCIe at the receiver"] = SECOND / (landed_bytes * self._byte_ps)
        if held_ps:
            terms["read tags"] = self._pcie.tags * SECOND / held_ps
        return terms

    @property
    def blocks(self) -> int:
        """WQEBBs of each WQE."""
        data = inline_segments(self._size_bytes) if self._is_inline() else bool(self._size_bytes)
        return blocks_of(WRITE_SEGMENTS + data)

    def _batch(self) -> int:
        return self._queues.num_requests_in_batch if self._host.path == "ibgda" else 1

    def _fetched_bytes(self) -> int:
        """Of the WQEs that a doorbell tells of; 0 where they come with it."""
        wqe_bytes = self.blocks * WQEBB_BYTES
        if self._host.path == "ibgda":
            return self._batch() * wqe_bytes
        carried = self._cpu.blueflame and wqe_bytes <= min(BLUEFLAME_BUFFER_BYTES, self._pcie.mps_bytes)
        return 0 if carried else wqe_bytes

    def _gathered_bytes(self) -> int:
        return 0 if self._is_inline() else self._size_bytes

    def _is_inline(self) -> bool:
        return 0 < self._size_bytes <= self._queues.inline_bytes

    def _reads_of(self, length: int) -> list[tuple[int, int]]:
        """How many reads there are of so many bytes, by MRRS: number and length."""
        whole, rest = divmod(length, self._pcie.mrrs_bytes)
        return [(number, each) for number, each in ((whole, self._pcie.mrrs_bytes), (min(rest, 1), rest)) if number]

    def _completion_bytes(self, length: int) -> int:
        """Link bytes of the completions of one read."""
        return length + -(-length // self._pcie.mps_bytes) * COMPLETION_BYTES

    def _completions_bytes(self, length: int) -> int:
        """Link bytes of the completions of reads of so many bytes in all."""
        return sum(number * self._completion_bytes(each) for number, each in self._reads_of(length))

    def _pcie_bytes(self) -> tuple[Fraction, Fraction, Fraction]:
        """From the sender's NIC, to it, and into the receiver's memory, a message."""
        batch, fetched, gathered = self._batch(), self._fetched_bytes(), self._gathered_bytes()
        requests = Fraction(self._count(fetched), batch) + self._count(gathered)
        from_nic = HEADER_BYTES * requests + HEADER_BYTES + CQE_BYTES
        doorbell_bytes = DOORBELL_BYTES if fetched else self.blocks * WQEBB_BYTES
        to_nic = Fraction(self._completions_bytes(fetched) + HEADER_BYTES + doorbell_bytes, batch)
        to_nic += self._completions_bytes(gathered)
        landed = self._size_bytes + -(-self._size_bytes // self._pcie.mps_bytes) * HEADER_BYTES
        return from_nic, to_nic, Fraction(landed)

    def _count(self, length: int) -> int:
        return -(-length // self._pcie.mrrs_bytes)

    def _held_ps(self) -> Fraction:
        """For how long a message's reads hold tags in all, unloaded."""
        on_gpu = self._host.path == "ibgda" and self._queues.nic_buf_memtype == "gpumem"
        fetches_ps = self._reads_ps(self._fetched_bytes(), on_gpu=on_gpu) / self._batch()
        return fetches_ps + self._reads_ps(self._gathered_bytes(), on_gpu=self._host.gpu_direct)

    def _reads_ps(self, length: int, *, on_gpu: bool) -> Fraction:
        each_ps = (number * self._read_ps(each, on_gpu=on_gpu) for number, each in self._reads_of(length))
        return sum(each_ps, Fraction(0))

    def _read_ps(self, length: int, *, on_gpu: bool) -> Fraction:
        pcie = self._pcie
        middle_ps = pcie.switch_ps if pcie.attach == "switch" else pcie.root_complex_ps
        memory_ps = self._gpu.read_ps if on_gpu else self._cpu.read_ps
        bytes_ps = (HEADER_BYTES + self._completion_bytes(length)) * self._byte_ps
        return 2 * (2 * pcie.link_ps + middle_ps) + memory_ps + bytes_ps

    def _poster_ps(self) -> Fraction:
        """Between two messages of who builds WQEs and rings, at best."""
        gpu, cpu = self._gpu, self._cpu
        if self._host.path == "ibgda":
            return (gpu.post_ps + Fraction(gpu.ring_ps, self._batch())) / gpu.warps
        if self._host.path == "cpu_sync":
            return Fraction(cpu.synchronize_ps + cpu.post_ps)
        threads_ps = (cpu.request_ps + Fraction(cpu.poll_ps, cpu.batch)) / min(cpu.cores, self._qps)
        return max(threads_ps, Fraction(gpu.request_ps, gpu.warps))
