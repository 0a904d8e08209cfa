"""Both wires give the same result for every built-in scenario: twice, on a loaded machine, with a small buffer."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from emu.measure.result import comparable
from emu.run import Options, run
from emu.scenario import builtin
from emu.scenario.load import load, parse

pytestmark = pytest.mark.lab

WARNED = {"ring-deadlock-native", "ring-deadlock-roce"}  # of what they are there to show
STOCK_BUFFER_BYTES = 212_992  # net.core.rmem_default where nobody changed it
FAR = """
name: far
fabric: {profile: roce, topology: {kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 2}, fabric_cable: 10km}
traffic: [{kind: all_to_all, size: 1MiB}]
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
    """As many loops as there are processors, for as long as the test runs (two minutes at most)."""
    loop = "import time\nend = time.monotonic() + 120\nwhile time.monotonic() < end: pass"
    loops = [subprocess.Popen([sys.executable, "-c", loop]) for _ in range(os.cpu_count() or 2)]
    try:
        yield
    finally:
        for process in loops:
            process.kill()
            process.wait()


@pytest.mark.parametrize("name", builtin.names())
def test_every_built_in_is_equal_on_both_wires_and_twice(name: str) -> None:
    expected = memory(name)
    for _ in range(2):
        result = run(scenario(name), Options(wire="veth"))
        assert result["wire"] == "veth"
        assert not result["disturbed"]
        assert bool(result["warnings"]) == (name in WARNED)
        assert comparable(result) == expected


def test_another_process_on_both_cores_changes_nothing() -> None:
    expected = memory(BUSY)
    with both_cores_busy():
        result = run(scenario(BUSY), Options(wire="veth"))
    assert not result["disturbed"]
    assert comparable(result) == expected


def test_a_stock_receive_buffer_and_ten_kilometres_of_cable_change_nothing() -> None:
    """10 km at 400 Gb/s is 2.5 MB on the wire: twelve times what the buffer holds."""
    expected = memory(FAR)
    result = run(scenario(FAR), Options(wire="veth", receive_buffer_bytes=STOCK_BUFFER_BYTES))
    assert not result["disturbed"]
    assert comparable(result) == expected
    assert result["fabric_latency_ns"]["max"] > 100_000
