"""The slotted objects that devices pass: a Frame, the Envelope its queue pair gives it, the Message it is part of."""

from __future__ import annotations

from typing import Any, Protocol

Buffer = bytes | bytearray | memoryview


class Framing(Protocol):
    """How frames of one kind of network look: RoCEv2 over Ethernet, or native InfiniBand."""

    name: str

    def wire_bytes(self, frame: Frame) -> int:
        """Bytes of wire time: everything up to the end of the gap before the next frame."""

    def encode(self, frame: Frame) -> bytes:
        """The bytes that cross a veth (no FCS; native frames behind an Ethernet header)."""

    def decode(self, data: bytes) -> Frame:
        """The frame those bytes are. Raises WireError; a bad ICRC or VCRC is a WireError too."""


class Envelope:
    """What all frames from one queue pair to its peer share; made once, at connection."""

    __slots__ = (
        "destination",
        "destination_mac",
        "destination_qp",
        "framing",
        "lane",
        "path_hash",
        "pkey",
        "priority",
        "source",
        "source_mac",
        "templates",
        "tos",
        "ttl",
        "udp_source_port",
    )

    def __init__(
        self,
        framing: Framing,
        *,
        source: int,
        destination: int,
        source_mac: int,
        destination_mac: int,
        destination_qp: int,
        udp_source_port: int = 0,
        tos: int = 0,
        ttl: int = 64,
        priority: int = 0,
        lane: int = 0,
        pkey: int = 0xFFFF,
        path_hash: int = 0,
    ) -> None:
        self.framing = framing
        self.source = source  # IPv4 address, or LID on a native fabric
        self.destination = destination
        self.source_mac = source_mac
        self.destination_mac = destination_mac
        self.destination_qp = destination_qp
        self.udp_source_port = udp_source_port  # RoCEv2's entropy; 0 on a native fabric
        self.tos = tos  # DSCP and ECN; the low two bits are set to CE by a switch that marks
        self.ttl = ttl
        self.priority = priority  # 802.1p priority, or SL
        self.lane = lane  # what that leads to at every port: a queue, or a VL
        self.pkey = pkey
        self.path_hash = path_hash  # of the fields a switch may hash: equal for all frames of a flow
        self.templates: dict[Any, Any] = {}  # header bytes by opcode and size: the framing's own


class Message:
    """One work request on its way: its place in the PSN space and its times, in picoseconds (-1: not yet)."""

    __slots__ = (
        "completed_ps",
        "delivered_ps",
        "first_bit_ps",
        "flow",
        "hops",
        "last_bit_ps",
        "number",
        "operation",
        "parts",
        "posted_ps",
        "retransmitted",
        "size_bytes",
        "status",
        "steps",
    )

    def __init__(self, flow: Any, number: int, size_bytes: int, posted_ps: int) -> None:
        self.flow = flow  # whose message it is: set by verbs, read by measurement
        self.number = number  # within its flow
        self.operation = "RDMA_WRITE"  # as `enum ibv_wr_opcode` has it
        self.size_bytes = size_bytes
        self.posted_ps = posted_ps
        self.first_bit_ps = -1  # out of the source NIC
        self.last_bit_ps = -1  # into the destination NIC
        self.delivered_ps = -1  # visible in the destination's memory
        self.completed_ps = -1  # the requester saw its CQE
        self.parts = 0  # of its latency, by cause: emu/parts.py; set with last_bit_ps
        self.hops: list[Any] = []  # what each egress on the way remembers of this message: devices/port.py
        self.retransmitted = 0  # frames sent again
        self.status = ""  # a completion status, once there is one
        self.steps: list[int] | None = None  # what its host part is made of, in picoseconds: emu/parts.py


class Frame:
    """One frame from NIC to NIC. Headers as fields; `data` is its bytes, made when a wire first needs them."""

    __slots__ = (
        "ack_request",
        "aeth",
        "bad",
        "becn",
        "carries_data",
        "data",
        "eligible_ps",
        "envelope",
        "extension",
        "fecn",
        "hop",
        "ingress",
        "message",
        "opcode",
        "parts",
        "payload",
        "psn",
        "reth",
        "ser_ps",
        "solicited",
        "waits_mark",
        "wire_bytes",
    )

    def __init__(
        self,
        envelope: Envelope,
        opcode: int,
        psn: int,
        payload: Buffer = b"",
        message: Message | None = None,
        ack_request: bool = False,
        reth: tuple[int, int, int] | None = None,
        aeth: tuple[int, int] | None = None,
    ) -> None:
        self.envelope = envelope
        self.opcode = opcode
        self.psn = psn
        self.payload = payload  # without padding
        self.ack_request = ack_request
        self.solicited = False
        self.fecn = False
        self.becn = False
        self.reth = reth  # virtual address, rkey, DMA length (bytes)
        self.aeth = aeth  # syndrome, MSN
        self.extension: tuple[int, ...] | None = None  # fields of the other headers after BTH, in wire order
        self.message = message
        self.carries_data = message is not None
        self.bad = False  # its link CRC is wrong: takes wire time, is never accepted
        self.data: bytes | None = None
        self.wire_bytes = envelope.framing.wire_bytes(self)
        self.ser_ps = 0  # serialization at the egress it last left
        self.hop = 0  # egresses passed so far
        self.parts = 0  # of its age when it may leave the egress it is at, by cause: emu/parts.py
        self.eligible_ps = 0  # since when it could have left the egress it waits at
        self.waits_mark = 0  # the waits of that egress when it began to wait there: emu/parts.py
        self.ingress: Any = None  # which buffer holds it, or will at the end of the link it is on


class ControlFrame(Frame):
    """A frame of the link's own, from one port to the other: flow control. What it says is in `control`."""

    __slots__ = ("control",)

    def __init__(self, envelope: Envelope, control: Any, wire_bytes: int) -> None:
        self.envelope = envelope
        self.control = control
        self.wire_bytes = wire_bytes
        self.message = None
        self.carries_data = False
        self.bad = False
        self.data = None
        self.ser_ps = self.hop = self.parts = self.eligible_ps = self.waits_mark = 0
        self.ingress = None
