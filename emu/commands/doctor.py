"""`emu doctor`: what this machine can do, what is missing, and the remedy for each."""

from __future__ import annotations

import argparse

from emu.commands.exit_codes import MACHINE, OK
from emu.lab.doctor import Check, checks
from emu.report.output import to_json, write
from emu.report.table import table


def configure(parser: argparse.ArgumentParser) -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help="print JSON, and nothing else, on stdout")


def execute(arguments: argparse.Namespace) -> int:
    """Print the checks; 3 if one that the default way needs fails."""
    found = checks()
    if arguments.json:
        rows = [{"need": each.need, "for": each.for_, "found": each.found, "remedy": each.remedy} for each in found]
        write(to_json({"rows": rows}))
    else:
        lines = [("", "need", "for", "found")]
        lines += [(_mark(each), each.need, each.for_, each.found) for each in found]
        remedies = [f"{each.need}: {each.remedy}" for each in found if not each.ok]
        write("\n".join([*table(lines, left=(0, 1, 2, 3)), *([""] if remedies else []), *remedies]))
    return OK if all(each.ok or each.optional for each in found) else MACHINE


def _mark(check: Check) -> str:
    return "ok" if check.ok else "missing" if check.optional else "MISSING"
