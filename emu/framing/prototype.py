"""The first frame of each opcode, made by Scapy: the bytes every queue pair's templates start from.

Scapy takes a millisecond a frame and a third of a second to load, so it is asked once a process for each opcode, and
only when bytes are needed at all."""

from functools import cache

from emu.crc import ICRC_BYTES, VCRC_BYTES

A_AND_PSN_BYTES = 4  # BTH's last word, which every frame has its own of
ZERO_MAC = "00:00:00:00:00:00"


@cache
def roce_head(opcode: int) -> bytes:
    """Ethernet, IPv4 (id 0, DF), UDP and BTH up to A and PSN, with no address in it yet."""
    from scapy.layers.inet import IP, UDP
    from scapy.layers.l2 import Ether

    from traffic.layers import BTH

    ip = IP(src="0.0.0.0", dst="0.0.0.0", id=0, flags="DF")
    frame = Ether(src=ZERO_MAC, dst=ZERO_MAC) / ip / UDP(chksum=0) / BTH(opcode=opcode)
    return bytes(frame)[: -A_AND_PSN_BYTES - ICRC_BYTES]


@cache
def native_head(opcode: int) -> bytes:
    """Ethernet (0x88B5), LRH and BTH up to A and PSN, with no address in it yet."""
    from scapy.layers.l2 import Ether

    from traffic.layers import BTH, LRH

    frame = Ether(src=ZERO_MAC, dst=ZERO_MAC) / LRH() / BTH(opcode=opcode)
    return bytes(frame)[: -A_AND_PSN_BYTES - ICRC_BYTES - VCRC_BYTES]
