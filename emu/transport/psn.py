"""Packet sequence numbers: 24 bits on the wire, counted without wrapping inside (IBTA vol. 1, 9.7.1)."""

PSN_MASK = 0xFFFFFF
HALF = 0x800000


def expand(psn: int, near: int) -> int:
    """The unwrapped number closest to `near` (itself unwrapped) that is `psn` on the wire."""
    delta = (psn - near) & PSN_MASK
    return near + (delta if delta < HALF else delta - (PSN_MASK + 1))
