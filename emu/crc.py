"""The check sums of RDMA frames: ICRC and VCRC (IBTA vol. 1, 7.8; RoCEv2: annex A17), and Ethernet's FCS.

Each returns an integer that goes on the wire least significant byte first. The ICRC functions take the bytes from the
network header to the padding, without the ICRC itself, and continue: `zlib.crc32(more, icrc)` is the ICRC of both."""

from __future__ import annotations

import zlib

from anycrc import CRC

Buffer = bytes | bytearray | memoryview

ICRC_BYTES = 4
VCRC_BYTES = 2
FCS_BYTES = 4

_LRH_OF_ONES = zlib.crc32(b"\xff" * 8)  # what RoCE feeds in place of the LRH it lacks
_UDP_BYTES = 8
_GRH_BYTES = 40  # an IPv6 header has the same size and layout
_LRH_BYTES = 8
_MASKED_BTH_BYTES = 5  # up to the byte with FECN, BECN and reserved bits, which counts as ones

# x^16 + x^12 + x^3 + x + 1; a C function, bound once: `more_vcrc(bytes, before)` continues a VCRC.
more_vcrc = CRC(width=16, poly=0x100B, init=0xFFFF, refin=True, refout=True, xorout=0xFFFF).calc


def icrc_roce_ipv4(packet: Buffer) -> int:
    """ICRC of RoCEv2 over IPv4: ToS, TTL and both checksums count as ones (annex A17.3.3)."""
    udp = (packet[0] & 0x0F) * 4
    masked = bytearray(packet[: udp + _UDP_BYTES + _MASKED_BTH_BYTES])
    masked[1] = masked[8] = 0xFF
    masked[10:12] = masked[udp + 6 : udp + 8] = b"\xff\xff"
    return _finish(packet, masked, _LRH_OF_ONES)


def icrc_roce_ipv6(packet: Buffer) -> int:
    """ICRC of RoCEv2 over IPv6: traffic class, flow label, hop limit and UDP checksum count as ones."""
    masked = bytearray(packet[: _GRH_BYTES + _UDP_BYTES + _MASKED_BTH_BYTES])
    _mask_grh(masked, 0)
    masked[46:48] = b"\xff\xff"
    return _finish(packet, masked, _LRH_OF_ONES)


def icrc_roce_v1(packet: Buffer) -> int:
    """ICRC of RoCEv1 (GRH straight after EtherType 0x8915): as a global packet whose LRH is all ones."""
    masked = bytearray(packet[: _GRH_BYTES + _MASKED_BTH_BYTES])
    _mask_grh(masked, 0)
    return _finish(packet, masked, _LRH_OF_ONES)


def icrc_local(packet: Buffer) -> int:
    """ICRC of a local InfiniBand packet (LNH 2, from its LRH on): the VL counts as ones."""
    masked = bytearray(packet[: _LRH_BYTES + _MASKED_BTH_BYTES])
    masked[0] |= 0xF0
    return _finish(packet, masked, 0)


def icrc_global(packet: Buffer) -> int:
    """ICRC of a global InfiniBand packet (LNH 3, from its LRH on): LRH and what routers change count as ones."""
    masked = bytearray(packet[: _LRH_BYTES + _GRH_BYTES + _MASKED_BTH_BYTES])
    masked[:_LRH_BYTES] = b"\xff" * _LRH_BYTES
    _mask_grh(masked, _LRH_BYTES)
    return _finish(packet, masked, 0)


def vcrc(packet: Buffer, before: int | None = None) -> int:
    """CRC-16 of a native packet, LRH to ICRC, nothing masked; of 4 bytes, a flow-control packet's LPCRC.

    `before` is the VCRC of what lies before these bytes, if anything does.
    """
    return int(more_vcrc(packet) if before is None else more_vcrc(packet, before))


def fcs(frame: Buffer) -> int:
    """Ethernet's frame check sequence, from the destination address to the last byte before it."""
    return zlib.crc32(frame)


def _mask_grh(masked: bytearray, start: int) -> None:
    masked[start] |= 0x0F
    masked[start + 1 : start + 4] = b"\xff\xff\xff"
    masked[start + 7] = 0xFF


def _finish(packet: Buffer, masked: bytearray, start: int) -> int:
    length = len(masked)
    masked[-1] = 0xFF
    return zlib.crc32(memoryview(packet)[length:], zlib.crc32(masked, start))
