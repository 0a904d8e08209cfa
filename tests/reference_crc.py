"""ICRC and VCRC a second time, from the specification's words and bit by bit: nothing here is shared with `emu`."""

from __future__ import annotations

ETHERNET_BYTES = 14
# Of the header that an ICRC counts from: bytes that count as ones. A mask of 0x0F or 0xF0 is half a byte.
IPV4 = {1: 0xFF, 8: 0xFF, 10: 0xFF, 11: 0xFF}  # ToS, TTL, header checksum
IPV6 = {0: 0x0F, 1: 0xFF, 2: 0xFF, 3: 0xFF, 7: 0xFF}  # traffic class, flow label, hop limit; a GRH's too
UDP = {6: 0xFF, 7: 0xFF}  # checksum
BTH = {4: 0xFF}  # FECN, BECN, reserved
LRH_LOCAL = {0: 0xF0}  # VL
LRH_GLOBAL = dict.fromkeys(range(8), 0xFF)
Masks = list[tuple[int, dict[int, int]]]


def bitwise(data: bytes | bytearray, width: int, reflected: int) -> int:
    """A reflected CRC, all ones at the start, complemented at the end, one bit at a time."""
    ones = (1 << width) - 1
    value = ones
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (reflected if value & 1 else 0)
    return value ^ ones


def _icrc(packet: bytes, masks: Masks, before: bytes) -> bytes:
    covered = bytearray(packet)
    for start, mask in masks:
        for offset, ones in mask.items():
            covered[start + offset] |= ones
    return bitwise(before + bytes(covered), 32, 0xEDB88320).to_bytes(4, "little")


def icrc_of_ethernet(frame: bytes) -> tuple[bytes, bytes]:
    """The ICRC that an untagged Ethernet frame should have, and the one it has."""
    ether_type, packet = frame[12:14], frame[ETHERNET_BYTES:]
    if ether_type == b"\x08\x00":
        udp = (packet[0] & 15) * 4
        end = int.from_bytes(packet[2:4], "big")
        masks: Masks = [(0, IPV4), (udp, UDP), (udp + 8, BTH)]
    else:
        end = 40 + int.from_bytes(packet[4:6], "big")
        masks = [(0, IPV6), (40, UDP), (48, BTH)] if ether_type == b"\x86\xdd" else [(0, IPV6), (40, BTH)]
    return _icrc(packet[: end - 4], masks, b"\xff" * 8), packet[end - 4 : end]


def crcs_of_infiniband(packet: bytes) -> tuple[bytes, bytes]:
    """The ICRC and VCRC that an InfiniBand packet, LRH to VCRC, should have."""
    is_global = packet[1] & 3 == 3
    masks: Masks = [(0, LRH_GLOBAL), (8, IPV6), (48, BTH)] if is_global else [(0, LRH_LOCAL), (8, BTH)]
    return _icrc(packet[:-6], masks, b""), bitwise(packet[:-2], 16, 0xD008).to_bytes(2, "little")
