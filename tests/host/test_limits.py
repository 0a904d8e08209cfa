"""Bounds of a host's message rate: PCIe bytes, tags and blocks of a message, reckoned apart and held against runs."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import pytest

from emu.harness.doorbell import Plan, cases_of, measure
from emu.host.limits import Limits
from emu.run import Options
from emu.scenario.load import build
from emu.units import SECOND
from tests.host.legs import tlp_rate

TOPOLOGY = {"kind": "line", "switches": 1}


def limits(host: Mapping[str, object], size_bytes: int) -> Limits:
    given = {"name": "x", "fabric": {"profile": "native", "topology": TOPOLOGY}, "host": host, "traffic": []}
    scenario = build(given)
    return Limits(scenario.host, size_bytes=size_bytes, qps=2, wire_ps=Fraction(1))


def per_second(link_bytes: Fraction | int, mps: int = 256) -> Fraction:
    return Fraction(tlp_rate(5, 16, mps), 8) / link_bytes


@pytest.mark.parametrize(("size", "blocks"), [(0, 1), (28, 1), (29, 2), (92, 2), (93, 3), (220, 4), (221, 1)])
def test_inline_data_makes_wqes_long(size: int, blocks: int) -> None:
    assert limits({"path": "ibgda", "queues": {"inline": "220B"}}, size).blocks == blocks


def test_long_wqes_are_read_as_they_are() -> None:
    terms = limits({"path": "ibgda", "queues": {"inline": "220B"}}, 220).terms()
    reads = 32 * 256 // 512  # of 32 WQEs of 256 bytes, by MRRS; two completions each
    assert terms["PCIe to the NIC"] == per_second(Fraction(32 * 256 + reads * 2 * 20 + 24 + 8, 32))
    assert terms["PCIe from the NIC"] == per_second(Fraction(reads * 24, 32) + 24 + 64)


@pytest.mark.parametrize(("mps", "carried"), [(128, False), (256, True)])
def test_blueflame_brings_what_fits_a_packet(mps: int, carried: bool) -> None:
    host = {"path": "cpu_proxy", "queues": {"inline": "220B"}, "pcie": {"mps": f"{mps}B"}}
    terms = limits(host, 220).terms()
    link_bytes = 24 + 256 if carried else 24 + 8 + 2 * (128 + 20)
    assert terms["PCIe to the NIC"] == per_second(link_bytes, mps)
    assert ("read tags" in terms) == (not carried)


def test_each_read_has_completions_of_its_own() -> None:
    host = {"path": "cpu_proxy", "pcie": {"mps": "4KiB", "mrrs": "128B"}}
    terms = limits(host, 1000).terms()
    assert terms["PCIe to the NIC"] == per_second(1000 + 8 * 20 + 24 + 64, 4096)


def test_a_last_read_holds_its_tag_for_its_own_time() -> None:
    link_ps, switch_ps, read_ps = 50_000, 115_000, 300_000
    byte_ps = Fraction(8 * SECOND, tlp_rate(5, 16, 256))

    def held_ps(length: int, completions: int) -> Fraction:
        return 2 * (2 * link_ps + switch_ps) + read_ps + (24 + length + 20 * completions) * byte_ps

    terms = limits({"path": "cpu_proxy", "pcie": {"tags": 3}}, 700).terms()
    assert terms["read tags"] == 3 * SECOND / (held_ps(512, 2) + held_ps(188, 1))


@pytest.mark.parametrize(
    ("size", "settings", "bound"),
    [
        pytest.param(
            *(65_536, ("fabric.rate=800Gbps", "host.pcie={mps: 4KiB, mrrs: 128B, tags: 1024}"), "PCIe to the NIC"),
            marks=pytest.mark.long,
        ),
        (220, ("host.queues.inline=220B", "host.pcie={width: 4}"), "PCIe to the NIC"),
    ],
)
def test_a_run_comes_near_its_bound_and_not_beyond(size: int, settings: tuple[str, ...], bound: str) -> None:
    plan = Plan(paths=("ibgda",), sizes_bytes=(size,), warps=(1024,), settings=settings)
    (row,) = measure(cases_of(plan), Options(wire="memory")).rows
    assert row["bound_by"] == bound
    assert 0.98 < row["messages_per_s"] / row["limit_per_s"] < 1.002


@pytest.mark.parametrize(
    ("path", "free", "name"),
    [
        ("ibgda", {"gpu": {"post": "0ns", "ring": "0ns"}}, "GPU warps"),
        ("cpu_proxy", {"cpu": {"poll": "0ns", "request": "0ns"}, "gpu": {"request": "0ns"}}, "proxy threads"),
        ("cpu_sync", {"cpu": {"synchronize": "0ns", "post": "0ns"}}, "synchronisation with the host"),
    ],
)
def test_who_takes_no_time_to_post_is_no_bound(path: str, free: dict[str, object], name: str) -> None:
    assert name in limits({"path": path}, 8).terms()
    assert name not in limits({"path": path, **free}, 8).terms()
