"""One message as a capture shows it: the packets it is made of, what refused it, and what answered it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from emu.opcodes import OPERATIONS, Position

PSN_MASK = 0xFFFFFF
HALF = 1 << 23  # IBTA vol. 1, 9.7.1: of two PSNs the later one is less than half the circle ahead
NAK = 0x60  # AETH's syndrome: the upper three bits say what it is, the others which (IBTA vol. 1, 9.7.5.1.1)
RNR_NAK = 0x20
KIND_MASK = 0xE0
ATOMIC_BYTES = 8
SMALLEST_MTU = 256


class Packet(NamedTuple):
    """What a message is made of, as far as it counts here; `number` is the frame's in the file, from 1."""

    number: int
    time_ns: int
    opcode: int
    psn: int
    payload_bytes: int
    reth: tuple[int, int, int] | None = None  # virtual address, rkey, DMA length
    immediate: int | None = None


@dataclass(slots=True)
class SeenMessage:
    """One request on one interface; `missing` packets were never seen there."""

    operation: str
    first_psn: int
    last_psn: int
    first_frame: int
    last_frame: int
    first_ns: int
    last_ns: int
    payload_bytes: int
    dma_bytes: int | None  # what its RETH asks for
    begun: bool  # its first packet was seen
    ended: bool = False  # its last one was
    missing: int = 0
    retransmitted: int = 0
    answered_frame: int | None = None  # the ACK, or last response, that covers it
    answered_ns: int | None = None
    immediate: int | None = None
    naks: int = 0  # that asked for one of its packets again
    rnrs: int = 0  # that said there was no receive for it
    refusal: int | None = None  # the syndrome of the NAK that ended it
    refused_ns: int | None = None
    response_bytes: int = 0  # of a READ: what came back, each packet once
    first_response_ns: int | None = None
    response_psn: int | None = None  # of the packet that came back furthest

    def extend(self, packet: Packet) -> None:
        """Its next packet, perhaps after others that are missing."""
        self.missing += distance(self.last_psn, packet.psn) - 1
        self.last_psn, self.last_frame, self.last_ns = packet.psn, packet.number, packet.time_ns
        self.payload_bytes += packet.payload_bytes
        self.end_with(packet)

    def end_with(self, packet: Packet) -> None:
        """Its last packet, if this is it, says whether an immediate comes with it, or a key is made invalid."""
        if OPERATIONS[packet.opcode].position is Position.LAST:
            self.operation, self.immediate = _operation_name(packet.opcode), packet.immediate

    @property
    def size_bytes(self) -> int:
        """Bytes that it moves: what its RETH asks for, an atomic's eight, or the payload that was seen."""
        if self.dma_bytes is not None:
            return self.dma_bytes
        return ATOMIC_BYTES if self.operation.endswith(("Compare Swap", "Fetch Add")) else self.payload_bytes

    def refuse(self, syndrome: int, time_ns: int) -> None:
        """An answer says NAK or RNR NAK to one of its packets."""
        if syndrome & KIND_MASK == RNR_NAK:
            self.rnrs += 1
        elif syndrome == NAK:
            self.naks += 1
        else:
            self.naks += 1
            self.refusal, self.refused_ns = syndrome, time_ns

    def may_bring(self, psn: int) -> bool:
        """Whether that may be a packet of what it asks for, as a READ."""
        is_read = self.operation.endswith("Read Request") and self.dma_bytes is not None
        return is_read and distance(self.first_psn, psn) <= (self.dma_bytes or 0) // SMALLEST_MTU

    def respond(self, psn: int, payload_bytes: int, time_ns: int) -> None:
        """A packet of what a READ brings back."""
        if self.first_response_ns is None:
            self.first_response_ns = time_ns
        if self.response_psn is None or is_behind(self.response_psn, psn):
            self.response_psn = psn
            self.response_bytes += payload_bytes

    @property
    def complete(self) -> bool:
        """Whether every packet of it was seen."""
        return self.begun and self.ended and not self.missing

    def covers(self, psn: int) -> bool:
        """Whether that packet is one of its."""
        return distance(self.first_psn, psn) <= distance(self.first_psn, self.last_psn)


def distance(start: int, end: int) -> int:
    """How far `end` is ahead of `start` on the circle of PSNs."""
    return end - start & PSN_MASK


def is_behind(psn: int, other: int) -> bool:
    """Whether `psn` comes before `other`."""
    return 0 < distance(psn, other) < HALF


def message_of(packet: Packet, *, begun: bool) -> SeenMessage:
    """The message that this packet, the first one seen of it, belongs to."""
    return SeenMessage(
        operation=_operation_name(packet.opcode),
        first_psn=packet.psn,
        last_psn=packet.psn,
        first_frame=packet.number,
        last_frame=packet.number,
        first_ns=packet.time_ns,
        last_ns=packet.time_ns,
        payload_bytes=packet.payload_bytes,
        dma_bytes=packet.reth[2] if packet.reth is not None else None,
        begun=begun,
        immediate=packet.immediate,
    )


def _operation_name(opcode: int) -> str:
    """`RC RDMA Write` for any packet of it."""
    words = OPERATIONS[opcode].name.split()
    return " ".join(word for word in words if word.lower() not in {place.value for place in Position})
