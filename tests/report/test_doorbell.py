"""The doorbell report: the diagram's lanes and groups, sums, bounds, and what the figures rest on."""

from __future__ import annotations

from typing import Any

import pytest

from emu.harness.doorbell import Plan, cases_of, measure
from emu.report.doorbell import doorbell_text
from emu.report.host_inputs import Way, bound_rests_on, kinds_text, parts_of
from emu.report.sequence import diagram
from emu.run import Options
from emu.scenario.host_path import PATHS
from emu.scenario.profile import load_profile

PROVENANCE = load_profile("native").provenance()
INPUTS = {path: {"value": each.value, "kind": each.kind, "source": each.source} for path, each in PROVENANCE.items()}


def step(who: str, what: str, where: str, at_ns: float) -> dict[str, Any]:
    return {"who": who, "what": what, "where": where, "at_ns": at_ns}


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    plan = Plan(gpu_direct=(True, False), sizes_bytes=(8, 4096), warps=(128,), messages=300)
    return measure(cases_of(plan), Options(wire="memory")).to_json()


def test_an_arrow_leads_from_who_sends_to_who_gets() -> None:
    head, there, back, alone = diagram(
        [
            step("h0.gpu", "MWr 8 B: doorbell", "h0.nic", 700),
            step("h0.nic", "MRd 64 B: WQE", "h0.gpu", 915.63),
            step("h1.gpu", "has the data in memory", "", 3485.1),
        ]
    )
    assert head.split() == ["ns", "gpu", "cpu", "nic", "network", "far", "nic", "far", "gpu"]
    assert there == "    700.0      |---------------->|        |        |        |      MWr 8 B: doorbell"
    assert back == "    915.6      |<----------------|        |        |        |      MRd 64 B: WQE"
    assert alone == "   3485.1      |        |        |        |        |        *      has the data in memory"


def test_like_packets_share_a_line() -> None:
    lines = list(
        diagram(
            [
                step("h0.gpu", "CplD 256 B: payload", "h0.nic", 1.0),
                step("h0.gpu", "CplD 128 B: payload", "h0.nic", 2.0),
                step("h0.gpu", "CplD 64 B: WQE", "h0.nic", 3.0),
                step("h0.nic", "RC RDMA Write First, 4146 B of wire", "network", 4.0),
                step("h0.gpu", "CplD 1000 B: payload", "h0.nic", 5.0),
                step("h0.nic", "RC RDMA Write Last, 500 B of wire", "network", 6.0),
                step("h1.cpu", "MWr 8 B: payload", "h1.gpu", 7.0),
            ]
        )
    )
    assert "far cpu" in lines[0]
    assert [line.rpartition("| ")[2].strip() for line in lines[1:]] == [
        "3 CplD, 1,384 B: payload (to 5.0)",
        "CplD 64 B: WQE",
        "2 frames, RC RDMA Write First to Last, 4,646 B of wire (to 6.0)",
        "MWr 8 B: payload",
    ]


def test_the_parts_add_up(found: dict[str, Any]) -> None:
    for row in found["rows"]:
        whole_ns = sum(row["breakdown_ns"].values()) + row["nic_ns"] + row["network_ns"]
        assert whole_ns == pytest.approx(row["latency_ns"], abs=1e-6)
        assert (row["breakdown_ns"]["copy"] > 0) == (row["breakdown_ns"]["copy_out"] > 0) == (not row["gpu_direct"])


def test_a_message_is_not_shown_what_the_one_before_did(found: dict[str, Any]) -> None:
    for row in found["rows"]:
        frames = [each["at_ns"] for each in row["steps"] if each["where"] == "network" and "Write" in each["what"]]
        far = [each["at_ns"] for each in row["steps"] if each["who"].startswith("h1.")]
        assert min(far) > min(frames)


def test_the_text_has_it_all(found: dict[str, Any]) -> None:
    text = doorbell_text(found, with_diagrams=True)
    assert text.count("one RDMA WRITE of 8B by ") == 6
    assert "one RDMA WRITE of 4KiB" not in text
    assert "8B: ibgda sends" in text
    assert text.count("they meet at about 29.6 KB") == 1
    assert "cpu.request" in text
    assert "CALIBRATED" in text
    assert "nic.delivery" not in text  # a leg that a host path replaces
    assert "one RDMA WRITE" not in doorbell_text(found, with_diagrams=False)


def test_a_rate_far_below_its_bound_is_pointed_out(found: dict[str, Any]) -> None:
    rows = [dict(row, messages_per_s=row["limit_per_s"]) for row in found["rows"]]
    assert "well below its bound" not in doorbell_text(dict(found, rows=rows), with_diagrams=False)
    rows[0]["messages_per_s"] *= 0.9
    assert "well below its bound" in doorbell_text(dict(found, rows=rows), with_diagrams=False)


def test_a_rate_that_cannot_last_is_pointed_out(found: dict[str, Any]) -> None:
    rows = [dict(row, messages_per_s=row["limit_per_s"]) for row in found["rows"]]
    assert "not a steady one" not in doorbell_text(dict(found, rows=rows), with_diagrams=False)
    rows[0]["messages_per_s"] *= 1.2
    assert "not a steady one" in doorbell_text(dict(found, rows=rows), with_diagrams=False)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("gpu_direct", [True, False])
def test_every_figure_rests_on_inputs_that_there_are(path: str, gpu_direct: bool) -> None:
    way = Way.of(path, gpu_direct, INPUTS)
    for paths in parts_of(way).values():
        assert all(each in INPUTS or f"host.{each}" in INPUTS for each in paths)
    assert "assumed" in kinds_text(parts_of(way)["gather"], INPUTS)


def test_bounds_rest_on_what_makes_them(found: dict[str, Any]) -> None:
    for row in found["rows"]:
        way = Way.of(row["path"], row["gpu_direct"], INPUTS)
        for bound in row["limits_per_s"]:
            assert all(each in INPUTS or f"host.{each}" in INPUTS for each in bound_rests_on(bound, way))
    proxy = Way.of("cpu_proxy", True, INPUTS)
    assert kinds_text(bound_rests_on("proxy threads", proxy), INPUTS).startswith("CALIBRATED, assumed")


def test_a_root_complex_takes_the_switch_place() -> None:
    inputs = {**INPUTS, "host.pcie.attach": {"value": "root_complex", "kind": "scenario", "source": ""}}
    assert "pcie.root_complex" in Way.of("ibgda", True, inputs).hop
    assert "pcie.switch" not in Way.of("ibgda", True, inputs).hop
