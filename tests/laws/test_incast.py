"""Fifteen hosts write to one: its link is never idle, nothing is lost, and shares follow from the topology."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

from emu.measure.fairness import jain
from emu.run import Options, run
from emu.scenario.load import parse

Result = Mapping[str, Any]
SENDERS, SIZE, MTU, PS_PER_BYTE = 15, 1 << 20, 4096, 20
AROUND = {"native": 34, "roce": 82}  # bytes around a payload on the wire, RETH (16) on a message's first frame aside
HOP_PS = {"native": 260_000, "roce": 600_000}
HOST_CABLE_PS, POST_PS, RECEIVE_AND_DELIVERY_PS = 15_000, 300_000, 600_000
FOUR_BY_FOUR = "leaves: 4, spines: 4, hosts_per_leaf: 4"
ONE_SWITCH = "leaves: 1, spines: 1, hosts_per_leaf: 16"


@cache
def incast(profile: str, more: str = "", shape: str = FOUR_BY_FOUR) -> Result:
    """In memory, congestion control off."""
    text = f"""
name: incast
fabric:
  profile: {profile}
  congestion_control: none
  topology: {{kind: leaf_spine, {shape}}}
{more}
traffic: [{{kind: incast, senders: {SENDERS}, receiver: h0, size: 1MiB}}]
"""
    return run(parse(text, "incast.yaml", ()), Options(wire="memory"))


@pytest.mark.parametrize("multipath", ["ecmp", "balanced", "single"])
@pytest.mark.parametrize("profile", ["native", "roce"])
def test_the_last_bit_comes_when_the_receivers_link_has_carried_all(profile: str, multipath: str) -> None:
    result = incast(profile, f"  multipath: {multipath}")
    assert (result["drops"]["lossless"], result["drops"]["lossy"], result["messages"]["completed"]) == (0, 0, SENDERS)
    all_frames_ps = SENDERS * (SIZE + SIZE // MTU * AROUND[profile] + 16) * PS_PER_BYTE
    first_bit_ps = POST_PS + HOST_CABLE_PS + HOP_PS[profile] + HOST_CABLE_PS  # from a host of the same leaf
    last_bit_ps = max(flow["finish_ns"] for flow in result["flows"]) * 1000 - RECEIVE_AND_DELIVERY_PS
    assert all_frames_ps + first_bit_ps <= round(last_bit_ps) <= 1.005 * (all_frames_ps + first_bit_ps)


@pytest.mark.parametrize("profile", ["native", "roce"])
def test_one_switch_is_fair(profile: str) -> None:
    assert incast(profile, shape=ONE_SWITCH)["fairness"]["jain"] >= 0.999


@pytest.mark.parametrize("profile", ["native", "roce"])
def test_the_parking_lot(profile: str) -> None:
    """Three local ports and four uplinks take turns, three remote senders behind each uplink: 0.754."""
    fairness = incast(profile, "  multipath: balanced")["fairness"]
    expected = jain([3] * 3 + [1] * 12)
    assert expected == pytest.approx(0.754, abs=0.001)
    assert fairness["jain"] == pytest.approx(expected, abs=0.01)
    assert fairness["sentence"].startswith("Same-leaf senders got 3.")
    assert "the parking lot" in fairness["sentence"]


@pytest.mark.parametrize("profile", ["native", "roce"])
def test_by_hash_it_is_what_the_runs_own_paths_say(profile: str) -> None:
    result = incast(profile)
    by_port = defaultdict(list)
    for flow in result["flows"]:
        by_port[flow["path"][-2]].append(flow["src"])
    shares = [1 / len(senders) for senders in by_port.values() for _ in senders]
    predicted = sum(shares) ** 2 / (len(shares) * sum(share * share for share in shares))
    assert result["fairness"]["jain"] == pytest.approx(predicted, abs=0.02)


@pytest.mark.parametrize("multipath", ["ecmp", "balanced"])
@pytest.mark.parametrize("profile", ["native", "roce"])
def test_turns_of_sources_are_fair(profile: str, multipath: str) -> None:
    result = incast(profile, f"  arbiter: per_source\n  multipath: {multipath}")
    assert result["fairness"]["jain"] >= 0.99
    assert result["fairness"]["sentence"] == ""
