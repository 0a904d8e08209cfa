"""What lies between an application and its NIC: the PCIe tree, the GPU, the CPU, and the queues that they share."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from emu import units
from emu.errors import ScenarioError
from emu.scenario.field import SIZES, Flag, Model, Time, choice, quantity, refuse, whole

BLOCK_BYTES = 64  # a WQE is so many of these
INLINE_HEAD_BYTES = 36  # of a WQE before its inline data: control, remote address, byte count
INLINE_LIMIT_BYTES = 4 * BLOCK_BYTES - INLINE_HEAD_BYTES  # what BlueFlame takes
PATHS = ("ibgda", "cpu_proxy", "cpu_sync")


def _parse_packet_bytes(value: object) -> int:
    """MPS and MRRS: PCI Express has 128 to 4096, powers of two."""
    size_bytes = units.parse_size_bytes(value)
    if size_bytes not in (128, 256, 512, 1024, 2048, 4096):
        raise ScenarioError(f"{value!r} is not allowed; allowed: 128B, 256B, 512B, 1KiB, 2KiB, 4KiB")
    return size_bytes


def _check_width(lanes: int) -> int:
    if lanes & lanes - 1:
        raise refuse(f"{lanes} is no width of a PCIe link; allowed: 1, 2, 4, 8, 16")
    return lanes


def _parse_inline_bytes(value: object) -> int:
    size_bytes = units.parse_size_bytes(value)
    if size_bytes > INLINE_LIMIT_BYTES:
        raise ScenarioError(f"{value!r} is too large; a WQE of four blocks holds {INLINE_LIMIT_BYTES}B")
    return size_bytes


PacketSize = Annotated[int, *quantity(_parse_packet_bytes, SIZES)]
InlineSize = Annotated[int, *quantity(_parse_inline_bytes, SIZES)]
MessageRate = Annotated[int, *quantity(units.parse_message_rate, units.MESSAGE_RATE_UNITS)]


class PcieValues(Model):
    """The PCIe tree of a host: NIC, GPU and root complex on one switch, or NIC and GPU on the root complex."""

    attach: Annotated[Literal["switch", "root_complex"], *choice("switch", "root_complex")]
    generation: Annotated[int, *whole(3, 5, "earlier and later ones frame otherwise")]
    width: Annotated[int, *whole(1, 16), AfterValidator(_check_width)]
    mps_bytes: PacketSize = Field(alias="mps")  # Max_Payload_Size
    mrrs_bytes: PacketSize = Field(alias="mrrs")  # Max_Read_Request_Size
    tags: Annotated[int, *whole(1, 1024, "10-bit tags")]  # reads that the NIC may have outstanding
    link_ps: Time = Field(alias="link")  # of one link, its PHYs included
    switch_ps: Time = Field(alias="switch")  # port to port
    root_complex_ps: Time = Field(alias="root_complex")  # the same, between two root ports


class Pcie(PcieValues):
    """And what its packets cross between the GPU and the rest: nothing, or a veth to a namespace of the GPU's own."""

    wire: Annotated[Literal["memory", "veth"], *choice("memory", "veth")] = "memory"


class Gpu(Model):
    """A GPU that asks for transfers itself, in `warps` warps side by side."""

    warps: Annotated[int, *whole(1, 65_536)]
    post_ps: Time = Field(alias="post")  # a warp's: slot reserved, WQE written to the queue, fenced
    ring_ps: Time = Field(alias="ring")  # a warp's: doorbell record and doorbell stored
    request_ps: Time = Field(alias="request")  # a warp's: request written to the proxy's ring
    poll_ps: Time = Field(alias="poll")  # from a word written in its memory to a warp knowing
    read_ps: Time = Field(alias="read")  # of its memory, through its BAR
    copy_ps: Time = Field(alias="copy")  # what a copy between its memory and the host's costs besides its bytes


class Cpu(Model):
    """A CPU that posts for the GPU: `cores` proxy threads, or one that waits for the kernel's end."""

    cores: Annotated[int, *whole(1, 1024)]
    batch: Annotated[int, *whole(1, 4096)]  # requests that a thread takes before it looks at its ring and CQs again
    poll_ps: Time = Field(alias="poll")  # one look at the ring and the CQs
    request_ps: Time = Field(alias="request")  # a proxy thread's, for each request, from decoding to doorbell
    synchronize_ps: Time = Field(alias="synchronize")  # the kernel's end, seen by the host
    post_ps: Time = Field(alias="post")  # ibv_post_send, doorbell included
    read_ps: Time = Field(alias="read")  # of host memory, by a device
    blueflame: Flag  # whether a WQE goes to the NIC with its doorbell


class Queues(Model):
    """Send queues and how they are rung, under NVSHMEM's names."""

    qp_depth: Annotated[int, *whole(1, 32_768, "mlx5's longest send queue")]  # WQEs of 64 bytes
    num_requests_in_batch: Annotated[int, *whole(1, 32_768)]  # WQEs a doorbell, where more are on their way
    num_rc_per_pe: Annotated[int, *whole(1, 65_536)]  # queue pairs a peer, for harnesses
    nic_handler: Annotated[Literal["gpu", "cpu"], *choice("gpu", "cpu")]  # who rings
    nic_buf_memtype: Annotated[Literal["gpumem", "hostmem"], *choice("gpumem", "hostmem")]  # where ibgda's queues lie
    collapsed_cq: Flag  # whether ibgda's CQ is one CQE, written over and over; CPUs poll a ring of them
    inline_bytes: InlineSize = Field(alias="inline")  # the longest payload that goes into its WQE

    @model_validator(mode="after")
    def _check_depth(self) -> Self:
        if self.qp_depth & self.qp_depth - 1:
            raise refuse(f"{self.qp_depth} is no power of two, as a ring's length is", "qp_depth")
        if self.num_requests_in_batch > self.qp_depth:
            raise refuse(
                f"{self.num_requests_in_batch}: a doorbell's batch is at most qp_depth, {self.qp_depth}"
                " (what is not given is the profile's)",
                "num_requests_in_batch",
            )
        blocks = -(-(INLINE_HEAD_BYTES + self.inline_bytes) // BLOCK_BYTES)
        if blocks > self.qp_depth:
            raise refuse(
                f"{self.inline_bytes}B: with so much in it a WQE has {blocks} blocks, and qp_depth is {self.qp_depth}",
                "inline",
            )
        return self
