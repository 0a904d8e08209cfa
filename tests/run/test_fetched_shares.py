"""What READs and atomics bring counts as delivered, in fairness as in all else."""

from __future__ import annotations

from typing import Any

import pytest

from emu.report.latency import _network_ns
from emu.run import Options, run
from emu.scenario.load import load, parse

MIX = """
name: mix
fabric: {profile: native, topology: {kind: leaf_spine, leaves: 1, spines: 1, hosts_per_leaf: 4}}
traffic:
  - {kind: write, pairs: [[h0, h1]], size: 1MiB}
  - {kind: write, pairs: [[h2, h3]], size: 1MiB, op: read}
"""


def in_memory(text: str) -> dict[str, Any]:
    return run(parse(text, "mix.yaml", ()), Options(wire="memory"))


def test_a_read_beside_a_write_that_it_does_not_meet_gets_an_equal_share() -> None:
    result = in_memory(MIX)
    assert result["fairness"]["jain"] == pytest.approx(1, abs=0.001)
    assert min(flow["window_bytes"] for flow in result["flows"]) > 1_000_000


@pytest.mark.parametrize(("op", "size", "count"), [("read", "3000B", 5), ("fetch_add", "8B", 20)])
def test_all_that_was_fetched_is_in_the_window_of_a_flow_on_its_own(op: str, size: str, count: int) -> None:
    result = in_memory(
        f"{{name: alone, fabric: {{profile: roce, topology: {{kind: line, switches: 1}}}},"
        f" traffic: [{{kind: write, pairs: [[h0, h1]], op: {op}, size: {size}, count: {count}}}]}}"
    )
    (flow,) = result["flows"]
    assert flow["window_bytes"] == flow["bytes"]
    assert (result["fairness"]["jain"], result["fairness"]["least_share"]) == (1, 1)


def test_an_incast_of_reads_has_an_index() -> None:
    scenario = load("incast-native", ["traffic.0.op=read", "traffic.0.size=64KiB", "expect=[]"])
    assert run(scenario, Options(wire="memory"))["fairness"]["jain"] is not None


def test_the_ways_of_a_read_are_without_its_hosts_and_nics() -> None:
    result = in_memory(
        "{name: far, fabric: {profile: native, topology: {kind: line, switches: 1}},"
        " host: {path: cpu_sync, gpu_direct: false},"
        " traffic: [{kind: write, pairs: [[h0, h1]], op: read, size: 64B}]}"
    )
    parts = result["breakdown_ns"]
    assert parts["host"] > 0
    network = sum(value for part, value in parts.items() if part not in ("host", "nic", "total"))
    assert _network_ns(parts) == pytest.approx(network)
