"""Deadlocks in a run: found where there is one, named, stopped at and really one; found nowhere else."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from emu.cli import main
from emu.measure.result import comparable
from emu.run import Options, conservation, run
from emu.run.assembly import Assembly
from emu.run.knot import Knots
from emu.run.outcome import Deadlock
from emu.run.standstill import CHECK_PS, Standstill, possible
from emu.scenario.load import load, parse
from emu.scenario.model import Scenario
from emu.units import MS, NS, US
from tests.run.rings import CREDITS, PFC, Ring

BUILT_INS = ("ring-deadlock-native", "ring-deadlock-roce")
WATCHDOG = "watchdog: {{detection: 100us, restoration: 100us, action: {}}}"
IN_MEMORY = Options(wire="memory")


def watched(scenario: Scenario) -> tuple[Assembly, Standstill]:
    """A run that is looked at whether or not a deadlock is possible, up to its end or to one."""
    assembly = Assembly(scenario)
    assembly.join(None)
    standstill = Standstill(assembly.engine, scenario, assembly.fabric)
    standstill.watch()
    assembly.engine.run(scenario.run.until_ps)
    conservation.check(assembly)
    return assembly, standstill


@pytest.mark.parametrize("name", BUILT_INS)
def test_the_built_in_ring_stops_and_names_its_links(name: str) -> None:
    result = run(load(name), IN_MEMORY)
    around = [f"s{number}-s{(number + 1) % 5}" for number in range(5)]
    found = result["deadlock"]
    assert found["possible"] == found["detected"] == [around]
    assert found["at_ns"] * NS == result["virtual_ns"] * NS
    assert not result["complete"] and not result["interrupted"]
    chain = " waits for ".join([*around, around[0]])
    may, stuck = result["warnings"]
    assert may.startswith("a deadlock is possible: s0-s1 may wait for s1-s2 may wait for ")
    assert stuck.startswith(f"DEADLOCK at {found['at_ns'] / 1000:.2f} us: {chain}, and has since ")
    assert stuck.endswith(" frames stand still")
    assert all(each["holds"] for each in result["expect"])


@pytest.mark.parametrize("name", BUILT_INS)
@pytest.mark.parametrize("switch", range(5))
def test_without_the_flows_of_any_one_switch_the_built_in_ring_completes(name: str, switch: int) -> None:
    pairs = [f"[h{host},h{(host + 4) % 10}]" for host in range(10) if host // 2 != switch]
    result = run(load(name, [f"traffic.0.pairs=[{','.join(pairs)}]", "expect=[]"]), IN_MEMORY)
    assert result["complete"] and result["messages"]["completed"] == 8
    assert len(result["deadlock"]["possible"]) == 1
    assert (result["deadlock"]["detected"], result["deadlock"]["at_ns"]) == ([], None)


def test_the_exit_code_says_that_traffic_did_not_complete(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", BUILT_INS[0], "--wire", "memory", "--quiet"]
    assert main(arguments) == 5
    assert main([*arguments, "--set", "expect=[complete == true]"]) == 4
    assert "traffic did not complete" in capsys.readouterr().err


@pytest.mark.parametrize("fabric", [CREDITS, PFC])
@pytest.mark.parametrize("switch", range(5))
def test_a_ring_with_one_flow_fewer_completes(fabric: str, switch: int) -> None:
    assert run(Ring(fabric=fabric).scenario(), IN_MEMORY)["deadlock"]["detected"] == [Ring().around()]
    result = run(Ring(fabric=fabric, idle=(switch,)).scenario(), IN_MEMORY)
    assert result["complete"] and result["messages"]["completed"] == 4


@pytest.mark.parametrize("action", ["drop", "forward"])
def test_what_watchdogs_break_is_told_and_goes_on(action: str) -> None:
    result = run(Ring(fabric=f"{PFC}, {WATCHDOG.format(action)}").scenario(), IN_MEMORY)
    (told,) = (line for line in result["warnings"] if "were there no watchdogs" in line)
    assert told.startswith("at 21.54 us s0-s1 waited for s1-s2 waited for ")
    assert result["deadlock"]["detected"] == []
    assert result["complete"]
    assert result["drops"]["by_reason"]["watchdog"] > 0 if action == "drop" else result["messages"]["completed"] == 5


def test_a_lane_is_named_where_several_stand_still() -> None:
    fabric = "profile: native, flow_control: credits, credit_blocks: 132, vls: 2"
    other = Ring(fabric=fabric).scenario().traffic[0].model_dump(by_alias=True)["pairs"]
    pairs = ", ".join(f"[{source}, {destination}]" for source, destination in other)
    more = f", {{kind: write, size: 128KiB, priority: 1, pairs: [{pairs}]}}"
    found = run(Ring(fabric=fabric, more=more).scenario(), IN_MEMORY)["deadlock"]
    assert found["possible"] == [Ring().around()]
    assert found["detected"] in [[[f"{name} lane {lane}" for name in Ring().around()]] for lane in (0, 1)]


def test_it_is_found_soon_and_not_before_it_has_lasted() -> None:
    _, standstill = watched(Ring().scenario())
    at_ps = standstill.deadlock.at_ps
    assert at_ps is not None
    assert CHECK_PS <= at_ps <= 2 * CHECK_PS + US


# What is possible at all


@pytest.mark.parametrize(
    "fabric",
    [
        "{profile: native, flow_control: none, topology: RING}",
        "{profile: roce, flow_control: pfc, lossless: [], topology: RING}",
        "{profile: ndr, flow_control: credits, topology: {kind: leaf_spine, leaves: 3, spines: 2, hosts_per_leaf: 2}}",
        "{profile: roce, flow_control: pfc, topology: {kind: line, switches: 4}}",
    ],
)
def test_where_nothing_waits_in_a_circle_none_is_possible_and_nobody_looks(fabric: str) -> None:
    ring = Ring().scenario().fabric.topology.model_dump(by_alias=True, mode="json", exclude_none=True)
    scenario = parse(f"name: x\nfabric: {fabric.replace('RING', str(ring))}\ntraffic: []", "x.yaml", ())
    assembly = Assembly(scenario)
    assembly.join(None)
    assert possible(scenario, assembly.fabric) == ()
    result = run(scenario, IN_MEMORY)
    assert result["deadlock"]["possible"] == [] and result["warnings"] == []


def test_the_tables_as_installed_decide() -> None:
    """With one path to each host, dealt out, a ring of four waits in a circle one way round at most."""
    for multipath, cycles in (("ecmp", 1), ("balanced", 1), ("single", 0)):
        scenario = Ring(fabric=f"{CREDITS}, multipath: {multipath}", switches=4).scenario()
        assembly = Assembly(scenario)
        assert len(possible(scenario, assembly.fabric)) == cycles


# Looking changes nothing


def test_looking_changes_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = Ring(idle=(2,), size="1MiB").scenario()
    looked: list[Standstill] = []
    watch = Standstill.watch

    def noted(standstill: Standstill) -> None:
        looked.append(standstill)
        watch(standstill)

    monkeypatch.setattr(Standstill, "watch", noted)
    with_looks = comparable(run(scenario, IN_MEMORY))
    assert looked[0].calls > 0
    monkeypatch.setattr(Standstill, "watch", lambda _: None)
    assert comparable(run(scenario, IN_MEMORY)) == with_looks


def test_a_sampler_beside_it_changes_nothing_and_both_end() -> None:
    for ring in (Ring(), Ring(idle=(0,))):
        samples: list[Any] = []
        result = run(ring.scenario(), Options(wire="memory", on_sample=samples.append))
        assert comparable(result) == comparable(run(ring.scenario(), IN_MEMORY))
        assert samples


# Found where there is one, and nowhere else


def busy() -> Iterator[str]:
    """Leaf and spine with buffers of a few frames, and more traffic than fits."""
    topology = "topology: {kind: leaf_spine, leaves: 3, spines: 2, hosts_per_leaf: 3}"
    for fabric in ("profile: native, flow_control: credits, credit_blocks: 66", PFC.replace("20KB", "5KB")):
        for traffic in ("{kind: all_to_all, size: 64KiB}", "{kind: incast, senders: 8, receiver: h0, size: 64KiB}"):
            for arbiter in ("per_port", "fifo"):
                yield f"name: busy\nfabric: {{{fabric}, arbiter: {arbiter}, {topology}}}\ntraffic: [{traffic}]"


@pytest.mark.parametrize("text", list(busy()))
def test_leaf_and_spine_are_never_taken_for_stuck(text: str) -> None:
    assembly, standstill = watched(parse(text, "busy.yaml", ()))
    assert standstill.calls > 0
    assert standstill.deadlock == Deadlock() and standstill.warnings == []
    assert assembly.engine.tasks == 0


def random_ring(seed: int) -> Ring:
    """Any ring, any of its flows, small buffers of any size, cables up to 2 km."""
    numbers = random.Random(seed)
    switches = numbers.randint(4, 7)
    values = [
        f"arbiter: {numbers.choice(['per_port', 'per_source', 'fifo'])}",
        f"multipath: {numbers.choice(['ecmp', 'balanced', 'single'])}",
        f"switching: {numbers.choice(['cut_through', 'store_and_forward'])}",
        f"fabric_cable: {numbers.choice(['2m', '50m', '2km'])}",
        f"path_mtu: {numbers.choice(['1KiB', '4KiB'])}",
    ]
    if numbers.random() < 0.5:
        values += ["profile: native, flow_control: credits", f"credit_blocks: {numbers.randint(66, 500)}"]
        values += [f"vls: {numbers.randint(1, 3)}"]
    else:
        values += ["profile: roce, flow_control: pfc", f"xoff: {numbers.randint(5, 60)}KB"]
        values += [f"congestion_control: {numbers.choice(['none', 'dcqcn'])}"]
    return Ring(
        fabric=", ".join(values),
        switches=switches,
        hosts=numbers.randint(1, 2),
        hops=numbers.randint(switches // 2 - 1, switches // 2),
        idle=tuple(switch for switch in range(switches) if numbers.random() < 0.03),
        size=numbers.choice(["16KiB", "256KiB"]),
    )


SEEDS = range(80)
TELLING = (24, 43, 81, 85)  # where what is full, or what is on its way, makes the difference at a first look


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_found_never_moves_again_and_what_is_not_found_completes(seed: int) -> None:
    check_ring(random_ring(seed), CHECK_PS)


@pytest.mark.parametrize("seed", [*TELLING, *SEEDS[:20]])
def test_so_it_is_without_waiting_how_long_blocks_last(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict does not rest on time: looking every 10 ns at all who are blocked finds the same."""
    monkeypatch.setattr("emu.run.standstill.CHECK_PS", 10 * NS)
    check_ring(random_ring(seed), 10 * NS)


def check_ring(ring: Ring, check_ps: int) -> None:
    """A run that stops stands still for good, where it was said to; any other completes."""
    assembly, standstill = watched(ring.scenario())
    engine, fabric = assembly.engine, assembly.fabric
    if standstill.deadlock.at_ps is None:
        assert assembly.engine.tasks == 0
        assert assembly.measurement.completed == assembly.measurement.posted
        return
    assert engine.now_ps == standstill.deadlock.at_ps
    assert standstill.deadlock.possible
    (cycle,) = standstill.deadlock.detected
    stuck = {place: place.lane.blocked_since_ps for place in Knots(engine, fabric).find(engine.now_ps - check_ps)}
    assert {name.split()[0] for name in cycle} <= {place.port.name for place in stuck}
    held_bytes = {place: place.lane.held_bytes for place in stuck}
    engine.run(engine.now_ps + 20 * MS)  # several ACK timeouts, of 4.2 ms each
    assert {place: place.lane.blocked_since_ps for place in stuck} == stuck
    assert all(place.lane.held_bytes >= held for place, held in held_bytes.items())
    assert assembly.measurement.completed < assembly.measurement.posted
    conservation.check(assembly)


def test_random_rings_are_of_both_kinds() -> None:
    found = [watched(random_ring(seed).scenario())[1].deadlock.at_ps is not None for seed in SEEDS[:40]]
    assert 8 <= sum(found) <= len(found) - 8
