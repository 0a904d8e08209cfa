"""Latency as perftest shows it: one unloaded message at a time, for each profile and size, on a fabric of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from emu.errors import ScenarioError
from emu.run import Options, run
from emu.run.assembly import topology_of
from emu.scenario.load import build
from emu.scenario.model import Scenario
from emu.scenario.provenance import Provenance
from emu.topology import Kind, Topology

OPS = ("write",)
LATER_OPS = ("read", "send", "write_imm", "fetch_add", "cmp_swp")
LEAF_SPINE_HOPS = (1, 3)  # over one leaf, or over leaf, spine, leaf
REFUSED_SETTINGS = ("traffic", "name", "run.until", "expect")  # what this harness decides

Result = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to measure: every profile with every size, `hops` switches away."""

    profiles: Sequence[str]
    sizes_bytes: Sequence[int]
    hops: int = 3
    op: str = "write"
    iters: int = 3
    settings: Sequence[str] = ()
    seed: int | None = None


@dataclass(slots=True)
class Latencies:
    """Rows as `--json` shows them, and what they rest on."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    inputs: dict[str, Mapping[str, Provenance]] = field(default_factory=dict)  # by profile, then by path
    results: list[Result] = field(default_factory=list)  # of each row's run
    about: dict[str, Any] = field(default_factory=dict)  # what all rows share: the pair of hosts, the fabric, the wire
    uneven: list[str] = field(default_factory=list)  # rows whose messages were not all alike: means
    interrupted: bool = False  # rows are missing

    def to_json(self) -> dict[str, Any]:
        """`rows`, whether they are whole, what they rest on, and what all share."""
        inputs = {
            profile: {
                path: {"value": each.value, "kind": each.kind, "source": each.source} for path, each in paths.items()
            }
            for profile, paths in self.inputs.items()
        }
        complete = not self.interrupted and all(result["complete"] for result in self.results)
        return {"rows": self.rows, "complete": complete, **self.about, "uneven": self.uneven, "inputs": inputs}


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
        latencies.results.append(result)
        _add(latencies, plan, profile, scenario, result)
    return latencies


def scenarios_of(plan: Plan) -> list[tuple[str, Scenario]]:
    """One scenario a profile and size, all checked before the first runs."""
    _check(plan)
    pairs = {profile: _pair(plan, profile) for profile in plan.profiles}
    return [
        (profile, _scenario(plan, profile, size_bytes, pairs[profile]))
        for profile in plan.profiles
        for size_bytes in plan.sizes_bytes
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
    if plan.op in LATER_OPS:
        raise ScenarioError(f"--op: not yet: {plan.op!r} comes with a later version; allowed now: {', '.join(OPS)}")
    if plan.op not in OPS:
        raise ScenarioError(f"--op: {plan.op!r} is unknown; known: {', '.join(OPS)}")
    for text in plan.settings:
        path = text.partition("=")[0].strip()
        for refused in REFUSED_SETTINGS:
            if path == refused or path.startswith(f"{refused}."):
                raise ScenarioError(f"--set {text}: not here; use --sizes, --op and --iters, or `emu run`")


def _pair(plan: Plan, profile: str) -> tuple[str, str]:
    """The first host, and the last that is as many switches away as was asked for."""
    probe = build(_given(plan, profile, {"kind": "all_to_all", "size": "1B"}), plan.settings, plan.seed)
    topology = topology_of(probe)
    source = topology.hosts[0]
    away = switches_between(topology, source)
    matching = [host for host, hops in away.items() if hops == plan.hops]
    if not matching:
        possible = ", ".join(str(hops) for hops in sorted(set(away.values())))
        raise ScenarioError(f"--hops {plan.hops}: no host is that many switches from {source}; possible: {possible}")
    return source, matching[-1]


def _given(plan: Plan, profile: str, traffic: Mapping[str, Any], name: str = "latency") -> dict[str, Any]:
    topology = {"kind": "leaf_spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2}
    if plan.hops not in LEAF_SPINE_HOPS:
        topology = {"kind": "line", "switches": plan.hops}
    return {"name": name, "fabric": {"profile": profile, "topology": topology}, "traffic": [dict(traffic)]}


def _scenario(plan: Plan, profile: str, size_bytes: int, pair: tuple[str, str]) -> Scenario:
    traffic = {
        "kind": "write",
        "pairs": [list(pair)],
        "size": f"{size_bytes}B",
        "count": plan.iters,
        "op": plan.op,
    }
    name = f"latency {profile} {size_bytes}B"
    return build(_given(plan, profile, traffic, name), plan.settings, plan.seed)


def _add(latencies: Latencies, plan: Plan, profile: str, scenario: Scenario, result: Result) -> None:
    messages = result["messages"]
    figures = {
        "fabric_latency_ns": result["fabric_latency_ns"],
        "message_latency_ns": messages["latency_ns"],
        "completion_latency_ns": messages["completion_latency_ns"],
    }
    if any(each["min"] != each["max"] for each in figures.values()):
        latencies.uneven.append(scenario.name.removeprefix("latency "))
    write = scenario.traffic[0]
    latencies.rows.append(
        {
            "profile": profile,
            "op": plan.op,
            "size_bytes": write.size_bytes,
            "hops": plan.hops,
            **{name: each["mean"] for name, each in figures.items()},
            "breakdown_ns": dict(result["breakdown_ns"]),
        }
    )
    topology = scenario.resolved()["fabric"]["topology"]
    pair = [result["flows"][0]["src"], result["flows"][0]["dst"]] if result["flows"] else []
    latencies.about = {"wire": result["wire"], "pair": pair, "topology": topology, "iters": plan.iters}
