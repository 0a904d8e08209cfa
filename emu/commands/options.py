"""The options that commands which run something have in common."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from emu.commands.exit_codes import OK
from emu.engine import Engine
from emu.errors import MachineError, ScenarioError
from emu.frame import Message
from emu.measure.measurement import Measurement
from emu.report.folder import ResultFolder
from emu.report.output import say
from emu.run import WIRES, Options


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add --wire, --accept-foreign, --set, --seed, --out, --force, --json and --quiet."""
    parser.add_argument(
        "--wire",
        choices=WIRES,
        default="veth",
        help="how bytes cross a link: between namespaces, or handed over in memory (default veth)",
    )
    parser.add_argument(
        "--set",
        metavar="PATH=VALUE",
        action="append",
        default=[],
        dest="settings",
        help="change a value of the scenario, such as fabric.hop_latency=300ns (repeatable)",
    )
    parser.add_argument(
        "--accept-foreign",
        action="store_true",
        help="take in frames that nobody in the model sent; the result is then not deterministic",
    )
    parser.add_argument("--seed", metavar="N", type=_seed, help="seed of every random stream")
    parser.add_argument("--out", metavar="DIR", help="write a result folder, which must not exist yet")
    parser.add_argument(
        "--force", action="store_true", help="let --out replace an earlier result folder, and --capture a file"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON, and nothing else, on stdout")
    parser.add_argument("--quiet", action="store_true", help="no text and no progress bar; errors only")


def ready(arguments: argparse.Namespace) -> None:
    """Come to where the wire can be had: for veth, this may start the command anew. Raises MachineError."""
    if arguments.wire == "veth":
        from emu.lab.rootless import ensure_privileges  # noqa: PLC0415 - a run in memory needs none of what this loads

        ensure_privileges()
    elif arguments.accept_foreign:
        raise ScenarioError("--accept-foreign: nobody else can send on --wire memory; use --wire veth")


def options_of(
    arguments: argparse.Namespace,
    on_message: Callable[[Message], object] | None = None,
    on_progress: Callable[[Engine, Measurement], object] | None = None,
    captures: tuple[Path, ...] = (),
    on_capture_failed: Callable[[str], object] | None = None,
) -> Options:
    """How to run, as the options say."""
    return Options(
        wire=arguments.wire,
        accept_foreign=arguments.accept_foreign,
        captures=captures,
        replace_captures=arguments.force,
        on_capture_failed=on_capture_failed,
        on_message=on_message,
        on_progress=on_progress,
    )


def complain(text: str) -> None:
    """One line on stderr: why the exit code is not 0."""
    say(f"emu: {text}")


def keep(folder: ResultFolder | None, result: Mapping[str, Any]) -> int:
    """Write the result folder, if there is to be one. If that fails: the reason on stderr, and its exit code.

    No error, for the result is still to be printed: it may have taken hours.
    """
    if folder is None:
        return OK
    try:
        folder.finish(result)
    except (ScenarioError, MachineError) as error:
        complain(f"the result is not kept: {error}")
        return error.exit_code
    return OK


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise argparse.ArgumentTypeError(f"{text!r} is no seed: a whole number from 0 on")
    return int(text)
