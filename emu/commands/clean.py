"""`emu clean`: removes what dead runs left behind, and nothing else."""

from __future__ import annotations

import argparse

from emu.commands.exit_codes import OK
from emu.lab.clean import clean
from emu.report.output import to_json, write


def configure(parser: argparse.ArgumentParser) -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help="print JSON, and nothing else, on stdout")


def execute(arguments: argparse.Namespace) -> int:
    """Remove it, and say what it was."""
    removed = clean()
    if arguments.json:
        write(to_json({"removed": removed}))
    else:
        write("\n".join(f"removed {each}" for each in removed) or "nothing to remove")
    return OK
