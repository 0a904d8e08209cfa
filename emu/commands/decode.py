"""`emu decode`: what is in a capture."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from itertools import islice

from emu.capture.reader import CaptureFile
from emu.capture.record import Record
from emu.capture.summary import ROW_LIMIT, Summary
from emu.commands.exit_codes import MISTAKE, OK
from emu.commands.options import complain
from emu.errors import ScenarioError, WireError
from emu.report.decode import json_lines, summary
from emu.report.output import write
from emu.report.progress import Progress

FRAMES_A_STEP = 1000  # of the progress bar
LINES_A_WRITE = 500


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the file and the options."""
    parser.add_argument("file", metavar="FILE", help="a capture: pcap, pcapng or ERF; - is stdin")
    parser.add_argument("--json", action="store_true", help="print JSON, and nothing else, on stdout")
    parser.add_argument("--frames", action="store_true", help="list every frame too")
    parser.add_argument(
        "--limit",
        metavar="N",
        type=_limit,
        default=ROW_LIMIT,
        help=f"list at most N frames and N messages; all are counted (default {ROW_LIMIT:,})",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Print what is there; 2 for what is no capture, and after all that is readable of a damaged one."""
    decoded, warnings = Summary(with_rows=arguments.frames, limit=arguments.limit), list[str]()
    damage = ""
    try:
        with (
            CaptureFile(arguments.file, warnings.append) as capture,
            Progress(None, "frame", quiet=False) as progress,
        ):
            try:
                decoded.add(_watched(capture, progress))
            except WireError as error:
                if not decoded.frames:
                    raise
                damage = str(error)
                warnings.append(f"{damage}; all before it was read")
    except WireError as error:
        raise ScenarioError(str(error)) from None
    result = {
        "file": capture.name,
        "format": capture.format,
        "complete": not warnings,
        **decoded.result(),
        "warnings": warnings,
    }
    _write_lines(json_lines(result) if arguments.json else summary(result))
    if damage:
        complain(damage)
        return MISTAKE
    return OK


def _watched(records: Iterable[Record], progress: Progress) -> Iterator[Record]:
    for number, record in enumerate(records):
        if number % FRAMES_A_STEP == 0:
            progress.reach(number)
        yield record


def _write_lines(lines: Iterator[str]) -> None:
    """Piece by piece: the text of a large capture may take more memory than all that is known of it."""
    while some := list(islice(lines, LINES_A_WRITE)):
        write("\n".join(some))


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise argparse.ArgumentTypeError(f"{text!r} is no limit: a whole number from 0 on")
    return int(text)
