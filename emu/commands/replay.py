"""`emu replay`: a captured flow's operations, sent through a fabric of ours, beside what the capture says they took."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from emu.commands.options import add_common, add_sample, ready
from emu.commands.run import add_capture, run_and_keep, verdict
from emu.errors import ScenarioError
from emu.harness.replay import Replays
from emu.report.output import to_json, write
from emu.report.replay import replay_text
from emu.report.text import summary
from emu.scenario.check import Place
from emu.scenario.load import build, load
from emu.scenario.model import Scenario
from emu.scenario.replay import UNPACED, Replay
from traffic.workloads.replay import captured_in

PROFILE_OF = {"native": "native"}  # by network; RoCE's otherwise
STDIN = "-"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the file and the options."""
    parser.add_argument("file", metavar="FILE", help="a capture: pcap, pcapng or ERF")
    parser.add_argument(
        "--scenario",
        metavar="NAME",
        help="take fabric and hosts from a scenario file or built-in (default: a leaf-spine with as many hosts as the"
        " capture has endpoints)",
    )
    parser.add_argument(
        "--map",
        metavar="END=HOST",
        action="append",
        default=[],
        help="which host an endpoint of the capture is, like 192.0.2.1=h0 (repeatable; default: in order)",
    )
    pace = parser.add_mutually_exclusive_group()
    pace.add_argument("--speed", metavar="X", help="post X times as fast as in the capture (default 1)")
    pace.add_argument(
        "--as-fast-as-possible",
        action="store_true",
        help="post each message as soon as no more are outstanding than were in the capture",
    )
    add_capture(parser)
    add_sample(parser)
    add_common(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run it, print the run's result and, beside it, each message as captured and as here."""
    if arguments.sample is not None and arguments.out is None:
        raise ScenarioError("--sample: what is looked at is written to queues.csv: --out DIR says where")
    if arguments.file == STDIN:
        raise ScenarioError("a capture is read from a file here, for the result names it; write stdin to one first")
    scenario = scenario_of(arguments)
    replay = _replay(scenario)
    captured = captured_in(replay.file)
    replays = Replays(captured)
    ready(arguments)

    def tell(result: dict[str, Any]) -> None:
        result["warnings"] += captured.warnings
        result["replay"] = replays.result(replay)

    result, lost = run_and_keep(scenario, arguments, replays.add, tell)
    if arguments.json:
        write(to_json(result))
    elif not arguments.quiet:
        write(summary(result))
        write("\n" + replay_text(result["replay"]))
    return lost or verdict(result)


def scenario_of(arguments: argparse.Namespace) -> Scenario:
    """The scenario that the options ask for. Raises ScenarioError."""
    file = str(Path(arguments.file).absolute()) if arguments.file else arguments.file
    replay = {
        "kind": "replay",
        "file": file,
        "map": _map(arguments.map),
        "speed": UNPACED if arguments.as_fast_as_possible else _number(arguments.speed or "1"),
    }
    options: dict[Place, str] = {
        ("traffic", 0, "map"): "--map",
        ("traffic", 0, "speed"): "--speed",
        ("traffic", 0): "FILE",
    }
    base = _base(arguments.scenario) if arguments.scenario is not None else None
    if base is None:
        base = {"fabric": {"profile": "roce", "topology": _leaf_spine(1)}}
        checked = build({"name": "replay", **base, "traffic": [replay]}, options=options)
        captured = captured_in(_replay(checked).file)
        base["fabric"] = {
            "profile": PROFILE_OF.get(captured.network, "roce"),
            "topology": _leaf_spine(-(-len(captured.endpoints) // 2)),
        }
        base["name"] = "replay"
    return build({**base, "traffic": [replay]}, arguments.settings, arguments.seed, options)


def _replay(scenario: Scenario) -> Replay:
    (replay,) = (each for each in scenario.traffic if isinstance(each, Replay))
    return replay


def _leaf_spine(hosts_per_leaf: int) -> dict[str, Any]:
    return {"kind": "leaf_spine", "leaves": 2, "spines": 2, "hosts_per_leaf": hosts_per_leaf}


def _base(name: str) -> dict[str, Any]:
    """A scenario without what belongs to its own traffic."""
    resolved = load(name).resolved()
    resolved["run"] = {"seed": resolved["run"]["seed"]}
    return {key: value for key, value in resolved.items() if key not in ("traffic", "expect")}


def _map(texts: list[str]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        end, equals, host = text.rpartition("=")
        if not equals or not end or not host:
            raise ScenarioError(f"--map {text!r}: write END=HOST, like 192.0.2.1=h0")
        if end in found:
            raise ScenarioError(f"--map {text!r}: {end} has a host already, {found[end]}")
        found[end] = host
    return found


def _number(text: str) -> str:
    try:
        Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise ScenarioError(f"--speed {text!r} is no number: write 1, 0.5 or 10") from None
    return text
