"""`emu congestion`: makes congestion happen on one or several fabrics, and shows what it did to each."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

from emu.commands.exit_codes import INCOMPLETE, INTERRUPTED, MACHINE, OK
from emu.commands.options import (
    add_common,
    add_sample,
    as_argument,
    complain,
    keep,
    listed,
    options_of,
    ready,
    whole,
)
from emu.errors import ScenarioError
from emu.harness.congestion import PATTERNS, Case, Plan, cases_of, observe
from emu.report.congestion import Observed, congestion_text
from emu.report.folder import ResultFolder
from emu.report.output import to_json, write
from emu.report.progress import Progress
from emu.report.table import count_text
from emu.report.text import shortfall
from emu.scenario.field import parse_message_bytes


def configure(parser: argparse.ArgumentParser) -> None:
    """Add what to run, and the options."""
    parser.add_argument(
        "--profile",
        metavar="A,B",
        type=listed(str),
        help="profiles, by name or path (default native,roce; roce for a storm)",
    )
    parser.add_argument("--pattern", metavar="NAME", default="incast", help=f"one of {', '.join(PATTERNS)}")
    parser.add_argument(
        "--senders", metavar="N", type=whole(1, 10**6), help="senders of the incast (default 15; beside a victim 14)"
    )
    parser.add_argument(
        "--size",
        metavar="SIZE",
        type=partial(as_argument, parse_message_bytes),
        default=1 << 20,
        help="of each message: one a flow (default 1MiB)",
    )
    parser.add_argument(
        "--cc",
        metavar="A,B",
        action="extend",
        type=listed(str),
        help="congestion controls to run with (default none, and the profile's own if it has one)",
    )
    add_sample(parser)
    add_common(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run every case, print and write what was seen."""
    plan = Plan(
        pattern=arguments.pattern,
        profiles=arguments.profile,
        controls=arguments.cc,
        senders=arguments.senders,
        size_bytes=arguments.size,
        settings=arguments.settings,
        seed=arguments.seed,
    )
    cases = cases_of(plan)  # mistakes first, before anything is made
    if plan.senders is not None and plan.pattern not in ("incast", "victim"):
        raise ScenarioError(f"--senders: an incast has senders; --pattern {plan.pattern} has none to choose")
    out = _out(arguments)
    ready(arguments)
    runs, code = _run_all(cases, arguments, out)
    if arguments.json:
        write(to_json([run.result for run in runs]))
    elif not arguments.quiet:
        write(congestion_text(runs))
    verdict = _verdict(cases, runs)
    return code or verdict


def _out(arguments: argparse.Namespace) -> Path | None:
    """The folder that gets one result folder a run. Raises ScenarioError where there is one already."""
    if arguments.out is None:
        return None
    out = Path(arguments.out)
    if out.exists() and not arguments.force:
        raise ScenarioError(f"--out {out} exists already; --force overwrites it")
    return out


def _run_all(cases: Sequence[Case], arguments: argparse.Namespace, out: Path | None) -> tuple[list[Observed], int]:
    """What was seen, up to where an interrupt came, and the exit code if something could not be written."""
    runs: list[Observed] = []
    code = OK
    with ExitStack() as stack:
        stack.callback(_remove_empty, out)
        progress = stack.enter_context(Progress(len(cases), "run", quiet=arguments.quiet))
        for number, case in enumerate(cases):
            progress.reach(number, case.name)
            try:
                seen, lost = _run(case, arguments, out)
            except KeyboardInterrupt:  # while a fabric was built or taken down: the runs so far are whole
                if not runs:
                    raise
                break
            runs.append(seen)
            code = code or lost
            if seen.result["interrupted"]:
                break
    return runs, code


def _remove_empty(out: Path | None) -> None:
    if out is not None:
        with suppress(OSError):  # it is empty only where no run could be kept
            out.rmdir()


def _run(case: Case, arguments: argparse.Namespace, out: Path | None) -> tuple[Observed, int]:
    """One run, and the exit code if its folder could not be written, or not to its end."""
    if out is None:
        return observe(case, options_of(arguments, sample_ps=arguments.sample)), OK
    with ResultFolder(out / case.folder, force=arguments.force) as folder:
        options = options_of(arguments, folder.on_message, on_sample=folder.on_sample, sample_ps=arguments.sample)
        seen = observe(case, options)
        cut = folder.settle()
        seen.result["warnings"].extend(cut)
        lost = keep(folder, seen.result)
        for line in [] if lost else cut:
            complain(f"{case.name}: {line}")
        return seen, lost or (MACHINE if cut else OK)


def _verdict(cases: Sequence[Case], runs: Sequence[Observed]) -> int:
    short = {run.name: shortfall(run.result) for run in runs}
    for name, why in short.items():
        if why:
            complain(f"{name}: traffic did not complete: {why}")
    if len(runs) < len(cases) or runs[-1].result["interrupted"]:
        complain(f"interrupted after {count_text(len(runs), 'run')} of {len(cases)}")
        return INTERRUPTED
    return INCOMPLETE if any(short.values()) else OK
