"""Rows of the latency table equal closed forms worked out here by hand; a mistake in the plan is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import emu.harness.latency
from emu.errors import ScenarioError
from emu.harness.latency import Plan, measure, scenarios_of, switches_between
from emu.report.latency import hop_needed_ns, lower_by
from emu.run import Options, run
from emu.run.assembly import topology_of
from emu.scenario.load import load
from emu.scenario.model import Scenario, Write

MEMORY = Options(wire="memory")
WIRES = ("memory", pytest.param("veth", marks=pytest.mark.lab))
# Around the payload, on the wire: LRH 8, BTH 12, ICRC 4, VCRC 2, overhead 8; or
# Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4, preamble and gap 20.
AROUND = {"native": 34, "roce": 82}
RETH, AETH, MTU, PS_PER_BYTE = 16, 4, 4096, 20
HOP_NS = {"native": 260, "roce": 600}
CABLE_NS = {0: 15, 1: 15 + 15, 3: 15 + 25 + 25 + 15, 2: 15 + 25 + 15}
POST_NS, RECEIVE_NS, DELIVERY_NS, TURNAROUND_NS, CQE_NS = 300, 300, 300, 100, 300


def transit_ns(profile: str, hops: int, wire_bytes: int) -> float:
    return CABLE_NS[hops] + hops * HOP_NS[profile] + wire_bytes * PS_PER_BYTE / 1000


def data_bytes(profile: str, size_bytes: int) -> int:
    packets = max(1, -(-size_bytes // MTU))
    return size_bytes + packets * AROUND[profile] + RETH


@pytest.mark.parametrize("hops", [1, 3])
def test_other_verbs_have_closed_forms_too(hops: int) -> None:
    """A SEND has no RETH; a READ goes there and comes back, an atomic with 28 bytes there and 12 back."""
    ops = ("send", "read", "fetch_add")
    plan = Plan(profiles=("native", "roce"), sizes_bytes=(4096,), hops=hops, ops=ops)
    legs_ns = POST_NS + RECEIVE_NS + DELIVERY_NS
    for row in measure(plan, MEMORY).rows:
        profile, around = row["profile"], AROUND[row["profile"]]
        least = 84 if profile == "roce" else 0
        asked = {"send": 0, "read": around + RETH, "fetch_add": around + 28}[row["op"]]
        data = {"send": around + MTU, "read": around + AETH + MTU, "fetch_add": around + AETH + 8}[row["op"]]
        there_ns = transit_ns(profile, hops, max(asked, least)) + RECEIVE_NS + TURNAROUND_NS if asked else 0
        data_ns = transit_ns(profile, hops, max(data, least))
        assert row["fabric_latency_ns"] == pytest.approx(data_ns, abs=1e-6)
        assert row["message_latency_ns"] == pytest.approx(legs_ns + there_ns + data_ns, abs=1e-6)


def test_a_refresh_of_credits_delays_by_no_more_than_its_own_time() -> None:
    """A flow-control packet of 14 B, at most one on each link while a message of 64 KiB passes."""
    (row,) = measure(Plan(profiles=("native",), sizes_bytes=(65_536,), hops=3), MEMORY).rows
    late_ns = row["fabric_latency_ns"] - transit_ns("native", 3, data_bytes("native", 65_536))
    assert 0 <= late_ns <= 4 * 14 * PS_PER_BYTE / 1000


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("hops", [0, 1, 2, 3])
def test_rows_equal_the_closed_forms(hops: int, wire: str) -> None:
    sizes = (64, 4096, 4100, 65_536)
    plan = Plan(profiles=("native", "roce"), sizes_bytes=sizes, hops=hops, settings=("fabric.credits.refresh=never",))
    found = measure(plan, Options(wire=wire))
    assert [(row["profile"], row["size_bytes"]) for row in found.rows] == [
        (profile, size) for profile in ("native", "roce") for size in sizes
    ]
    assert found.uneven == []
    for row in found.rows:
        profile = row["profile"]
        fabric_ns = transit_ns(profile, hops, data_bytes(profile, row["size_bytes"]))
        ack_ns = transit_ns(profile, hops, AROUND[profile] + AETH)
        completion_ns = POST_NS + fabric_ns + RECEIVE_NS + TURNAROUND_NS + ack_ns + RECEIVE_NS + CQE_NS
        assert row["fabric_latency_ns"] == pytest.approx(fabric_ns, abs=1e-6)
        assert row["message_latency_ns"] == pytest.approx(POST_NS + fabric_ns + RECEIVE_NS + DELIVERY_NS, abs=1e-6)
        assert row["completion_latency_ns"] == pytest.approx(completion_ns, abs=1e-6)
        assert row["breakdown_ns"]["switching"] == hops * HOP_NS[profile]
        assert row["breakdown_ns"]["propagation"] == CABLE_NS[hops]
        assert row["breakdown_ns"]["total"] == row["message_latency_ns"]


def test_the_hop_latency_a_claim_needs_makes_it_true() -> None:
    plan = Plan(profiles=("native", "roce"), sizes_bytes=(4096,))
    native, roce = measure(plan, MEMORY).rows
    needed_ps = round(hop_needed_ns(native, roce, Fraction(63, 100)) * 1000)
    again = Plan(profiles=("roce",), sizes_bytes=(4096,), settings=[f"fabric.hop_latency={needed_ps}ps"])
    assert lower_by(native, measure(again, MEMORY).rows[0]) == pytest.approx(0.63, abs=1e-6)
    assert lower_by(native, roce) < 0.6


def test_the_topology_can_be_changed_and_the_pair_follows() -> None:
    settings = ["fabric.topology={kind: leaf_spine, leaves: 3, spines: 1, hosts_per_leaf: 1}"]
    found = measure(Plan(profiles=("native",), sizes_bytes=(64,), settings=settings), MEMORY)
    assert found.about["pair"] == ["h0", "h2"]
    with pytest.raises(ScenarioError, match="--hops 1: no host is that many switches from h0; possible: 3"):
        scenarios_of(Plan(profiles=("native",), sizes_bytes=(64,), hops=1, settings=settings))


def test_switches_between() -> None:
    topology = topology_of(load("hello", ["fabric.topology.hosts_per_leaf=2", "traffic=[]"]))
    assert switches_between(topology, "h0") == {"h1": 1, "h2": 3, "h3": 3}


def test_an_interrupt_keeps_the_rows_that_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(profiles=("native",), sizes_bytes=(64, 128, 256))

    def interrupt_after(number: int) -> None:
        left = iter(range(number))

        def run_or_stop(scenario: Scenario, options: Options) -> dict[str, Any]:
            if next(left, None) is None:
                raise KeyboardInterrupt
            return run(scenario, options)

        monkeypatch.setattr(emu.harness.latency, "run", run_or_stop)

    interrupt_after(2)
    found = measure(plan, MEMORY)
    assert [row["size_bytes"] for row in found.rows] == [64, 128]
    assert (found.interrupted, found.to_json()["complete"]) == (True, False)
    interrupt_after(0)
    with pytest.raises(KeyboardInterrupt):
        measure(plan, MEMORY)


def test_a_row_whose_messages_did_not_all_arrive_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_fails(scenario: Scenario, options: Options) -> dict[str, Any]:
        result = run(scenario, options)
        write = scenario.traffic[0]
        if isinstance(write, Write) and write.size_bytes == 128:
            result["messages"] |= {"completed": 2, "failed": 1}
        return result

    monkeypatch.setattr(emu.harness.latency, "run", one_fails)
    found = measure(Plan(profiles=("native",), sizes_bytes=(64, 128)), MEMORY)
    assert [row["size_bytes"] for row in found.rows] == [64]
    assert found.missing == ["native 128B: traffic did not complete: 1 message failed"]
    assert found.to_json()["complete"] is False


def test_messages_that_differ_are_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_is_late(scenario: Scenario, options: Options) -> dict[str, Any]:
        result = run(scenario, options)
        write = scenario.traffic[0]
        if isinstance(write, Write) and write.size_bytes == 128:
            result["messages"]["completion_latency_ns"] |= {"mean": 5000.5, "max": 6000.0}
        return result

    monkeypatch.setattr(emu.harness.latency, "run", one_is_late)
    found = measure(Plan(profiles=("native",), sizes_bytes=(64, 128)), MEMORY)
    assert found.uneven == ["native 128B"]
    assert found.spread_ns > 800
    assert found.rows[1]["completion_latency_ns"] == 5000.5


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (Plan(profiles=("native",), sizes_bytes=(1,), ops=("wriet",)), "'wriet' is unknown; known: write"),
        (
            Plan(profiles=("nativ",), sizes_bytes=(1,)),
            "^--profile nativ: unknown profile 'nativ'; did you mean 'native'",
        ),
        (Plan(profiles=("native",), sizes_bytes=(3 * 2**30,)), "^--sizes 3GiB: .*at most 2GiB"),
        (Plan(profiles=("native",), sizes_bytes=(1,), settings=["traffic.0.size=1B"]), "use --sizes"),
        (Plan(profiles=("native",), sizes_bytes=(1,), settings=["run.until=1us"]), "run.until is not set here"),
        (Plan(profiles=("native",), sizes_bytes=(1,), settings=["run={until: 1us}"]), "run.until is not set here"),
        (Plan(profiles=("native",), sizes_bytes=(1,), settings=["fabric.profile=roce"]), "use --profile"),
        (Plan(profiles=("native",), sizes_bytes=(1,), settings=[" fabric ={profile: roce}"]), "use --profile"),
        (Plan(profiles=("native",), sizes_bytes=(1,), settings=["expect=[]"]), "use `emu run`"),
        (Plan(profiles=("native",), sizes_bytes=(1,), settings=["name=x"]), "use `emu run`"),
        (Plan(profiles=("native",), sizes_bytes=(1,), settings=["fabric.hop_latency=1"]), "has no unit"),
    ],
)
def test_a_mistake_is_found_before_anything_runs(plan: Plan, said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        scenarios_of(plan)
