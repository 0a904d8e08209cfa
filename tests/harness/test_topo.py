"""What `emu topo` works out: paths, headroom, what credits let through as both ends of a link have it, deadlock."""

from __future__ import annotations

import json
from typing import Any

import pytest

import topologies
from emu.deadlock import find_cycle
from emu.framing.native import NativeFraming
from emu.framing.roce import RoceFraming
from emu.harness.topo import describe
from emu.linklayer.credits import CreditConfig
from emu.scenario.load import build
from emu.subnet import Subnet, single_path
from tests.linklayer.test_credit_throughput import Line

LEAF_SPINE = {"kind": "leaf_spine", "leaves": 4, "spines": 2, "hosts_per_leaf": 2}
LINE = {"kind": "line", "switches": 1}


def facts(profile: str = "native", topology: Any = None, **values: Any) -> dict[str, Any]:
    """What is worked out for a fabric with these values."""
    fabric = {"profile": profile, "topology": topology or LEAF_SPINE, **values}
    scenario = build({"name": "any", "fabric": fabric, "traffic": []})
    made = topologies.build(scenario.fabric.topology, scenario.fabric.link_defaults)
    framing = NativeFraming if scenario.fabric.framing == "native" else RoceFraming
    found = describe(scenario, made, framing(scenario.fabric.framing_overhead_bytes))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    return found


def ring(switches: int) -> dict[str, Any]:
    numbers = range(switches)
    access = [{"a": f"h{number}", "b": f"s{number}"} for number in numbers]
    around = [{"a": f"s{number}", "b": f"s{(number + 1) % switches}"} for number in numbers]
    names = {kind: [f"{kind[0]}{number}" for number in numbers] for kind in ("hosts", "switches")}
    return {"kind": "graph", **names, "links": access + around}


def test_nodes_and_links() -> None:
    found = facts(fabric_cable="40m")
    assert [node["name"] for node in found["nodes"] if node["kind"] == "host"] == [f"h{number}" for number in range(8)]
    assert {node["name"]: node["ports"] for node in found["nodes"]}["leaf3"] == 4
    assert found["links"][-1] == {
        "name": "leaf3-spine1",
        "from": "leaf3",
        "to": "spine1",
        "interfaces": ["leaf3-eth4", "spine1-eth4"],
        "rate_bps": 400 * 10**9,
        "cable_m": 40,
        "propagation_ns": 200,
        "lossless_by": found["links"][0]["lossless_by"],
    }


@pytest.mark.parametrize(("multipath", "paths"), [("ecmp", 8 * 1 + 48 * 2), ("single", 56), ("balanced", 104)])
def test_paths_on_a_leaf_spine(multipath: str, paths: int) -> None:
    found = facts(multipath=multipath)["paths"]
    assert found == {"pairs": 56, "paths": paths, "min_switches": 1, "max_switches": 3}


def test_paths_around_a_ring_and_back_to_back() -> None:
    # Of six switches the opposite one is reached both ways round.
    assert facts(topology=ring(6))["paths"] == {"pairs": 30, "paths": 36, "min_switches": 2, "max_switches": 4}
    back_to_back = facts(topology={"kind": "line", "switches": 0})["paths"]
    assert back_to_back == {"pairs": 2, "paths": 2, "min_switches": 0, "max_switches": 0}
    assert facts(topology={"kind": "line", "switches": 1500})["paths"]["max_switches"] == 1500


@pytest.mark.parametrize(
    ("rate", "pause_ns", "response_bytes"),
    [("100Gbps", 335_539.2, 25_216), ("200Gbps", 167_769.6, 28_992), ("400Gbps", 83_884.8, 57_920)],
)
def test_headroom_and_the_longest_pause_of_a_rate(rate: str, pause_ns: float, response_bytes: int) -> None:
    (row,) = facts("roce", LINE, flow_control="pfc", rate=rate, host_cable="40m", headroom="mixed")["headroom"]
    assert (row["first"], row["directions"], row["cable_m"]) == ("h0-s0", 2, 40)
    assert row["pause_ns"] == pause_ns
    assert row["vendor_terms"]["response_bytes"] == response_bytes
    assert row["delay_ns"] == pytest.approx((4194 + 84) * 8e9 / row["rate_bps"] + 2 * 200)
    assert row["tight_bytes"] == row["frames"] * 4174
    assert row["refresh_ns"] == pytest.approx(pause_ns - (4194 + 84) * 8e9 / row["rate_bps"])
    assert (row["chosen"], row["chosen_bytes"]) == ("mixed", row["mixed_bytes"])


def test_what_switches_set_aside() -> None:
    found = facts("roce", LINE, flow_control="pfc", headroom="10KB", reserved="1KB", buffer="1MB", alpha="1/3")
    (switch,) = [node for node in found["nodes"] if node["kind"] == "switch"]
    assert switch["set_aside_bytes"] == 2 * (8 * 1000 + 10_000)
    assert switch["shared_bytes"] == 1_000_000 - 36_000
    assert switch["xoff_bytes"] == 964_000 // 4 + 1000  # a third of what is free is a quarter of all
    fixed = facts("roce", LINE, flow_control="pfc", headroom="10KB", buffer="1MB", xoff="50KB")
    assert fixed["ecn"]["xoff_bytes"] == 50_000
    assert all("xoff_bytes" not in node for node in found["nodes"] if node["kind"] == "host")


@pytest.mark.parametrize(
    ("kmin", "kmax", "before_marking", "before_kmax"),
    [("10KB", "50KB", False, False), ("10KB", "51KB", False, True), ("50KB", "51KB", True, True)],
)
def test_which_of_pfc_and_ecn_comes_first(kmin: str, kmax: str, before_marking: bool, before_kmax: bool) -> None:
    ecn = {"kmin": kmin, "kmax": kmax, "pmax": "10%"}
    found = facts("roce", LINE, flow_control="pfc", xoff="50KB", ecn=ecn)["ecn"]
    assert (found["pfc_before_marking"], found["pfc_before_kmax"]) == (before_marking, before_kmax)
    assert facts("roce", LINE, flow_control="none", congestion_control="none", ecn="none")["ecn"] is None


def test_a_credit_round_trip_by_hand() -> None:
    into_host, into_switch = facts(topology=LINE, flow_control="credits", fabric_cable="1m")["credits"][::-1]
    assert (into_host["into"], into_switch["into"]) == ("host", "switch")
    assert into_switch["round_trip_ns"] == pytest.approx(2 * 15 + 260 + 82.92 + 0.28)
    assert into_host["round_trip_ns"] == pytest.approx(2 * 15 + 82.92 + 0.28)
    assert into_switch["busy_round_trip_ns"] == pytest.approx(into_switch["round_trip_ns"] + 82.92)
    stored = facts(topology=LINE, flow_control="credits", switching="store_and_forward")["credits"][0]
    assert stored["round_trip_ns"] == pytest.approx(into_switch["round_trip_ns"] + 82.92)


@pytest.mark.parametrize("blocks", [65, 130, 200, 325, 400, 650, 1024])
@pytest.mark.parametrize("metres", [3, 100])
def test_credits_let_through_what_both_ends_do(blocks: int, metres: int) -> None:
    row = facts(topology=LINE, flow_control="credits", credit_blocks=blocks, host_cable=f"{metres}m")["credits"][0]
    config = CreditConfig(capacity_blocks=blocks, threshold_blocks=256, mtu_blocks=65)
    starts = Line(config, 65, 82_920, metres * 5000, 260_000, 280).run()
    rate_bps = (len(starts) - 1) * 4146 * 8 * 10**12 / (starts[-1] - starts[0])
    least, most = row["at_least_bps"], row["at_most_bps"]
    assert least * 0.99 <= rate_bps <= most * 1.01
    assert (row["suffices"] == "always") == (least == 400 * 10**9)
    assert (row["suffices"] == "no") == (most < 400 * 10**9)


@pytest.mark.parametrize("metres", [3, 100])
def test_the_blocks_needed_are_enough_and_no_more(metres: int) -> None:
    def row(blocks: int) -> dict[str, Any]:
        found = facts(topology=LINE, flow_control="credits", credit_blocks=blocks, host_cable=f"{metres}m")
        return dict(found["credits"][0])

    for key, enough in (("needed_blocks", ("always", "at best")), ("busy_needed_blocks", ("always",))):
        needed = row(65)[key]
        assert row(needed)["suffices"] in enough
        assert row(needed - 1)["suffices"] not in enough


def test_a_window_that_cannot_be_granted() -> None:
    row = facts(topology=LINE, flow_control="credits", host_cable="2km")["credits"][0]
    assert (row["suffices"], row["grantable"]) == ("no", False)


def test_a_ring_can_deadlock_and_a_tree_cannot() -> None:
    around = [f"s{number}-s{(number + 1) % 5}" for number in range(5)]
    for profile, control in (("roce", "pfc"), ("native", "credits")):
        deadlock = facts(profile, ring(5), flow_control=control)["deadlock"]
        assert deadlock["possible"] and deadlock["cycle"] == around
    assert facts(flow_control="credits")["deadlock"] == {"possible": False, "cycle": [], "nics": "sink"}


@pytest.mark.parametrize("values", [{"flow_control": "none"}, {"flow_control": "pfc", "lossless": []}])
def test_where_nothing_waits_there_is_no_deadlock(values: dict[str, Any]) -> None:
    deadlock = facts("roce", ring(5), **values)["deadlock"]
    assert len(deadlock["cycle"]) == 5 and not deadlock["possible"]


def test_one_path_a_destination_is_what_the_switches_have() -> None:
    fabric = build({"name": "any", "fabric": {"profile": "native", "topology": ring(4)}, "traffic": []}).fabric
    topology = topologies.build(fabric.topology, fabric.link_defaults)
    tables = Subnet(topology).tables()
    chosen = {name: single_path(table) for name, table in tables.items()}
    assert all(len(ways) == 1 for table in chosen.values() for ways in table.values())
    for multipath, used in (("single", chosen), ("ecmp", tables)):
        found = facts(topology=ring(4), flow_control="credits", multipath=multipath)["deadlock"]
        assert found["cycle"] == (find_cycle(topology, used) or [])
