"""`emu topo`: shows, checks and exports a scenario's fabric. It runs nothing and needs no rights."""

from __future__ import annotations

import argparse

from emu.commands.exit_codes import OK
from emu.fabric import framing_of
from emu.harness.topo import describe
from emu.report.export import containerlab, dot
from emu.report.output import to_json, write
from emu.report.topo import topo_text
from emu.run import expectations
from emu.run.assembly import topology_of
from emu.scenario.load import load


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the scenario, and how to show it."""
    parser.add_argument("scenario", metavar="SCENARIO", help="a scenario file, or a built-in by name")
    parser.add_argument(
        "--set",
        metavar="PATH=VALUE",
        action="append",
        default=[],
        dest="settings",
        help="change a value of the scenario, such as fabric.headroom=tight (repeatable)",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON, and nothing else, on stdout")
    form.add_argument("--dot", action="store_true", help="print a Graphviz graph")
    form.add_argument("--containerlab", action="store_true", help="print a containerlab topology (YAML)")
    form.add_argument("--quiet", action="store_true", help="print nothing: only check the scenario")


def execute(arguments: argparse.Namespace) -> int:
    """Print what was asked for; a fabric that could deadlock is no mistake."""
    scenario = load(arguments.scenario, arguments.settings)
    facts = describe(scenario, topology_of(scenario), framing_of(scenario))
    expectations.check(scenario)
    if arguments.json:
        write(to_json(facts))
    elif arguments.dot:
        write(dot(facts))
    elif arguments.containerlab:
        write(containerlab(facts))
    elif not arguments.quiet:
        write(topo_text(facts))
    return OK
