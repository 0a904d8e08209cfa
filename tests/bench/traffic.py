"""The all-to-all that is measured: 16 hosts, 4 leaves, 4 spines, 256 KiB from each host to each other."""

from __future__ import annotations

from emu.scenario.load import parse
from emu.scenario.model import Scenario


def all_to_all(profile: str = "native", size: str = "256KiB", count: int = 1, *settings: str) -> Scenario:
    """The scenario, `count` rounds of it; `settings` as for `--set`."""
    text = f"""
name: bench
fabric: {{profile: {profile}, topology: {{kind: leaf_spine, leaves: 4, spines: 4, hosts_per_leaf: 4}}}}
traffic: [{{kind: all_to_all, size: {size}, count: {count}}}]
"""
    return parse(text, "bench.yaml", settings)
