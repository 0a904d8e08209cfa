"""The latency table's arithmetic: who is lower by how much, and the hop latency that a claim needs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from emu.report.latency import hop_needed_ns, latency_text, lower_by


def row(profile: str, size_bytes: int, fabric_ns: float, switching_ns: float, hops: int = 3) -> dict[str, Any]:
    parts = {"nic": 900.0, "serialization": 50.0, "propagation": fabric_ns - switching_ns - 50, "queueing": 0.0}
    return {
        "profile": profile,
        "op": "write",
        "size_bytes": size_bytes,
        "hops": hops,
        "fabric_latency_ns": fabric_ns,
        "message_latency_ns": fabric_ns + 900,
        "completion_latency_ns": 2 * fabric_ns,
        "breakdown_ns": {**parts, "switching": switching_ns},
    }


def found(*rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    inputs = {
        "native": {"fabric.hop_latency": {"value": "260ns", "kind": "published", "source": "its maker"}},
        "slow": {"fabric.hop_latency": {"value": "300ns", "kind": "calibrated", "source": "to a claim"}},
    }
    about = {
        "wire": "memory",
        "pair": ["h0", "h3"],
        "topology": {"kind": "line"},
        "iters": 2,
        "uneven": [],
        "spread_ns": 0.5,
        "missing": [],
    }
    return {"rows": list(rows), "inputs": inputs, **about, **more}


NATIVE, SLOW = row("native", 4096, 480, 390), row("slow", 4096, 1000, 900)


def cells(text: str, title: str, size: str) -> list[str]:
    """The cells of a size's line in the block of that title."""
    block = next(block for block in text.split("\n\n") if block.startswith(title))
    return next(line.split()[1:] for line in block.splitlines() if line.split()[0] == size)


def test_lower_by() -> None:
    assert lower_by(NATIVE, SLOW) == pytest.approx(0.52)
    assert lower_by(SLOW, NATIVE) == pytest.approx(-1.08333, abs=1e-5)


def test_the_hop_needed_is_that_of_a_claim_that_holds() -> None:
    assert hop_needed_ns(NATIVE, SLOW, Fraction(52, 100)) == pytest.approx(300)
    assert hop_needed_ns(NATIVE, SLOW, Fraction(76, 100)) == pytest.approx((2000 - 100) / 3)


def test_a_row_that_is_missing_is_said_to_be() -> None:
    missing = ["native 64B: traffic did not complete: 3 messages failed"]
    for rows in ((), (NATIVE, SLOW)):
        assert f"MISSING: {missing[0]}" in latency_text(found(*rows, missing=missing), Fraction(52, 100)).splitlines()


def test_every_size_has_its_share() -> None:
    text = latency_text(found(NATIVE, row("native", 64, 300, 200), SLOW, row("slow", 64, 200, 100)), Fraction(52, 100))
    assert cells(text, "native is lower by", "4KiB") == ["52.0", "%"]
    assert cells(text, "native is lower by", "64B") == ["-50.0", "%"]
    assert cells(text, "fabric latency:", "64B") == ["300.0", "ns", "200.0", "ns"]
    assert "would be 52.0 % lower at 4KiB:\n  slow 300.0 ns" in text
    assert "note: slow: hop_latency 300ns (to a claim); calibrated:" in text
    assert "native: 3 hops at 4KiB in 480.0 ns: under 1 us" in text
    assert "slow: 3 hops at 4KiB in 1.000 us: NOT under 1 us" in text


def test_the_first_profile_is_the_measure_where_there_is_no_native() -> None:
    text = latency_text(found(SLOW, row("ndr", 4096, 500, 400)), Fraction(1, 2))
    assert cells(text, "slow is lower by", "4KiB") == ["-100.0", "%"]


def test_a_claim_that_no_hop_latency_makes_true() -> None:
    text = latency_text(found(row("native", 4096, 480, 390), row("slow", 4096, 1000, 100)), Fraction(1, 10))
    assert "slow none would do" in text


def test_one_profile_and_no_switch_need_no_comparison() -> None:
    assert "is lower by" not in latency_text(found(NATIVE), Fraction(1, 2))
    back_to_back = (row("native", 4096, 90, 0, hops=0), row("slow", 4096, 95, 0, hops=0))
    assert "hop latency at which" not in latency_text(found(*back_to_back), Fraction(1, 2))


def test_a_row_that_is_missing_and_one_that_is_a_mean() -> None:
    text = latency_text(found(NATIVE, SLOW, row("native", 64, 300, 200), uneven=["slow 4096B"]), Fraction(1, 2))
    assert cells(text, "fabric latency:", "64B") == ["300.0", "ns", "-"]
    assert cells(text, "native is lower by", "64B") == ["-"]
    assert "note: means of messages that differ by up to 0.500 ns" in text
    assert "say): slow 4096B\n" in text
    assert latency_text(found(), Fraction(1, 2)) == "no row is whole"
