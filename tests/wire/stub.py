"""A framing small enough to read in a failing test: Ethernet header, a byte no CRC covers, PSN, payload, CRC."""

from __future__ import annotations

import zlib
from struct import Struct, error

from emu.errors import WireError
from emu.frame import Envelope, Frame

ETHERNET = bytes.fromhex("020000000002 020000000001 88b5")
HEADER = Struct("!BI")  # a type of service, which may change on the way; PSN
CRC = Struct("!I")
TOS_OFFSET = len(ETHERNET)


class StubFraming:
    """As emu.frame.Framing; counts what it encodes."""

    name = "stub"

    def __init__(self) -> None:
        self.encoded = 0

    def wire_bytes(self, frame: Frame) -> int:
        """The bytes and a preamble and gap."""
        return len(ETHERNET) + HEADER.size + len(frame.payload) + CRC.size + 20

    def encode(self, frame: Frame) -> bytes:
        """The frame's bytes."""
        self.encoded += 1
        covered = HEADER.pack(0, frame.psn)[1:] + bytes(frame.payload)
        return ETHERNET + bytes([frame.envelope.tos]) + covered + CRC.pack(zlib.crc32(covered))

    def decode(self, data: bytes) -> Frame:
        """The frame those bytes are. Raises WireError."""
        try:
            tos, psn = HEADER.unpack_from(data, TOS_OFFSET)
            (crc,) = CRC.unpack(data[-CRC.size :])
        except error as reason:
            raise WireError(str(reason)) from None
        covered = data[TOS_OFFSET + 1 : -CRC.size]
        if data[:TOS_OFFSET] != ETHERNET or zlib.crc32(covered) != crc:
            raise WireError("bad CRC")
        return make_frame(self, psn, covered[HEADER.size - 1 :], tos=tos)


def make_frame(framing: StubFraming, psn: int, payload: bytes = b"payload", tos: int = 0) -> Frame:
    """A frame of one flow."""
    envelope = Envelope(framing, source=1, destination=2, source_mac=1, destination_mac=2, destination_qp=3, tos=tos)
    return Frame(envelope, 4, psn, payload)
