"""From a doorbell to the wire: one message's life by each path, and message rates with what bounds them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from emu.errors import ScenarioError
from emu.fabric import Fabric
from emu.frame import Message
from emu.host.limits import Limits
from emu.host.trace import Step, Trace
from emu.parts import HOST_PLACE, STEPS, TURN, unpack
from emu.report.text import shortfall
from emu.run import Options, run
from emu.scenario.check import Place, one_line
from emu.scenario.field import show
from emu.scenario.host_path import PATHS
from emu.scenario.load import build
from emu.scenario.model import Scenario
from emu.scenario.provenance import Provenance
from emu.units import NS, SECOND, format_size

PAIR = ["h0", "h1"]  # under one leaf
MESSAGES, FEWEST_MESSAGES, ENOUGH_BYTES = 6000, 32, 64 << 20
NIC_PLACE = 0  # of a message's parts
SEND_QUEUES = "send queues"
LEGS_MESSAGES = 2  # the first finds no queue pair's context in the NIC, the second is shown
REFUSED_SETTINGS = {
    "fabric.profile": "use --profile",
    "host.path": "use --path",
    "host.gpu_direct": "use --gpu-direct",
    "host.gpu.warps": "use --warps",
    "traffic": "use --sizes and --messages",
    "run.until": "use `emu run`",
    "expect": "use `emu run`",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to measure: each path with each size, with and without GPU-direct, by each number of warps."""

    profile: str = "native"
    paths: Sequence[str] = PATHS
    gpu_direct: Sequence[bool] = (True,)
    sizes_bytes: Sequence[int] = (8,)
    warps: Sequence[int] = (1, 128)
    cores: Sequence[int | None] = (None,)  # of cpu_proxy; None: as the profile has it
    qps: int | None = None  # None: num_rc_per_pe
    messages: int | None = None  # for each rate; None: what `_messages` says
    settings: Sequence[str] = ()
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One row: what is asked, and its two scenarios."""

    path: str
    gpu_direct: bool
    size_bytes: int
    warps: int
    cores: int | None
    qps: int
    legs: Scenario
    rate: Scenario

    @property
    def name(self) -> str:
        """As progress and complaints call it."""
        bounce = "" if self.gpu_direct else " without GPU-direct"
        cores = f" {self.cores} core{'s' if self.cores > 1 else ''}" if self.cores else ""
        many = "s" if self.warps > 1 else ""
        return f"{self.path}{bounce}{cores} {format_size(self.size_bytes)} {self.warps} warp{many}"


@dataclass(slots=True)
class Doorbells:
    """Rows as `--json` shows them, and what they rest on."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    inputs: Mapping[str, Provenance] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    interrupted: bool = False

    def to_json(self) -> dict[str, Any]:
        """`rows`, whether they are whole, and what they rest on."""
        inputs = {
            path: {"value": each.value, "kind": each.kind, "source": each.source} for path, each in self.inputs.items()
        }
        complete = not self.interrupted and not self.missing
        return {"rows": self.rows, "complete": complete, "missing": self.missing, "inputs": inputs}


def cases_of(plan: Plan) -> list[Case]:
    """Every row's scenarios, all checked before the first runs. Raises ScenarioError."""
    _check(plan)
    return [
        _case(plan, path, direct, size_bytes, warps, cores)
        for path in dict.fromkeys(plan.paths)
        for direct in plan.gpu_direct
        for size_bytes in dict.fromkeys(plan.sizes_bytes)
        for warps in dict.fromkeys(plan.warps)
        for cores in (dict.fromkeys(plan.cores) if path == "cpu_proxy" else (None,))
    ]


def measure(
    cases: Sequence[Case], options: Options, before_each: Callable[[int, str], object] = lambda done, what: None
) -> Doorbells:
    """Run every case; ends early where a run is interrupted. Raises ScenarioError, MachineError."""
    found = Doorbells()
    for number, case in enumerate(cases):
        before_each(number, case.name)
        try:
            row = _row(case, options, found)
        except KeyboardInterrupt:
            if not found.rows:
                raise
            found.interrupted = True
        if found.interrupted:
            break
        found.inputs = dict(found.inputs) | dict(case.rate.provenance)
        if row is not None:
            found.rows.append(row)
    return found


def _row(case: Case, options: Options, found: Doorbells) -> dict[str, Any] | None:
    life = _legs(case, options, found)
    rate = _rate(case, options, found)
    if life is None or rate is None:
        return None
    (message, steps), (times, wire_ps) = life, rate
    limits = _limits(case, message, wire_ps, len(times))
    binding = min(limits, key=lambda name: limits[name])
    return {
        "path": case.path,
        "gpu_direct": case.gpu_direct,
        "size_bytes": case.size_bytes,
        "warps": case.warps,
        "cores": case.cores,
        "qps": case.qps,
        "link_bps": case.rate.fabric.rate_bps,
        "messages_per_s": _per_second(times),
        "limit_per_s": float(limits[binding]),
        "bound_by": binding,
        "limits_per_s": {name: float(term) for name, term in limits.items()},
        "latency_ns": (message.delivered_ps - message.posted_ps) / NS,
        "completion_latency_ns": (message.completed_ps - message.posted_ps) / NS,
        **_breakdown(message),
        "steps": [
            {"who": step.who, "what": step.what, "where": step.where, "at_ns": (step.at_ps - message.posted_ps) / NS}
            for step in steps
        ],
    }


def _limits(case: Case, message: Message, wire_ps: Fraction, messages: int) -> dict[str, Fraction]:
    """Each bound of the rate. A full send queue is one, too: what it holds, in the time that a message takes alone."""
    queues = case.rate.host.queues
    assert queues is not None
    limits = Limits(case.rate.host, size_bytes=case.size_bytes, qps=case.qps, wire_ps=wire_ps)
    held = case.qps * (queues.qp_depth // limits.blocks)
    if messages < 2 * held:
        return limits.terms()  # they never fill, or not for long
    alone_ps = message.completed_ps - message.posted_ps
    return {**limits.terms(), SEND_QUEUES: Fraction(held * SECOND, alone_ps)}


def _breakdown(message: Message) -> dict[str, Any]:
    """What its latency is made of: the host's steps, the NICs and the network."""
    parts_ps = unpack(message.parts)
    nic_ps, host_ps = parts_ps[NIC_PLACE], parts_ps[HOST_PLACE]
    steps = list(zip(STEPS, message.steps or (), strict=False))[:TURN]
    return {
        "breakdown_ns": {name: value_ps / NS for name, value_ps in steps},
        "nic_ns": nic_ps / NS,
        "network_ns": (sum(parts_ps) - nic_ps - host_ps) / NS,
    }


def _legs(case: Case, options: Options, found: Doorbells) -> tuple[Message, list[Step]] | None:
    """The second of two messages, one after the other, and all that was done for it."""
    traces: list[Trace] = []
    messages: list[Message] = []

    def watch(fabric: Fabric) -> None:
        host = next(iter(fabric.hosts.values()))
        trace = Trace(host.engine, fabric.hosts)
        trace.watch(host.taps)
        traces.append(trace)

    result = run(case.legs, replace(options, before_run=watch, on_message=messages.append))
    if _is_short(case, result, found) or len(messages) != LEGS_MESSAGES:
        return None
    message = messages[-1]
    steps = [
        step
        for step in traces[0].between(message.posted_ps, max(message.completed_ps, message.delivered_ps))
        if step.at_ps > message.first_bit_ps or not step.who.startswith(f"{PAIR[1]}.")  # else the first one's
    ]
    steps += [
        Step(message.last_bit_ps, "h1.nic", "has the last bit", ""),
        Step(message.delivered_ps, "h1.gpu", "has the data in memory", ""),
        Step(message.completed_ps, "h0.cpu" if case.path == "cpu_sync" else "h0.gpu", "knows that it is done", ""),
    ]
    return message, sorted(steps, key=lambda step: step.at_ps)


def _rate(case: Case, options: Options, found: Doorbells) -> tuple[list[int], Fraction] | None:
    """When each message was delivered, and for how long each had the sender's link."""
    times: list[int] = []
    result = run(case.rate, replace(options, on_message=lambda message: times.append(message.delivered_ps)))
    if _is_short(case, result, found):
        return None
    link = next(link for link in result["links"] if link["from"] == PAIR[0])
    fabric = case.rate.fabric
    credits_bytes = link["credit_frames"] * fabric.credits.fcp_wire_bytes
    return sorted(times), Fraction((link["tx_bytes"] - credits_bytes) * 8 * SECOND, fabric.rate_bps * len(times))


def _per_second(times_ps: Sequence[int]) -> float:
    """Between the first and the last quarter: neither the beginning nor the end counts."""
    first, last = len(times_ps) // 4, len(times_ps) * 3 // 4
    return (last - first) * SECOND / max(times_ps[last] - times_ps[first], 1)


def _is_short(case: Case, result: Mapping[str, Any], found: Doorbells) -> bool:
    if result["interrupted"]:
        found.interrupted = True
        return True
    short = shortfall(result)
    if short:
        found.missing.append(f"{case.name}: traffic did not complete: {short}")
    return bool(short)


def _check(plan: Plan) -> None:
    for path in plan.paths:
        if path not in PATHS:
            raise ScenarioError(f"--path: {show(path)} is unknown; known: {', '.join(PATHS)}")
    for warps in plan.warps:
        if not 1 <= warps <= 65_536:
            raise ScenarioError(f"--warps: {warps} is out of range; allowed: 1 to 65536")
    for text in plan.settings:
        path = text.partition("=")[0].strip()
        own = {"host.cpu.cores": "use --cores"} if plan.cores != (None,) else {}
        for refused, instead in (REFUSED_SETTINGS | own).items():
            if f"{refused}.".startswith(f"{path}.") or f"{path}.".startswith(f"{refused}."):
                raise ScenarioError(one_line(f"--set {show(text)[1:-1]}: {refused} is not set here: {instead}"))


def _case(plan: Plan, path: str, gpu_direct: bool, size_bytes: int, warps: int, cores: int | None) -> Case:
    host = {"path": path, "gpu_direct": gpu_direct, "gpu": {"warps": warps}, "cpu": {"cores": cores} if cores else {}}
    legs = _scenario(plan, host, size_bytes, count=LEGS_MESSAGES, qps=1, depth=1)
    queues = legs.host.queues
    assert queues is not None
    qps = plan.qps or queues.num_rc_per_pe
    count = max(1, (plan.messages or _messages(size_bytes)) // qps)
    rate = _scenario(plan, host, size_bytes, count=count, qps=qps, depth=queues.qp_depth)
    return Case(path, gpu_direct, size_bytes, warps, cores, qps, legs, rate)


def _messages(size_bytes: int) -> int:
    """Enough for a steady rate, in some seconds."""
    return min(MESSAGES, max(FEWEST_MESSAGES, ENOUGH_BYTES // max(size_bytes, 1)))


def _scenario(plan: Plan, host: dict[str, Any], size_bytes: int, *, count: int, qps: int, depth: int) -> Scenario:
    traffic = {
        "kind": "write",
        "pairs": [PAIR],
        "size": format_size(size_bytes),
        "count": count,
        "qps": qps,
        "depth": depth,
    }
    topology = {"kind": "leaf_spine", "leaves": 1, "spines": 1, "hosts_per_leaf": 2}
    given = {
        "name": f"doorbell {host['path']}",
        "fabric": {"profile": plan.profile, "topology": topology},
        "host": {name: value for name, value in host.items() if value != {}},
        "traffic": [traffic],
    }
    options: dict[Place, str] = {
        ("fabric", "profile"): f"--profile {plan.profile}",
        ("host", "path"): f"--path {host['path']}",
        ("traffic", 0): f"--sizes {format_size(size_bytes)}",
        ("traffic", 0, "qps"): f"--qps {qps}",
        ("traffic", 0, "count"): f"--messages {plan.messages or _messages(size_bytes)}",
    }
    return build(given, plan.settings, plan.seed, options)
