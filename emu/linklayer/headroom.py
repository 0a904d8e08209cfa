"""How much memory catches what still arrives after XOFF: exactly (`tight_bytes`), and as vendors reckon it.

Both in bytes for one (ingress port, priority). The vendor's is SONiC's formula for Mellanox switches.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from emu.errors import ScenarioError
from emu.linklayer.pause import quanta_ps
from emu.units import SECOND

QUANTUM_BYTES = 64
# IEEE 802.3 annex 31B: within how many quanta a station stops, by rate in bit/s, as SONiC's script has them.
RESPONSE_QUANTA = {
    10 * 10**9: 67,
    25 * 10**9: 80,
    40 * 10**9: 118,
    50 * 10**9: 147,
    100 * 10**9: 394,
    200 * 10**9: 453,
    400 * 10**9: 905,
    800 * 10**9: 905,
}
PFC_WIRE_BYTES = 84  # 64 with FCS, preamble, gap
VENDOR_MM_PER_SECOND = 198 * 10**9  # speed of light in the vendor's cable
VENDOR_MAC_PHY_BYTES = 800
VENDOR_SMALL_CELL_BYTES = 128
KIB = 1024


def response_quanta(rate_bps: int) -> int:
    """The longest response the standard allows at a rate, in quanta; of the next rate up where it has none."""
    return next((quanta for rate, quanta in RESPONSE_QUANTA.items() if rate >= rate_bps), RESPONSE_QUANTA[800 * 10**9])


def response_limit_ps(rate_bps: int) -> int:
    """The same in picoseconds."""
    return quanta_ps(response_quanta(rate_bps), rate_bps)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadroomConfig:
    """One direction of a link, as the buffer at its end sees it. Bytes on the wire include preamble and gap."""

    rate_bps: int
    propagation_ps: int
    frame_bytes: int  # the largest frame, as the buffer counts it
    wire_bytes: int  # and as the wire does
    reverse_wire_bytes: int  # the largest frame that a pause frame may have to wait for
    response_ps: int = 0  # of the peer, from the pause frame's last bit in
    pfc_wire_bytes: int = PFC_WIRE_BYTES
    pipeline_ps: int = 0  # from a frame's first bit in until it is counted

    def __post_init__(self) -> None:
        if self.rate_bps < 1 or not 1 <= self.frame_bytes <= self.wire_bytes:
            raise ScenarioError(f"no link has headroom like this: {self}")
        if min(self.propagation_ps, self.reverse_wire_bytes, self.response_ps, self.pipeline_ps) < 0:
            raise ScenarioError(f"headroom: no length, time or size is below 0: {self}")

    def serialization_ps(self, wire_bytes: int) -> int:
        """The time of so many bytes on the wire, rounded up to a whole picosecond."""
        return -(-wire_bytes * 8 * SECOND // self.rate_bps)

    @property
    def delay_ps(self) -> int:
        """From when the frame that is one too many started, until none starts any more."""
        pause_ps = self.serialization_ps(self.reverse_wire_bytes) + self.serialization_ps(self.pfc_wire_bytes)
        return pause_ps + 2 * self.propagation_ps + self.response_ps + self.pipeline_ps


def tight_bytes(config: HeadroomConfig) -> int:
    """What never drops where all frames are of that size, and one byte less does: N frames, that one included.

    A frame that would start at the very instant at which the pause is to be obeyed must not start.
    """
    return -(-config.delay_ps // config.serialization_ps(config.wire_bytes)) * config.frame_bytes


def mixed_bytes(config: HeadroomConfig) -> int:
    """What never drops whatever the sizes, up to the largest: short frames before a last long one can be worse."""
    return (config.delay_ps - 1) * config.rate_bps // (8 * SECOND) + config.frame_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorConfig:
    """What the vendor's formula asks for. The defaults are Spectrum-2's and 3's."""

    rate_bps: int
    cable_mm: int
    mtu_bytes: int  # of the lossless class
    port_mtu_bytes: int  # of anything on the port
    cell_bytes: int = 144
    small_packets_percent: int = 100
    gearbox_bytes: int = 0
    response_bytes: int | None = None  # of the peer; None: the standard's limit

    def __post_init__(self) -> None:
        if not 0 <= self.small_packets_percent <= 100 or self.cell_bytes < 1:
            raise ScenarioError(f"no switch has cells and traffic like this: {self}")

    @property
    def occupancy(self) -> Fraction:
        """How much memory a byte takes at worst, frames being rounded up to cells."""
        cell, percent = self.cell_bytes, self.small_packets_percent
        factor = Fraction(cell, 64) if cell > VENDOR_SMALL_CELL_BYTES else Fraction(2 * cell, 1 + cell)
        return (100 - percent + percent * factor) / 100

    @property
    def cable_bytes(self) -> Fraction:
        """What is on the cable, there and back."""
        return Fraction(2 * self.cable_mm * self.rate_bps, 8 * VENDOR_MM_PER_SECOND)


def vendor_bytes(config: VendorConfig) -> int:
    """XOFF headroom by the vendor's formula, in whole KiB.

    At least `tight_bytes` and `mixed_bytes` wherever the MTUs are the frames', the cable is no slower than 5.05 ns/m
    and the response is within the standard's limit.
    """
    response = config.response_bytes
    if response is None:
        response = response_quanta(config.rate_bps) * QUANTUM_BYTES
    propagation = (
        config.port_mtu_bytes + config.cable_bytes + 2 * config.gearbox_bytes + VENDOR_MAC_PHY_BYTES + response
    )
    exact = config.mtu_bytes + propagation * config.occupancy
    return -(-exact // KIB) * KIB


def headroom_bytes(headroom: int | str, link: HeadroomConfig, vendor: VendorConfig) -> int:
    """A scenario's `headroom` in bytes: a number as it is, or `tight`, `mixed` or `vendor` for this link."""
    if isinstance(headroom, int):
        return headroom
    by_name = {"tight": tight_bytes, "mixed": mixed_bytes}
    if headroom == "vendor":
        return vendor_bytes(vendor)
    if headroom not in by_name:
        raise ScenarioError(f"headroom {headroom!r}: a size, or {', '.join(by_name)}, vendor")
    return by_name[headroom](link)
