"""What links carry, against the published figures of the model."""

from __future__ import annotations

import pytest

from emu.errors import ScenarioError
from emu.pcie import bandwidth
from emu.pcie.bandwidth import (
    ack_limit,
    raw_rate_bps,
    read_payload_bps,
    tlp_rate_bps,
    write_payload_bps,
)
from emu.pcie.framing import cpld_wire_bytes, mrd_wire_bytes, mwr_wire_bytes
from emu.pcie.split import SIZES_BYTES

GBPS = 10**9
# PCI Express Base Specification 5.0, table 3-9 (8 GT/s and above), by width, for MPS 128 to 4096.
ACK_LIMITS = {
    1: (333, 512, 655, 1167, 2191, 4239),
    2: (224, 313, 385, 641, 1153, 2177),
    4: (169, 214, 250, 378, 634, 1146),
    8: (163, 203, 182, 246, 374, 630),
    16: (144, 168, 182, 246, 374, 630),
}
# Gen5 x16, GB/s of payload: size, MPS, writes, reads.
PAYLOAD = [
    (64, 256, 41.3, 43.3),
    (64, 512, 41.3, 43.3),
    (128, 256, 47.9, 49.2),
    (128, 512, 47.9, 49.2),
    (256, 256, 52.0, 52.7),
    (1 << 20, 256, 52.0, 52.7),
    (512, 512, 54.7, 55.2),
    (1 << 20, 512, 54.7, 55.2),
]


@pytest.mark.parametrize(("generation", "gbps"), [(3, 126.03), (4, 252.06), (5, 504.12)])
def test_raw_rates_of_16_lanes(generation: int, gbps: float) -> None:
    assert round(raw_rate_bps(generation, 16) / GBPS, 2) == gbps


def test_a_gen3_x8_link_has_62_96_gbps_raw() -> None:
    assert raw_rate_bps(3, 8) == pytest.approx(62.96 * GBPS, rel=1e-3)


@pytest.mark.parametrize("width", ACK_LIMITS)
def test_limits_are_those_of_the_specification(width: int) -> None:
    assert tuple(ack_limit(width, mps) for mps in SIZES_BYTES) == ACK_LIMITS[width]


@pytest.mark.parametrize(("mps", "gbps"), [(128, 446.8), (256, 454.8), (512, 458.5)])
def test_gen5_x16_has_the_published_rates_for_packets(mps: int, gbps: float) -> None:
    assert round(tlp_rate_bps(5, 16, mps) / GBPS, 1) == gbps


def test_rates_are_whole_numbers_rounded_down() -> None:
    assert raw_rate_bps(5, 16) == 504_123_076_923
    assert tlp_rate_bps(5, 16, 256) == 454_800_241_977


@pytest.mark.parametrize("generation", [3, 4, 5])
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_packets_have_most_of_every_link(generation: int, width: int) -> None:
    raw_bps = raw_rate_bps(generation, width)
    assert all(0.88 * raw_bps < tlp_rate_bps(generation, width, mps) < raw_bps for mps in SIZES_BYTES)


@pytest.mark.parametrize(("size", "mps", "write_gb", "read_gb"), PAYLOAD)
def test_gen5_x16_payload(size: int, mps: int, write_gb: float, read_gb: float) -> None:
    rate_bps = tlp_rate_bps(5, 16, mps)
    assert write_payload_bps(rate_bps, size, mps) / 8 / GBPS == pytest.approx(write_gb, rel=0.01)
    assert read_payload_bps(rate_bps, size, mps) / 8 / GBPS == pytest.approx(read_gb, rel=0.01)


def test_overheads_are_those_of_packets() -> None:
    beyond_4_gb = 1 << 40
    assert mwr_wire_bytes(beyond_4_gb, 64) == 64 + bandwidth.MWR_OVERHEAD_BYTES
    assert cpld_wire_bytes(beyond_4_gb, 64) == 64 + bandwidth.CPLD_OVERHEAD_BYTES
    assert mrd_wire_bytes(beyond_4_gb) < 64 + bandwidth.CPLD_OVERHEAD_BYTES  # so requests never limit reads


@pytest.mark.parametrize(("generation", "width", "mps"), [(2, 16, 256), (5, 3, 256), (5, 16, 100), (6, 16, 256)])
def test_links_that_we_do_not_know(generation: int, width: int, mps: int) -> None:
    with pytest.raises(ScenarioError):
        tlp_rate_bps(generation, width, mps)
