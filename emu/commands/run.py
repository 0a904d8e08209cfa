"""`emu run`: one scenario, one result."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from emu.commands.exit_codes import EXPECTATION_FAILED, INCOMPLETE, INTERRUPTED, MACHINE, OK
from emu.commands.options import add_common, add_sample, complain, keep, options_of, ready
from emu.engine import Engine
from emu.errors import ScenarioError
from emu.frame import Message
from emu.measure.measurement import Measurement
from emu.report.folder import ResultFolder
from emu.report.output import to_json, write
from emu.report.progress import Progress, message_count
from emu.report.text import failed_expectations, shortfall, summary
from emu.run import run
from emu.scenario.load import load
from emu.scenario.model import Scenario
from emu.scenario.schema import json_schema


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the scenario and the options."""
    parser.add_argument("scenario", metavar="SCENARIO", nargs="?", help="a scenario file, or a built-in by name")
    parser.add_argument("--schema", action="store_true", help="print the JSON Schema of scenario files and stop")
    add_capture(parser)
    add_sample(parser)
    add_common(parser)


def add_capture(parser: argparse.ArgumentParser) -> None:
    """Add --capture, to commands that run one scenario."""
    parser.add_argument(
        "--capture",
        metavar="FILE",
        type=_capture_file,
        help="write one pcapng file of the scenario's capture links, or of all links if it names none",
    )


def _capture_file(text: str) -> str:
    if text in ("", "-"):
        raise argparse.ArgumentTypeError(f"{text!r} is no file to write; for one that is called - write ./-")
    return text


def execute(arguments: argparse.Namespace) -> int:
    """Run it, print and write the result; 3, 4 and 5 as well as 0."""
    if arguments.schema:
        write(to_json(json_schema()))
        return OK
    if arguments.scenario is None:
        raise ScenarioError("which scenario? Give a file, or a built-in by name (emu list shows them)")
    if arguments.sample is not None and arguments.out is None:
        raise ScenarioError("--sample: what is looked at is written to queues.csv: --out DIR says where")
    scenario = load(arguments.scenario, arguments.settings, arguments.seed)
    if scenario.capture and arguments.capture is None and arguments.out is None and not arguments.quiet:
        complain("the scenario's capture is not written: --out DIR or --capture FILE says where")
    ready(arguments)
    result, lost = run_and_keep(scenario, arguments)
    if arguments.json:
        write(to_json(result))
    elif not arguments.quiet:
        write(summary(result))
    code = verdict(result)
    return lost or code


def verdict(result: dict[str, Any]) -> int:
    """The exit code of a result, its reasons told on stderr."""
    failed, short = failed_expectations(result), shortfall(result)
    for line in failed:
        complain(line)
    if short:
        complain(f"traffic did not complete: {short}")
    if result["interrupted"]:
        return INTERRUPTED
    return EXPECTATION_FAILED if failed else INCOMPLETE if short else OK


def run_and_keep(
    scenario: Scenario,
    arguments: argparse.Namespace,
    watch: Callable[[Message], object] | None = None,
    add_to: Callable[[dict[str, Any]], object] | None = None,
) -> tuple[dict[str, Any], int]:
    """The result, and the exit code if the result folder or a capture could not be written, or not to its end.

    `watch` sees every finished message; `add_to` may add to the result before it is written.
    """
    with ExitStack() as stack:
        failures: list[str] = []
        folder, captures = None, [Path(arguments.capture)] if arguments.capture is not None else []
        if arguments.out is not None:
            folder = stack.enter_context(ResultFolder(arguments.out, force=arguments.force))
            captures += [folder.capture_path(scenario.name)] if scenario.capture else []
        progress = stack.enter_context(Progress(message_count(scenario), "message", quiet=arguments.quiet))

        def show(_: Engine, measurement: Measurement) -> None:
            progress.reach(measurement.completed + measurement.failed)

        on_message, on_sample = (folder.on_message, folder.on_sample) if folder else (None, None)
        options = options_of(
            arguments, _both(on_message, watch), show, tuple(captures), failures.append, on_sample, arguments.sample
        )
        result = run(scenario, options)
        if add_to is not None:
            add_to(result)
        cut = folder.settle() if folder is not None else []
        result["warnings"] += cut
        lost = keep(folder, result)
        if not lost:
            failures += cut
        for line in failures:
            complain(line)
        return result, lost or (MACHINE if failures else OK)


def _both(
    one: Callable[[Message], object] | None, other: Callable[[Message], object] | None
) -> Callable[[Message], object] | None:
    """What calls both of them."""
    if one is None or other is None:
        return one or other

    def call(message: Message) -> None:
        one(message)
        other(message)

    return call
