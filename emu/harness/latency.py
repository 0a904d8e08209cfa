"""Latency as perftest shows it: one unloaded message at a time, for each profile and size, on a fabric of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from emu.errors import ScenarioError
from emu.report.text import shortfall
from emu.run import Options, run
from emu.run.assembly import topology_of
from emu.scenario.check import Place, one_line
from emu.scenario.field import show
from emu.scenario.load import build
from emu.scenario.model import Scenario, Write
from emu.scenario.posting import ATOMIC_BYTES, ATOMIC_OPS, OPS
from emu.scenario.profile import load_profile
from emu.scenario.provenance import Provenance
from emu.topology import Kind, Topology
from emu.units import format_size

LEAF_SPINE_HOPS = (1, 3)  # over one leaf, or over leaf, spine, leaf
# What this harness decides, and how to have it otherwise.
REFUSED_SETTINGS = {
    "fabric.profile": "use --profile, and --set fabric.KEY for each other value",
    "traffic": "use --sizes, --op and --iters",
    "run.until": "use `emu run`, and --seed for a seed",
    "expect": "use `emu run`",
    "name": "use `emu run`",
}

Result = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to measure: every profile with every size, `hops` switches away."""

    profiles: Sequence[str]
    sizes_bytes: Sequence[int]
    hops: int = 3
    ops: Sequence[str] = ("write",)
    iters: int = 3
    settings: Sequence[str] = ()
    seed: int | None = None


@dataclass(slots=True)
class Latencies:
    """Rows as `--json` shows them, and what they rest on."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    inputs: dict[str, Mapping[str, Provenance]] = field(default_factory=dict)  # by profile, then by path
    about: dict[str, Any] = field(default_factory=dict)  # what all rows share: the pair of hosts, the fabric, the wire
    uneven: list[str] = field(default_factory=list)  # rows whose messages were not all alike: means
    spread_ns: float = 0.0  # the most that messages of one row differ
    missing: list[str] = field(default_factory=list)  # rows that are not there, and why: not all messages arrived
    interrupted: bool = False  # rows are missing

    def to_json(self) -> dict[str, Any]:
        """`rows`, whether they are whole, what they rest on, and what all share."""
        inputs = {
            profile: {
                path: {"value": each.value, "kind": each.kind, "source": each.source} for path, each in paths.items()
            }
            for profile, paths in self.inputs.items()
        }
        complete = not self.interrupted and not self.missing
        notes = {"uneven": self.uneven, "spread_ns": self.spread_ns, "missing": self.missing}
        return {"rows": self.rows, "complete": complete, **self.about, **notes, "inputs": inputs}


def measure(
    plan: Plan, options: Options, before_each: Callable[[int, str], object] = lambda done, what: None
) -> Latencies:
    """Run every profile with every size; ends early where a run is interrupted. Raises ScenarioError, MachineError.

    `before_each` is told how many runs are done and what comes now.
    """
    scenarios = scenarios_of(plan)
    latencies = Latencies()
    for number, (profile, scenario) in enumerate(scenarios):
        before_each(number, scenario.name)
        try:
            result = run(scenario, options)
        except KeyboardInterrupt:  # while a fabric was built or taken down: the rows so far are whole
            if not latencies.rows:
                raise
            latencies.interrupted = True
            break
        latencies.inputs.setdefault(profile, scenario.provenance)
        if result["interrupted"]:
            latencies.interrupted = True
            break
        _add(latencies, plan, profile, scenario, result)
    return latencies


def scenarios_of(plan: Plan) -> list[tuple[str, Scenario]]:
    """One scenario a profile, operation and size, all checked before the first runs; atomics have one size."""
    _check(plan)
    pairs = {profile: _pair(plan, profile) for profile in plan.profiles}
    return [
        (profile, _scenario(plan, profile, op, size_bytes, pairs[profile]))
        for profile in plan.profiles
        for op in plan.ops
        for size_bytes in ((ATOMIC_BYTES,) if op in ATOMIC_OPS else plan.sizes_bytes)
    ]


def switches_between(topology: Topology, source: str) -> dict[str, int]:
    """For each other host, the least number of switches on a way there from `source`."""
    neighbours: dict[str, list[str]] = {node.name: [] for node in topology.nodes}
    for link in topology.links:
        neighbours[link.a.node].append(link.b.node)
        neighbours[link.b.node].append(link.a.node)
    links = {source: 0}
    queue = deque([source])
    while queue:
        node = queue.popleft()
        if node != source and topology.kind(node) is Kind.HOST:
            continue
        for other in neighbours[node]:
            if other not in links:
                links[other] = links[node] + 1
                queue.append(other)
    return {host: links[host] - 1 for host in topology.hosts if host in links and host != source}


def _check(plan: Plan) -> None:
    for op in plan.ops:
        if op not in OPS:
            raise ScenarioError(f"--op: {op!r} is unknown; known: {', '.join(OPS)}")
    for profile in plan.profiles:
        try:
            load_profile(profile)
        except ScenarioError as error:
            raise ScenarioError(f"--profile {show(profile)[1:-1]}: {error}") from None
    for text in plan.settings:
        path = text.partition("=")[0].strip()
        for refused, instead in REFUSED_SETTINGS.items():
            if _contains(refused, path) or _contains(path, refused):
                raise ScenarioError(one_line(f"--set {show(text)[1:-1]}: {refused} is not set here: {instead}"))


def _contains(path: str, inner: str) -> bool:
    return f"{inner}.".startswith(f"{path}.")


def _pair(plan: Plan, profile: str) -> tuple[str, str]:
    """The first host, and the last that is as many switches away as was asked for."""
    probe = _build(plan, profile, {"kind": "all_to_all", "size": "1B"})
    topology = topology_of(probe)
    source = topology.hosts[0]
    away = switches_between(topology, source)
    matching = [host for host, hops in away.items() if hops == plan.hops]
    if not matching:
        possible = ", ".join(str(hops) for hops in sorted(set(away.values())))
        raise ScenarioError(f"--hops {plan.hops}: no host is that many switches from {source}; possible: {possible}")
    return source, matching[-1]


def _build(plan: Plan, profile: str, traffic: Mapping[str, Any], name: str = "latency") -> Scenario:
    topology = {"kind": "leaf_spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2}
    if plan.hops not in LEAF_SPINE_HOPS:
        topology = {"kind": "line", "switches": plan.hops}
    given = {"name": name, "fabric": {"profile": profile, "topology": topology}, "traffic": [dict(traffic)]}
    # A mistake is to be named by the option that it was made in.
    options: dict[Place, str] = {
        (): f"--profile {profile}",
        ("fabric", "topology"): f"--hops {plan.hops}",
        ("traffic", 0): f"--sizes {traffic['size']}",
    }
    return build(given, plan.settings, plan.seed, options)


def _scenario(plan: Plan, profile: str, op: str, size_bytes: int, pair: tuple[str, str]) -> Scenario:
    traffic = {
        "kind": "write",
        "pairs": [list(pair)],
        "size": format_size(size_bytes),
        "count": plan.iters,
        "op": op,
    }
    name = f"latency {profile} {'' if op == 'write' else f'{op} '}{size_bytes}B"
    return _build(plan, profile, traffic, name)


def _add(latencies: Latencies, plan: Plan, profile: str, scenario: Scenario, result: Result) -> None:
    write = scenario.traffic[0]
    assert isinstance(write, Write)
    topology = scenario.resolved()["fabric"]["topology"]
    latencies.about = {"wire": result["wire"], "pair": list(write.pairs[0]), "topology": topology, "iters": plan.iters}
    label = scenario.name.removeprefix("latency ")
    short = shortfall(result)
    if short:  # a mean over some of the messages, or over none, is not this row's figure
        latencies.missing.append(f"{label}: traffic did not complete: {short}")
        return
    messages = result["messages"]
    figures = {
        "fabric_latency_ns": result["fabric_latency_ns"],
        "message_latency_ns": messages["latency_ns"],
        "completion_latency_ns": messages["completion_latency_ns"],
    }
    spread_ns = max(each["max"] - each["min"] for each in figures.values())
    if spread_ns:
        latencies.uneven.append(label)
        latencies.spread_ns = max(latencies.spread_ns, round(spread_ns, 6))
    latencies.rows.append(
        {
            "profile": profile,
            "op": write.op,
            "size_bytes": write.size_bytes,
            "hops": plan.hops,
            **{name: each["mean"] for name, each in figures.items()},
            "breakdown_ns": dict(result["breakdown_ns"]),
        }
    )
