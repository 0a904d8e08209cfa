"""Where things lie on a host's PCIe tree: one address map and the requester IDs, the same on every host."""

from __future__ import annotations

from emu.mlx5.doorbell import UAR_BYTES

# Application memory begins where emu/transport/memory.py gives addresses out; it is the GPU's, behind its BAR.
GPU_START, GPU_BYTES = 0x7E00_0000_0000, 0x0200_0000_0000
GPU_QUEUES, GPU_QUEUES_BYTES = GPU_START, 0x0100_0000_0000  # of it, what is not the application's
HOST_START, HOST_BYTES = 0x1000_0000_0000, 0x0100_0000_0000
UAR_START = 0x3000_0000_0000

CPU_ID, NIC_ID, GPU_ID = 0x0000, 0x0100, 0x0200
"""Bus, device and function."""

CONTEXT_BYTES = 256  # of a queue pair in host memory, which the NIC reads where it does not keep it
RING_BYTES = 1 << 22  # NVSHMEM's proxy ring
REQUEST_BYTES = 32  # of a put in it: four entries of 8 bytes

assert UAR_BYTES == 4096  # one page
