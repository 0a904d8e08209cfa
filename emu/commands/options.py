"""The options that commands which run something have in common."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from emu.commands.exit_codes import INCOMPLETE, INTERRUPTED, OK
from emu.engine import Engine
from emu.errors import MachineError, ScenarioError
from emu.frame import Message
from emu.measure.measurement import Measurement
from emu.measure.series import INTERVAL_PS, Sample
from emu.report.folder import ResultFolder
from emu.report.output import say
from emu.report.table import count_text
from emu.run import WIRES, Options
from emu.units import parse_time_ps

T = TypeVar("T")


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


def add_sample(parser: argparse.ArgumentParser) -> None:
    """Add --sample, to commands that write time series."""
    parser.add_argument(
        "--sample",
        metavar="TIME",
        type=_interval,
        help="how far apart in virtual time queues, credits and rates are looked at (default 1us)",
    )


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
    on_sample: Callable[[Sample], object] | None = None,
    sample_ps: int | None = None,
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
        on_sample=on_sample,
        sample_ps=sample_ps or INTERVAL_PS,
    )


def complain(text: str) -> None:
    """One line on stderr: why the exit code is not 0."""
    say(f"emu: {text}")


@contextmanager
def rows_folder(arguments: argparse.Namespace) -> Iterator[ResultFolder | None]:
    """The result folder of a command whose result is rows, if one is asked for: messages are not listed there."""
    if arguments.out is None:
        yield None
        return
    with ResultFolder(arguments.out, force=arguments.force, with_messages=False) as folder:
        yield folder


def rows_verdict(command: str, rows: int, missing: Sequence[str], *, interrupted: bool) -> int:
    """The exit code of such a command; what has no row, and that it was interrupted, goes to stderr."""
    for line in missing:
        complain(f"{command} {line}")
    if interrupted:
        complain(f"interrupted after {count_text(rows, 'row')}")
        return INTERRUPTED
    return INCOMPLETE if missing else OK


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


def listed(read: Callable[[str], T]) -> Callable[[str], list[T]]:
    """Reads `a,b,c`, each once."""

    def split(text: str) -> list[T]:
        words = [word.strip() for word in text.split(",")]
        if not all(words):
            raise argparse.ArgumentTypeError(f"{text!r}: write a list like a,b,c without gaps")
        return list(dict.fromkeys(as_argument(read, word) for word in words))

    return split


def as_argument(read: Callable[[str], T], text: str) -> T:
    """What `read` makes of the text; its ScenarioError as argparse wants it."""
    try:
        return read(text)
    except ScenarioError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def whole(low: int, high: int) -> Callable[[str], int]:
    """Reads a whole number of that range."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 10 and low <= int(text) <= high):
            raise argparse.ArgumentTypeError(f"{text!r}: a whole number from {low} to {high}")
        return int(text)

    return read


def _interval(text: str) -> int:
    interval_ps = as_argument(parse_time_ps, text)
    if not interval_ps:
        raise argparse.ArgumentTypeError(f"{text!r}: looks are some time apart, like 1us")
    return interval_ps


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise argparse.ArgumentTypeError(f"{text!r} is no seed: a whole number from 0 on")
    return int(text)
