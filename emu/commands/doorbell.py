"""`emu doorbell`: one message's life from the GPU to the wire, message rates by path, and what bounds them."""

from __future__ import annotations

import argparse

from emu.commands.options import add_common, keep, listed, options_of, ready, rows_folder, rows_verdict, whole
from emu.errors import ScenarioError
from emu.harness.doorbell import Doorbells, Plan, cases_of, measure
from emu.harness.published import PARTS, compare
from emu.report.doorbell import doorbell_text
from emu.report.output import to_json, write
from emu.report.progress import Progress
from emu.report.published import published_text
from emu.scenario.field import parse_message_bytes
from emu.scenario.host_path import PATHS

OWN = {
    "profile": "native",
    "path": list(PATHS),
    "gpu_direct": "on",
    "sizes": [8],
    "warps": [1, 128],
    "cores": None,
    "qps": None,
}
"""What `--published` chooses itself, and its value where it is not given."""
GPU_DIRECT = {"on": (True,), "off": (False,), "both": (True, False)}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add what to measure, and the options."""
    parser.add_argument("--profile", metavar="NAME", default=OWN["profile"], help="a name or path (default native)")
    parser.add_argument(
        "--path",
        metavar="A,B",
        type=listed(str),
        default=OWN["path"],
        help=f"who posts and rings (default all): {', '.join(PATHS)}",
    )
    parser.add_argument(
        "--gpu-direct",
        choices=GPU_DIRECT,
        default=OWN["gpu_direct"],
        help="whether NIC and GPU reach each other's memory, or only the host's, with copies (default on)",
    )
    parser.add_argument(
        "--sizes",
        metavar="A,B",
        type=listed(parse_message_bytes),
        default=OWN["sizes"],
        help="message sizes (default 8B)",
    )
    parser.add_argument(
        "--warps", metavar="A,B", type=listed(whole(1, 65_536)), default=OWN["warps"], help="GPU warps (default 1,128)"
    )
    parser.add_argument(
        "--cores", metavar="A,B", type=listed(whole(1, 1024)), help="proxy threads (default host.cpu.cores)"
    )
    parser.add_argument(
        "--qps", metavar="N", type=whole(1, 65_536), help="queue pairs (default host.queues.num_rc_per_pe)"
    )
    parser.add_argument(
        "--messages", metavar="N", type=whole(32, 10**7), help="for each rate (default 6000, or 64 MiB of large ones)"
    )
    parser.add_argument(
        "--published", action="store_true", help="predict published figures instead, and show by how much each misses"
    )
    parser.add_argument("--no-diagram", action="store_true", help="tables only")
    add_common(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Measure every row, print and write them."""
    if arguments.published:
        return _published(arguments)
    plan = Plan(
        profile=arguments.profile,
        paths=arguments.path,
        gpu_direct=GPU_DIRECT[arguments.gpu_direct],
        sizes_bytes=arguments.sizes,
        warps=arguments.warps,
        cores=arguments.cores or (None,),
        qps=arguments.qps,
        messages=arguments.messages,
        settings=arguments.settings,
        seed=arguments.seed,
    )
    cases = cases_of(plan)  # mistakes first, before anything is made
    ready(arguments)
    with rows_folder(arguments) as folder, Progress(len(cases), "row", quiet=arguments.quiet) as progress:
        doorbells = measure(cases, options_of(arguments), progress.reach)
        found = doorbells.to_json()
        lost = keep(folder, found)
    if arguments.json:
        write(to_json(found))
    elif not arguments.quiet:
        write(doorbell_text(found, with_diagrams=not arguments.no_diagram))
    return _verdict(doorbells, lost)


def _published(arguments: argparse.Namespace) -> int:
    """Predict what others measured; it has paths, sizes and systems of its own."""
    for name, default in OWN.items():
        if getattr(arguments, name) != default:
            option = f"--{name.replace('_', '-')}"
            raise ScenarioError(f"{option}: --published has its own; it takes --messages, --set and the common options")
    ready(arguments)
    with rows_folder(arguments) as folder, Progress(len(PARTS), "part", quiet=arguments.quiet) as progress:
        compared = compare(
            arguments.settings,
            arguments.seed,
            options_of(arguments),
            messages=arguments.messages,
            before_each=progress.reach,
        )
        found = compared.to_json()
        lost = keep(folder, found)
    if arguments.json:
        write(to_json(found))
    elif not arguments.quiet:
        write(published_text(found))
    return _verdict(compared.doorbells, lost)


def _verdict(doorbells: Doorbells, lost: int) -> int:
    code = rows_verdict("doorbell", len(doorbells.rows), doorbells.missing, interrupted=doorbells.interrupted)
    return lost or code
