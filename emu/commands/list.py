"""`emu list`: what there is to run, and to run it on."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping

from emu.commands.exit_codes import OK
from emu.report.output import to_json, write
from emu.report.table import table
from emu.scenario import builtin
from emu.scenario.profile import load_profile, profile_names
from emu.scenario.topology import TOPOLOGIES
from emu.scenario.traffic import TRAFFIC

Entries = list[dict[str, str]]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help="print JSON, and nothing else, on stdout")


def execute(arguments: argparse.Namespace) -> int:
    """Print every built-in scenario, profile, topology and kind of traffic."""
    found = {
        "scenarios": _entries(builtin.descriptions().items()),
        "profiles": _entries((name, load_profile(name).description) for name in profile_names()),
        "topologies": _entries(_models(TOPOLOGIES)),
        "traffic": _entries(_models(TRAFFIC)),
        "labs": [],
    }
    write(to_json(found) if arguments.json else _text(found))
    return OK


def _entries(pairs: Iterable[tuple[str, str]]) -> Entries:
    return [{"name": name, "description": description} for name, description in pairs]


def _models(models: Mapping[str, type]) -> Iterable[tuple[str, str]]:
    return ((name, (model.__doc__ or "").partition("\n")[0]) for name, model in models.items())


def _text(found: Mapping[str, Entries]) -> str:
    width = max(len(entry["name"]) for entries in found.values() for entry in entries)
    lines: list[str] = []
    for title, entries in found.items():
        if entries:
            lines += [*([""] if lines else []), title]
            lines += table([(entry["name"].ljust(width), entry["description"]) for entry in entries], left=(0, 1))
    return "\n".join(lines)
