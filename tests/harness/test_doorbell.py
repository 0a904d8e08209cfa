"""Message rates by path: who binds them, to one per cent; each bound worked out here again."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from emu.errors import ScenarioError
from emu.harness.doorbell import Plan, cases_of, measure
from emu.host.limits import Limits
from emu.pcie.bandwidth import read_payload_bps, write_payload_bps
from emu.run import Options
from emu.scenario.host_path import PATHS

MEMORY = Options(wire="memory")


@cache
def rows(**given: Any) -> list[dict[str, Any]]:
    found = measure(cases_of(Plan(**given)), MEMORY)
    assert found.missing == []
    return found.rows


def row(path: str, *, warps: int = 128, size: int = 8, messages: int = 3000, **more: Any) -> dict[str, Any]:
    (found,) = rows(paths=(path,), warps=(warps,), sizes_bytes=(size,), messages=messages, **more)
    return found


@pytest.mark.parametrize("warps", [1, 16, 128])
@pytest.mark.parametrize("qps", [1, 8])
def test_a_proxy_is_one_thread_whatever_the_warps_and_queue_pairs(warps: int, qps: int) -> None:
    found = row("cpu_proxy", warps=warps, qps=qps, messages=1500)
    assert 1.6e6 < found["messages_per_s"] < 1.75e6
    assert found["messages_per_s"] == pytest.approx(32e9 / (100 + 32 * 588), rel=0.01)  # a pass of 32, a look
    assert found["bound_by"] == "proxy threads"


def test_ibgda_grows_with_warps_to_a_plateau_that_the_limits_name() -> None:
    rates = {warps: row("ibgda", warps=warps) for warps in (1, 16, 128, 256)}
    per_s = [each["messages_per_s"] for each in rates.values()]
    assert per_s == sorted(per_s)
    for warps in (1, 16):
        assert rates[warps]["bound_by"] == "GPU warps"
        assert rates[warps]["messages_per_s"] == pytest.approx(warps * 1e9 / (400 + 300 / 32), rel=0.03)
    for warps in (128, 256):
        assert 175e6 < rates[warps]["messages_per_s"] < 215e6
        assert rates[warps]["messages_per_s"] == pytest.approx(rates[warps]["limit_per_s"], rel=0.01)
        assert rates[warps]["bound_by"] == "NIC message rate"


def test_a_hundredfold_at_eight_bytes_and_none_where_the_link_is_full() -> None:
    assert row("ibgda")["messages_per_s"] / row("cpu_proxy")["messages_per_s"] >= 100
    meeting = 400e9 / 8 / row("cpu_proxy")["messages_per_s"]
    assert 28_500 < meeting < 30_000
    below, above = (
        [row(path, size=size, messages=200, warps=128)["messages_per_s"] for path in ("ibgda", "cpu_proxy")]
        for size in (16 << 10, 48 << 10)
    )
    assert below[0] / below[1] > 1.5
    assert above[0] / above[1] == pytest.approx(1, rel=0.02)


def read_rtt_ps(length: int, *, memory_ps: int = 300_000, rate: int = 454_800_241_977) -> Fraction:
    """Switch of 115 ns, links of 50 ns, the request's 24 bytes and a completion of 20 more than its data."""
    completions = -(-length // 256)
    return 2 * (2 * 50_000 + 115_000) + memory_ps + Fraction((24 + 20 * completions + length) * 8 * 10**12, rate)


def test_one_doorbell_a_message_ends_at_the_tag_limit() -> None:
    """Then each message takes two reads, of 64 and 8 bytes, and a tag for as long as they are under way."""
    given = ("host.queues.num_requests_in_batch=1",)
    found = row("ibgda", warps=256, settings=given, messages=6000)
    expected = 256 * 10**12 / (read_rtt_ps(64) + read_rtt_ps(8))
    assert expected == pytest.approx(found["limits_per_s"]["read tags"], rel=1e-6)
    assert found["bound_by"] == "read tags"
    assert found["messages_per_s"] == pytest.approx(float(expected), rel=0.01)


@pytest.mark.parametrize("tags", [1, 4, 16])
@pytest.mark.parametrize("mrrs", [128, 512])
def test_outstanding_reads_bound_throughput_to_tags_x_mrrs_a_round_trip(tags: int, mrrs: int) -> None:
    given = (f"host.pcie.tags={tags}", f"host.pcie.mrrs={mrrs}B", "host.pcie.mps=512B")
    found = row("cpu_proxy", size=64 << 10, messages=100, settings=given)
    rate = 458_500_000_000  # reference.md 4.7, for an MPS of 512 B
    completion = mrrs + 20
    rtt = 2 * (2 * 50_000 + 115_000) + 300_000 + Fraction((24 + completion) * 8 * 10**12, rate)
    bytes_per_s = found["messages_per_s"] * (64 << 10)
    assert bytes_per_s == pytest.approx(float(tags * mrrs * 10**12 / rtt), rel=0.01)
    assert found["bound_by"] == "read tags"


@pytest.mark.parametrize(
    ("gbps", "mps"), [(400, 256), (800, 256), (800, 512), pytest.param(400, 128, marks=pytest.mark.long)]
)
def test_large_messages_get_the_links_or_the_pcies_rate(gbps: int, mps: int) -> None:
    given = (f"fabric.rate={gbps}Gbps", f"host.pcie.mps={mps}B", "host.pcie.mrrs=4KiB")
    found = row("ibgda", size=128 << 10, messages=100, settings=given)
    tlp = {128: 446.8e9, 256: 454.8e9, 512: 458.5e9}[mps]  # reference.md 4.7
    read = tlp * mps / (mps + 20)
    written = tlp * mps / (mps + 24)  # the receiver's
    wire = gbps * 1e9 * 4096 / 4130  # frames of 4 KiB, most of them without RETH
    assert found["messages_per_s"] * (128 << 10) * 8 == pytest.approx(min(read, written, wire), rel=0.01)
    assert found["messages_per_s"] == pytest.approx(found["limit_per_s"], rel=0.01)
    assert (found["bound_by"] == "network") == (wire < min(read, written))
    assert read == pytest.approx(read_payload_bps(int(tlp), 4096, mps), rel=1e-6)
    assert written == pytest.approx(write_payload_bps(int(tlp), 4096, mps), rel=1e-6)


NAMED = {
    "queue pairs": ("ibgda", 8, 1, ()),
    "PCIe to the NIC": ("ibgda", 64, 8, ("host.pcie.width=4", "host.pcie.tags=1024")),
    "PCIe from the NIC": ("ibgda", 0, 8, ("host.pcie.width=2", "host.queues.qp_depth=64")),
    "synchronisation with the host": ("cpu_sync", 8, 2, ()),
}


@pytest.mark.parametrize("name", NAMED)
def test_each_other_bound_is_reached_and_named(name: str) -> None:
    path, size, qps, given = NAMED[name]
    found = row(path, size=size, qps=qps, settings=given, messages=4000 if path == "ibgda" else 300)
    assert found["bound_by"] == name
    # Payload that begins within a DW takes one more, up to 4 of 114 bytes; limits are of aligned ones.
    assert found["messages_per_s"] == pytest.approx(found["limit_per_s"], rel=0.03)


def test_proxy_threads_do_as_many_times_as_much_while_each_has_queue_pairs() -> None:
    found = rows(paths=("cpu_proxy", "ibgda"), warps=(128,), qps=4, cores=(1, 2, 8), messages=2000)
    assert [(each["path"], each["cores"]) for each in found] == [
        ("cpu_proxy", 1), ("cpu_proxy", 2), ("cpu_proxy", 8), ("ibgda", None),
    ]  # fmt: skip
    for each, threads in zip(found[:3], (1, 2, 4), strict=True):
        assert each["messages_per_s"] == pytest.approx(threads * 32e9 / (100 + 32 * 588), rel=0.01)
        assert each["bound_by"] == "proxy threads"


def test_cores_are_given_once() -> None:
    with pytest.raises(ScenarioError, match="host.cpu.cores is not set here: use --cores"):
        cases_of(Plan(cores=(1, 2), settings=("host.cpu.cores=4",)))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("direct", [True, False])
def test_no_path_beats_its_limit(path: str, direct: bool) -> None:
    for size in (8, 8192):
        found = row(path, size=size, gpu_direct=(direct,), messages=300)
        assert found["messages_per_s"] <= found["limit_per_s"] * 1.001


def test_limits_know_all_terms() -> None:
    (case,) = cases_of(Plan(paths=("ibgda",), warps=(128,)))
    limits = Limits(case.rate.host, size_bytes=8, qps=2, wire_ps=Fraction(1160))
    assert set(limits.terms()) == {
        *("NIC message rate", "queue pairs", "PCIe from the NIC", "PCIe to the NIC", "network", "GPU warps"),
        *("PCIe at the receiver", "read tags"),
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"paths": ("dma",)}, "--path: 'dma' is unknown; known: ibgda, cpu_proxy, cpu_sync"),
        ({"paths": ("none",)}, "--path: 'none' is unknown"),
        ({"warps": (0,)}, "--warps: 0 is out of range; allowed: 1 to 65536"),
        ({"settings": ("host.path=ibgda",)}, "--set host.path=ibgda: host.path is not set here: use --path"),
        ({"settings": ("host={}",)}, "--set host={}: host.path is not set here: use --path"),
        ({"settings": ("traffic.0.size=1B",)}, "--set traffic.0.size=1B: traffic is not set here: use --sizes"),
        ({"settings": ("host.queues.qp_depth=3",)}, "host.queues.qp_depth: 3 is no power of two"),
        ({"profile": "nativ"}, "unknown profile 'nativ'"),
    ],
)
def test_what_cannot_be_measured_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        cases_of(Plan(**given))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_same_twice() -> None:
    plan = Plan(messages=300, warps=(16,), gpu_direct=(True, False))
    assert measure(cases_of(plan), MEMORY).rows == measure(cases_of(plan), MEMORY).rows
