"""What a PCI Express link carries: bits per second for packets, and of them for payload.

The model is that of Neugebauer et al., "Understanding PCIe performance for end host networking" (SIGCOMM 2018), as
github.com/pcie-bench/pcie-model has it: of the rate after encoding, acknowledgements and flow-control updates take
8 bytes each in every so many as the specification's limits say, and SKP ordered sets 4 in 1538. The limits are times
on one lane there, and the model takes them as bytes of the whole link: so it is cautious, the more so the wider.
"""

from __future__ import annotations

from fractions import Fraction

from emu.errors import ScenarioError
from emu.pcie.split import check_sizes

LANE_RATES = {3: 8 * 10**9, 4: 16 * 10**9, 5: 32 * 10**9}  # transfers a second; one bit each
ENCODING = Fraction(128, 130)  # PCI Express Base Specification 5.0, 4.2.2
SKP = Fraction(4, 1538)  # 4.2.7
DLLP_BYTES = 8  # 2 of framing, 4, a CRC of 2
DLLPS = 2  # an acknowledgement and a flow-control update for each limit

# 3.6.3.1, tables 3-7 to 3-9 (and the same numbers for updates in 2.6.1.2): a limit is
# (MPS + 28) x factor / width + 115 symbol times. The factors, in tenths, by width: up to 256 bytes of MPS, and above.
TLP_OVERHEAD_BYTES = 28
INTERNAL_DELAY = 115
ACK_FACTORS_TENTHS = {1: (14, 10), 2: (14, 10), 4: (14, 10), 8: (25, 10), 16: (30, 20)}
SMALL_MPS_BYTES = 256

MWR_OVERHEAD_BYTES = 24  # with a 64-bit address: header 16, sequence number 2, LCRC 4, framing 2
CPLD_OVERHEAD_BYTES = 20  # header 12


def raw_rate_bps(generation: int, width: int) -> int:
    """Bits per second of a link after encoding, rounded down. Raises ScenarioError for one that we do not know."""
    return int(_raw_rate(generation, width))


def tlp_rate_bps(generation: int, width: int, mps_bytes: int) -> int:
    """Bits per second that a link has for packets, headers and framing included, rounded down. Raises ScenarioError."""
    check_sizes(mps_bytes=mps_bytes)
    overhead = DLLPS * Fraction(DLLP_BYTES, ack_limit(width, mps_bytes)) + SKP
    return int(_raw_rate(generation, width) * (1 - overhead))


def ack_limit(width: int, mps_bytes: int) -> int:
    """Symbol times between two acknowledgements at 8 GT/s and more, rounded down as in the specification's tables."""
    small, large = ACK_FACTORS_TENTHS[_known_width(width)]
    factor_tenths = small if mps_bytes <= SMALL_MPS_BYTES else large
    return (mps_bytes + TLP_OVERHEAD_BYTES) * factor_tenths // (10 * width) + INTERNAL_DELAY


def write_payload_bps(tlp_bps: int, size_bytes: int, mps_bytes: int) -> int:
    """Payload bits per second of writes of `size_bytes`, aligned to MPS, one after the other; rounded down."""
    return _payload_bps(tlp_bps, size_bytes, mps_bytes, MWR_OVERHEAD_BYTES)


def read_payload_bps(tlp_bps: int, size_bytes: int, mps_bytes: int) -> int:
    """Payload bits per second of reads of `size_bytes`, aligned to MPS, enough of them outstanding; rounded down.

    Completions are what limits it: their direction carries more than that of the requests.
    """
    return _payload_bps(tlp_bps, size_bytes, mps_bytes, CPLD_OVERHEAD_BYTES)


def _payload_bps(tlp_bps: int, size_bytes: int, mps_bytes: int, overhead_bytes: int) -> int:
    packets = -(-size_bytes // mps_bytes)
    return tlp_bps * size_bytes // (size_bytes + packets * overhead_bytes)


def _raw_rate(generation: int, width: int) -> Fraction:
    if generation not in LANE_RATES:
        raise ScenarioError(f"PCI Express generation {generation}: known are {', '.join(map(str, LANE_RATES))}")
    return LANE_RATES[generation] * _known_width(width) * ENCODING


def _known_width(width: int) -> int:
    if width not in ACK_FACTORS_TENTHS:
        raise ScenarioError(f"{width} lanes: a link has {', '.join(map(str, ACK_FACTORS_TENTHS))}")
    return width
