"""Congestion made to happen: one pattern of traffic on several fabrics, with and without congestion control."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from emu import opcodes
from emu.errors import ScenarioError
from emu.fabric import framing_of
from emu.frame import Envelope, Frame
from emu.measure.curve import Curves
from emu.measure.floor import serialization_ps
from emu.measure.series import Sample
from emu.report.congestion import Observed, worst_queue
from emu.run import Options, run
from emu.run.assembly import topology_of
from emu.scenario.check import Place, one_line
from emu.scenario.field import show
from emu.scenario.load import build
from emu.scenario.model import Scenario
from emu.scenario.profile import load_profile
from emu.topology import Topology
from emu.units import NS, format_size

PATTERNS = ("incast", "victim", "permutation", "all_to_all", "storm")
TOPOLOGY = {"kind": "leaf_spine", "leaves": 4, "spines": 4, "hosts_per_leaf": 4}
RECEIVER = "h0"
STORM = "100us"  # how long the broken NIC of pattern `storm` pauses its switch
NO_CONTROL = "none"
# What this harness decides, and how to have it otherwise.
REFUSED_SETTINGS = {
    "fabric.profile": "use --profile, and --set fabric.KEY for each other value",
    "fabric.congestion_control": "use --cc",
    "traffic": "use --pattern, --senders and --size, or `emu run`",
    "expect": "use `emu run`",
    "name": "use `emu run`",
}

Result = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to run: the pattern on every profile, with every congestion control.

    `profiles` None: native and roce, of which a storm needs the one that pauses. `controls` None: without any, and
    beside it with the profile's own if it has one. `senders` None: 15, and 14 beside a victim.
    """

    pattern: str = "incast"
    profiles: Sequence[str] | None = None
    controls: Sequence[str] | None = None
    senders: int | None = None
    size_bytes: int = 1 << 20
    settings: Sequence[str] = ()
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One run to be."""

    name: str
    scenario: Scenario

    @property
    def folder(self) -> str:
        """The name as a folder may have it."""
        return re.sub(r"[^\w.+]+", "-", self.name).strip("-.")


def cases_of(plan: Plan) -> list[Case]:
    """All runs, checked before the first one begins. Raises ScenarioError."""
    if plan.pattern not in PATTERNS:
        raise ScenarioError(f"--pattern: {plan.pattern!r} is unknown; known: {', '.join(PATTERNS)}")
    for text in plan.settings:
        _check_setting(text)
    profiles = plan.profiles or (("roce",) if plan.pattern == "storm" else ("native", "roce"))
    cases = [case for profile in profiles for case in _cases(plan, profile)]
    (folder, times), *_ = Counter(case.folder for case in cases).most_common(1)
    if times > 1:
        raise ScenarioError(f"--profile: {times} of them would be called {folder}: give profiles of different names")
    return cases


def observe(case: Case, options: Options) -> Observed:
    """Run it, and draw the queue that was longest. Raises as `run` does."""
    curves, reaction = Curves(options.sample_ps), Reaction()
    told = options.on_sample

    def take(sample: Sample) -> None:
        curves.take(sample)
        reaction.take(sample)
        if told is not None:
            told(sample)

    result = run(case.scenario, replace(options, on_sample=take))
    bottleneck = worst_queue(result)
    curve = curves.of(bottleneck, round(result["virtual_ns"] * NS))
    inputs = {
        path: {"value": each.value, "kind": each.kind, "source": each.source}
        for path, each in case.scenario.provenance.items()
    }
    return Observed(
        name=case.name,
        result=result,
        ideal_ns=ideal_ps(case.scenario, topology_of(case.scenario), result["flows"]) / NS,
        bottleneck=bottleneck,
        curve=curve.points,
        step_ns=curve.step_ps / NS,
        inputs=inputs,
        first_cut_ns=reaction.first_cut_ps / NS if reaction.first_cut_ps >= 0 else None,
        all_sent_ns=max((reaction.sent_ps[flow["path"][0]] for flow in result["flows"]), default=0) / NS,
    )


class Reaction:
    """When rates were first seen to fall, and when each link was last seen to be sent on, in picoseconds."""

    def __init__(self) -> None:
        self.first_cut_ps = -1
        self.sent_ps: Counter[str] = Counter()  # by direction of a link
        self._rates: dict[str, int] = {}

    def take(self, sample: Sample) -> None:
        """A sample of any series."""
        if sample.series == "tx_bytes" and sample.value:
            self.sent_ps[sample.name] = sample.time_ps
        elif sample.series == "rate_bps":
            if self.first_cut_ps < 0 and sample.value < self._rates.get(sample.name, 0):
                self.first_cut_ps = sample.time_ps
            self._rates[sample.name] = sample.value


def ideal_ps(scenario: Scenario, topology: Topology, flows: Sequence[Result]) -> int:
    """The busiest host link's time for the data frames of all that was delivered, back to back, in picoseconds."""
    rates = {end.node: link.rate_bps for link in topology.links for end in (link.a, link.b)}
    busy: Counter[tuple[str, str]] = Counter()
    for flow in flows:
        if flow["messages"]:
            size_bytes = flow["bytes"] // flow["messages"]
            for end in ("src", "dst"):
                one_ps = message_ps(scenario, size_bytes, rates[flow[end]])
                busy[end, flow[end]] += flow["messages"] * one_ps
    return max(busy.values(), default=0)


def message_ps(scenario: Scenario, size_bytes: int, rate_bps: int) -> int:
    """What the frames of a WRITE of that size take on a wire, each rounded up to a whole picosecond."""
    mtu_bytes = scenario.fabric.path_mtu_bytes
    framing = framing_of(scenario)
    envelope = Envelope(framing, source=0, destination=0, source_mac=0, destination_mac=0, destination_qp=0)

    def frame_ps(opcode: int, payload_bytes: int, starts: bool) -> int:
        reth = (0, 0, 0) if starts else None
        return serialization_ps(Frame(envelope, opcode, 0, bytes(payload_bytes), reth=reth).wire_bytes, rate_bps)

    packets = max(1, -(-size_bytes // mtu_bytes))
    last_bytes = size_bytes - (packets - 1) * mtu_bytes
    if packets == 1:
        return frame_ps(opcodes.WRITE_ONLY, size_bytes, True)
    middle_ps = frame_ps(opcodes.WRITE_MIDDLE, mtu_bytes, False) if packets > 2 else 0
    return (
        frame_ps(opcodes.WRITE_FIRST, mtu_bytes, True)
        + (packets - 2) * middle_ps
        + frame_ps(opcodes.WRITE_LAST, last_bytes, False)
    )


def _check_setting(text: str) -> None:
    path = text.partition("=")[0].strip()
    for refused, instead in REFUSED_SETTINGS.items():
        if f"{refused}.".startswith(f"{path}.") or f"{path}.".startswith(f"{refused}."):
            raise ScenarioError(one_line(f"--set {show(text)[1:-1]}: {refused} is not set here: {instead}"))


def _cases(plan: Plan, profile: str) -> list[Case]:
    try:
        values = load_profile(profile).values(("fabric",))
    except ScenarioError as error:
        raise ScenarioError(f"--profile {show(profile)[1:-1]}: {error}") from None
    own = values["congestion_control"]
    controls = plan.controls or dict.fromkeys((NO_CONTROL, own))
    return [_case(plan, profile, control, keeps_preset=control in (NO_CONTROL, own)) for control in controls]


def _case(plan: Plan, profile: str, control: str, *, keeps_preset: bool) -> Case:
    short = profile.rpartition("/")[2].removesuffix(".yaml").removesuffix(".yml")
    name = f"{plan.pattern} {short} {control}"
    fabric: dict[str, Any] = {"profile": profile, "topology": dict(TOPOLOGY), "congestion_control": control}
    if not keeps_preset:
        fabric["cc_preset"] = "default"
    given = {"name": name, "fabric": fabric, "traffic": TRAFFIC[plan.pattern](plan)}
    # A mistake is to be named by the option that it was made in.
    options: dict[Place, str] = {
        (): f"--profile {profile}",
        ("fabric", "congestion_control"): f"--cc {control}",
        ("fabric", "cc_preset"): f"--cc {control}",
        ("traffic",): f"--pattern {plan.pattern}",
        ("traffic", 0, "senders"): f"--senders {plan.senders or DEFAULT_SENDERS[plan.pattern]}",
        **{("traffic", place, "size"): f"--size {format_size(plan.size_bytes)}" for place in range(2)},
    }
    return Case(name, build(given, plan.settings, plan.seed, options))


DEFAULT_SENDERS = {"incast": 15, "victim": 14, "permutation": 0, "all_to_all": 0, "storm": 0}
Traffic = list[dict[str, Any]]


def _incast(plan: Plan) -> Traffic:
    senders = plan.senders or DEFAULT_SENDERS[plan.pattern]
    return [{"kind": "incast", "senders": senders, "receiver": RECEIVER, "size": format_size(plan.size_bytes)}]


def _victim(plan: Plan) -> Traffic:
    return [*_incast(plan), {"kind": "victim", "size": format_size(plan.size_bytes)}]


def _permutation(plan: Plan) -> Traffic:
    return [{"kind": "permutation", "size": format_size(plan.size_bytes)}]


def _all_to_all(plan: Plan) -> Traffic:
    return [{"kind": "all_to_all", "size": format_size(plan.size_bytes)}]


def _storm(plan: Plan) -> Traffic:
    return [*_permutation(plan), {"kind": "pause_storm", "host": RECEIVER, "duration": STORM}]


TRAFFIC: dict[str, Callable[[Plan], Traffic]] = {
    "incast": _incast,
    "victim": _victim,
    "permutation": _permutation,
    "all_to_all": _all_to_all,
    "storm": _storm,
}
