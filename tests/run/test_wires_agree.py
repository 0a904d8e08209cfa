"""Both wires give the same result for every built-in scenario: twice, on a loaded machine, with a small buffer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.measure.result import comparable
from emu.run import Options, run
from emu.scenario.load import load, parse
from tests.builtins import LOUD

pytestmark = pytest.mark.lab

STOCK_BUFFER_BYTES = 212_992  # net.core.rmem_default where nobody changed it
FAR = """
name: far
fabric: {profile: roce, topology: {kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 2}, fabric_cable: 10km}
traffic: [{kind: all_to_all, size: 1MiB}]
"""
FAR_CREDITS = """
name: far on credits
fabric:
  {profile: native, topology: {kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 2}, fabric_cable: 10km,
   flow_control: credits, credit_blocks: 2048}
traffic: [{kind: all_to_all, size: 128KiB}]
"""
FAR_PAUSES = """
name: far with pauses
fabric:
  {profile: roce, topology: {kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 2}, fabric_cable: 10km,
   flow_control: pfc, xoff: 200KB, xon: 100KB, headroom: tight, buffer: 64MiB, congestion_control: dcqcn}
traffic: [{kind: incast, senders: 3, receiver: h3, size: 1MiB}]
"""
BUSY = """
name: busy
fabric: {profile: native, topology: {kind: leaf_spine, leaves: 4, spines: 2, hosts_per_leaf: 2}}
traffic: [{kind: all_to_all, size: 256KiB}]
"""


def memory(text_or_name: str) -> dict[str, Any]:
    """What a run in memory gives."""
    return comparable(run(scenario(text_or_name), Options(wire="memory")))


def scenario(text_or_name: str) -> Any:
    """A built-in by name, or a text."""
    return parse(text_or_name, "test.yaml", ()) if "\n" in text_or_name else load(text_or_name)


@contextmanager
def both_cores_busy() -> Iterator[None]:
    """As many loops as there are processors, for as long as the test runs (ten minutes at most)."""
    loop = "import time\nend = time.monotonic() + 600\nwhile time.monotonic() < end: pass"
    loops = [subprocess.Popen([sys.executable, "-c", loop]) for _ in range(os.cpu_count() or 2)]
    try:
        yield
    finally:
        for process in loops:
            process.kill()
            process.wait()


@pytest.mark.parametrize("name", ["all-to-all-roce", "two-vls", "pause-storm", "dcqcn-2-flows"])
def test_a_built_in_is_equal_on_both_wires_and_twice(name: str) -> None:
    expected = memory(name)
    for _ in range(2):
        result = run(scenario(name), Options(wire="veth"))
        assert result["wire"] == "veth"
        assert not result["disturbed"]
        assert bool(result["warnings"]) == (name in LOUD)
        assert comparable(result) == expected


def test_another_process_on_both_cores_changes_nothing() -> None:
    expected = memory(BUSY)
    with both_cores_busy():
        result = run(scenario(BUSY), Options(wire="veth"))
    assert not result["disturbed"]
    assert comparable(result) == expected


@pytest.mark.parametrize("text", [FAR, FAR_CREDITS, FAR_PAUSES])
def test_a_stock_receive_buffer_and_ten_kilometres_of_cable_change_nothing(text: str) -> None:
    """10 km at 400 Gb/s is 2.5 MB on the wire: twelve times what the buffer holds."""
    expected = memory(text)
    result = run(scenario(text), Options(wire="veth", receive_buffer_bytes=STOCK_BUFFER_BYTES))
    assert not result["disturbed"]
    assert comparable(result) == expected
    assert result["fabric_latency_ns"]["max"] > 100_000


SIZES = st.sampled_from(["1B", "300B", "4KiB", "10000B", "64KiB", "100KB"])
TOPOLOGIES = st.one_of(
    st.builds(
        lambda leaves, spines, hosts: {
            "kind": "leaf_spine",
            "leaves": leaves,
            "spines": spines,
            "hosts_per_leaf": hosts,
        },
        st.integers(2, 3),
        st.integers(1, 2),
        st.just(2),
    ),
    st.just({"kind": "line", "switches": 2}),
)
ECN = st.builds(
    lambda kmin, more, pmax: {"kmin": f"{kmin}KB", "kmax": f"{kmin + more}KB", "pmax": f"{pmax}%"},
    st.integers(0, 20),
    st.integers(0, 60),
    st.integers(1, 100),
)


def usual(draw: st.DrawFn, topology: dict[str, Any], priorities: list[int]) -> list[dict[str, Any]]:
    """An incast on the last host, and more traffic of several priorities."""
    last = 1 if topology["kind"] == "line" else topology["leaves"] * topology["hosts_per_leaf"] - 1
    first = {
        "kind": "incast",
        "senders": last,
        "receiver": f"h{last}",
        "size": draw(st.sampled_from(["64KiB", "200KB"])),
    }
    made: list[dict[str, Any]] = [first | {"priority": draw(st.sampled_from(priorities))}]
    for _ in range(draw(st.integers(0, 2))):
        one: dict[str, Any] = {"size": draw(SIZES), "priority": draw(st.sampled_from(priorities))}
        match draw(st.sampled_from(["incast", "all_to_all", "permutation", "write"])):
            case "incast":
                one |= {"kind": "incast", "senders": last, "receiver": f"h{last}"}
            case "write":
                one |= {"kind": "write", "pairs": [["h0", f"h{last}"]], "qps": draw(st.integers(1, 2))}
                one["count"] = draw(st.integers(1, 20))
            case kind:
                one |= {"kind": kind}
        made.append(one)
    return made


def any_fabric(draw: st.DrawFn, profile: str) -> dict[str, Any]:
    """What both networks have."""
    return {
        "profile": profile,
        "topology": draw(TOPOLOGIES),
        "path_mtu": draw(st.sampled_from(["256B", "1KiB", "4KiB"])),
        "switching": draw(st.sampled_from(["cut_through", "store_and_forward"])),
        "multipath": draw(st.sampled_from(["ecmp", "single", "balanced"])),
        "arbiter": draw(st.sampled_from(["per_port", "per_source", "fifo"])),
        "fabric_cable": draw(st.sampled_from(["5m", "300m"])),
    }


@st.composite
def on_credits(draw: st.DrawFn) -> dict[str, Any]:
    """Windows down to a single frame, several VLs; now and then marks and InfiniBand's congestion control."""
    fabric = any_fabric(draw, "native")
    vls = draw(st.integers(1, 4))
    least = {"256B": 6, "1KiB": 18, "4KiB": 66}[fabric["path_mtu"]]
    marks = draw(st.one_of(st.just("none"), ECN))
    fabric |= {
        "flow_control": "credits",
        "credit_blocks": draw(st.one_of(st.integers(least, 2 * least), st.integers(least, 2048))),
        "credits": {
            "threshold": draw(st.integers(1, 300)),
            "refresh": draw(st.sampled_from(["5243ns", "900ns", "never"])),
            "fcp_wire_bytes": "14B",
        },
        "vls": vls,
        "ecn": marks,
        "congestion_control": "none" if marks == "none" else draw(st.sampled_from(["none", "ib_cca"])),
    }
    return {"name": "any on credits", "fabric": fabric, "traffic": usual(draw, fabric["topology"], [0, 1, 2, 3])}


@st.composite
def on_pauses(draw: st.DrawFn) -> dict[str, Any]:
    """Thresholds of a few frames and storms, so that much is paused; marks, DCQCN, watchdogs and lossy drops too."""
    fabric = any_fabric(draw, "roce")
    fabric |= {
        "flow_control": "pfc",
        "xoff": draw(st.one_of(st.just("dynamic"), *[st.integers(5, 60).map(lambda size: f"{size}KB")] * 3)),
        "buffer": draw(st.sampled_from(["4MiB", "64MiB"])),
        "headroom": draw(st.sampled_from(["tight", "mixed", "vendor"])),
        "pause": {"quanta": draw(st.sampled_from([1000, 65535])), "response": "0ns", "resume": "0ns"},
        "lossless": [3, 4],
        "ecn": draw(ECN),
        "congestion_control": draw(st.sampled_from(["none", "dcqcn"])),
        "watchdog": draw(
            st.sampled_from(
                ["none", *({"detection": "3us", "restoration": "5us", "action": each} for each in ("drop", "forward"))]
            )
        ),
    }
    traffic = usual(draw, fabric["topology"], [0, 3, 4])
    if draw(st.booleans()):
        traffic.append({"kind": "pause_storm", "host": "h1", "start": "2us", "duration": "7us", "priority": 3})
    return {"name": "any with pauses", "fabric": fabric, "traffic": traffic}


ANY = settings(max_examples=5, deadline=None, derandomize=True)
MANY = settings(ANY, max_examples=100)


def check_both(made: dict[str, Any]) -> None:
    """Twice over veth, as in memory."""
    text = json.dumps({**made, "run": {"until": "20ms"}}, indent=1)
    expected = memory(text)
    for _ in range(2):
        result = run(scenario(text), Options(wire="veth"))
        assert not result["disturbed"]
        assert comparable(result) == expected


@pytest.fixture(scope="module")
def busy_machine() -> Iterator[None]:
    """Others want the processors too."""
    with both_cores_busy():
        yield


@ANY
@given(on_credits())
def test_any_scenario_on_credits_is_equal_under_load(busy_machine: None, made: dict[str, Any]) -> None:
    check_both(made)


@ANY
@given(on_pauses())
def test_any_scenario_with_pauses_is_equal_under_load(busy_machine: None, made: dict[str, Any]) -> None:
    check_both(made)


@pytest.mark.long
@MANY
@given(st.one_of(on_credits(), on_pauses()))
def test_many_scenarios_are_equal_under_load(busy_machine: None, made: dict[str, Any]) -> None:
    check_both(made)
