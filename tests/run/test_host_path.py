"""Whole runs with a host path: equal twice and over every wire, books that hold when cut short, what a bounce costs."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from emu.fabric import Fabric
from emu.measure.result import comparable
from emu.run import Options, run
from emu.scenario.host_path import PATHS
from emu.scenario.load import parse
from emu.scenario.model import Scenario
from tests.builtins import small
from tests.host.legs import Legs

TEXT = """
name: path
fabric: {profile: PROFILE, topology: {kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 2}}
host: {path: PATH, gpu_direct: DIRECT}
traffic:
  - {kind: all_to_all, size: 20000B}
  - {kind: write, pairs: [[h0, h3], [h1, h2]], size: 3000B, count: 15, depth: 4, op: OP, qps: 2}
"""
OPS = ["write", "read", "send", "write_imm", "fetch_add", "cmp_swp"]
BOTH = ["true", "false"]


def scenario(path: str, direct: str, *given: str, op: str = "write", profile: str = "native") -> Scenario:
    text = TEXT.replace("PROFILE", profile).replace("PATH", path).replace("DIRECT", direct).replace("OP", op)
    if op in ("fetch_add", "cmp_swp"):
        text = text.replace("size: 3000B", "size: 8B")
    return parse(text, "path.yaml", given)


def memory(one: Scenario, **more: Any) -> dict[str, Any]:
    return run(one, Options(wire="memory", **more))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("direct", BOTH)
@pytest.mark.parametrize("op", OPS)
def test_every_operation_completes_and_its_parts_add_up(op: str, direct: str, path: str) -> None:
    """That memory is right the workloads see to; that parts and steps add up, each message's measurement."""
    found = memory(scenario(path, direct, op=op))
    assert (found["complete"], found["warnings"], found["drops"]["lossless"]) == (True, [], 0)
    assert found["messages"]["completed"] == found["messages"]["posted"] == 12 + 60
    detail, total = found["breakdown_detail"], found["breakdown_ps_total"]
    assert sum(detail["host_ps_total"].values()) == total["host"] > 0
    assert sum(detail["nic_ps_total"].values()) == total["nic"]
    assert sum(value for key, value in total.items() if key != "total") == total["total"]
    assert bool(detail["host_ps_total"]["copy"]) == (direct == "false")


@pytest.mark.parametrize(
    "name", ["all-to-all-native", "all-to-all-roce", "incast-native", "victim-roce", "dcqcn-2-flows"]
)
@pytest.mark.parametrize("direct", BOTH)
def test_built_in_traffic_goes_by_the_host_path_too(name: str, direct: str) -> None:
    one = small(name, "host.path=ibgda", f"host.gpu_direct={direct}", "expect=[]")
    assert memory(one)["complete"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("direct", BOTH)
def test_the_same_twice(path: str, direct: str) -> None:
    first, second = (comparable(memory(scenario(path, direct))) for _ in range(2))
    assert first == second


@pytest.mark.lab
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("profile", ["native", "roce"])
def test_the_networks_wire_changes_nothing(profile: str, path: str) -> None:
    one = scenario(path, "false", op="read", profile=profile)
    over = run(one, Options(wire="veth"))
    assert not over["disturbed"]
    assert comparable(over) == comparable(memory(one))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("direct", BOTH)
def test_a_run_that_is_cut_short_keeps_its_books(path: str, direct: str) -> None:
    whole = memory(scenario(path, direct))
    end_ns = whole["virtual_ns"]
    last = -1
    for tenth in range(0, 10, 2):
        until = f"{int(end_ns * tenth / 10) + 1}ns"
        found = memory(scenario(path, direct, f"run.until={until}"))  # conservation is checked within
        assert not found["complete"]
        messages = found["messages"]
        assert last <= messages["completed"] < messages["posted"] <= 72
        last = messages["completed"]
        assert all(0 <= link["utilization"] <= 1 for link in found["pcie"]["links"])


@pytest.mark.parametrize("path", PATHS)
def test_ctrl_c_keeps_them_too(path: str) -> None:
    def interrupt(fabric: Fabric) -> None:
        host = fabric.hosts["h0"]
        host.engine.at(3_000_000, lambda _: os.kill(os.getpid(), signal.SIGINT))

    found = memory(scenario(path, "true"), before_run=interrupt)
    assert (found["complete"], found["interrupted"]) == (False, True)
    assert found["virtual_ns"] < 30_000


@pytest.mark.parametrize("recovery", ["go_back_n", "selective_repeat"])
@pytest.mark.parametrize("op", ["write", "read", "send"])
def test_losses_are_made_up_for(op: str, recovery: str) -> None:
    given = [
        f"host.nic.loss_recovery={recovery}",
        "inject=[{link: h0-leaf0, drop: 10%, direction: both}, {link: h1-leaf0, corrupt: 10%}]",
    ]
    for path in PATHS:
        found = memory(scenario(path, "false", *given, op=op))
        assert found["complete"]
        assert sum(flow["retransmitted"] for flow in found["flows"]) > 0


ALONE = "traffic=[{kind: write, pairs: [[h0, h3]], size: 4KiB, count: 1}]"
COPIES = ("copy", "copy_out")


@pytest.mark.parametrize("path", PATHS)
def test_a_bounces_cost_is_its_copies_and_what_lies_elsewhere(path: str) -> None:
    """Two copies, each with its launch and its way across the bus; host memory is read sooner."""
    quiet = "fabric.credits.refresh=never"
    direct, bounced = (memory(scenario(path, direct, ALONE, quiet))["breakdown_ps_total"] for direct in BOTH)
    steps = [memory(scenario(path, direct, ALONE, quiet))["breakdown_detail"]["host_ps_total"] for direct in BOTH]
    legs = Legs(scenario(path, "false", ALONE))
    copy_ps = legs.gpu.copy_ps + legs.written(4096)
    sooner_ps = legs.gpu.read_ps - legs.cpu.read_ps
    changed = {
        name: after - before
        for name, before, after in zip(steps[0], steps[0].values(), steps[1].values(), strict=True)
        if after != before
    }
    assert changed == {"copy": copy_ps, "copy_out": copy_ps, "gather": -sooner_ps}
    others = {name for name in direct if direct[name] != bounced[name]}
    assert others == {"host", "total"}
    assert bounced["total"] - direct["total"] == 2 * copy_ps - sooner_ps


def packets(found: dict[str, Any], host: str) -> dict[str, int]:
    return {each["name"]: each["payload_bytes"] for each in found["pcie"]["links"] if each["name"].startswith(host)}


def test_a_bounces_extra_crossings_are_its_payloads_and_no_others() -> None:
    direct, bounced = (memory(scenario("ibgda", direct, ALONE)) for direct in BOTH)
    size = 4096
    more = {
        host: {name: count - packets(direct, host)[name] for name, count in packets(bounced, host).items()}
        for host in ("h0", "h3")
    }
    here, there = ({name: count for name, count in more[host].items() if count} for host in ("h0", "h3"))
    # Copied out of the GPU into host memory, and read from there: what the GPU sends stays as much as before.
    assert here == {"h0.pcie-h0.cpu": size, "h0.cpu-h0.pcie": size}
    assert there == {"h3.pcie-h3.cpu": size, "h3.cpu-h3.pcie": size}
