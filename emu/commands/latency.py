"""`emu latency`: a perftest-like table, sizes by profiles, with what each figure rests on."""

from __future__ import annotations

import argparse
from fractions import Fraction

from emu.commands.options import (
    add_common,
    as_argument,
    keep,
    listed,
    options_of,
    ready,
    rows_folder,
    rows_verdict,
    whole,
)
from emu.harness.latency import Plan, measure, scenarios_of
from emu.report.latency import latency_text
from emu.report.output import to_json, write
from emu.report.progress import Progress
from emu.scenario.field import parse_message_bytes
from emu.scenario.posting import OPS
from emu.units import parse_fraction


def configure(parser: argparse.ArgumentParser) -> None:
    """Add what to measure, and the options."""
    parser.add_argument(
        "--profile",
        metavar="A,B",
        type=listed(str),
        default=["native", "roce", "roce-63", "ndr"],
        help="profiles, by name or path (default native,roce,roce-63,ndr)",
    )
    parser.add_argument(
        "--sizes",
        metavar="A,B",
        type=listed(parse_message_bytes),
        default=[64, 4096, 65_536, 1_048_576],
        help="message sizes (default 64B,4KiB,64KiB,1MiB)",
    )
    parser.add_argument(
        "--hops",
        metavar="N",
        type=whole(0, 1000),
        default=3,
        help="switches on the way: 1 (one leaf), 3 (leaf, spine, leaf), another number (a line of switches), 0 (none)",
    )
    parser.add_argument(
        "--op",
        metavar="A,B",
        type=listed(str),
        default=["write"],
        help=f"operations (default write): {', '.join(OPS)}; atomics have 8 bytes",
    )
    parser.add_argument("--iters", metavar="N", type=whole(1, 10**6), default=3, help="messages a row (default 3)")
    parser.add_argument(
        "--claim",
        metavar="SHARE",
        type=_claim,
        default=Fraction(63, 100),
        help="a claim to hold the table against: the hop latency at which it would be true (default 63%%)",
    )
    add_common(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Measure every row, print and write them."""
    plan = Plan(
        profiles=arguments.profile,
        sizes_bytes=arguments.sizes,
        hops=arguments.hops,
        ops=arguments.op,
        iters=arguments.iters,
        settings=arguments.settings,
        seed=arguments.seed,
    )
    total = len(scenarios_of(plan))  # mistakes first, before anything is made
    ready(arguments)
    with rows_folder(arguments) as folder, Progress(total, "run", quiet=arguments.quiet) as progress:
        latencies = measure(plan, options_of(arguments), progress.reach)
        found = latencies.to_json()
        lost = keep(folder, found)
    if arguments.json:
        write(to_json(found))
    elif not arguments.quiet:
        write(latency_text(found, arguments.claim))
    code = rows_verdict("latency", len(latencies.rows), latencies.missing, interrupted=latencies.interrupted)
    return lost or code


def _claim(text: str) -> Fraction:
    share = as_argument(parse_fraction, text)
    if share == 1:
        raise argparse.ArgumentTypeError(f"{text!r}: nothing takes no time; write less than 100%")
    return share
