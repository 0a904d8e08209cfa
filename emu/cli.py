"""The command line: finds the command, runs it, and turns every way it can end into an exit code and one line."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import NoReturn, Protocol, cast

import emu
from emu.commands import exit_codes
from emu.commands.signals import Signals
from emu.errors import MachineError, ScenarioError
from emu.lab.interrupts import Interrupts
from emu.report.output import say, settle, write

# Each is the module emu.commands.NAME; only the one that is asked for is loaded.
COMMANDS = {
    "run": "run a scenario file, or a built-in by name",
    "latency": "perftest-like table: sizes x profiles, per-hop breakdown",
    "congestion": "incast, victim, permutation, all-to-all, storm: queues, pauses, credits, marks, fairness",
    "doorbell": "one message's life from GPU to wire; message rates by path, and what bounds them",
    "topo": "show, check and export a scenario's fabric: links, headroom, credits, deadlock; runs nothing",
    "decode": "read a capture (pcap, pcapng, ERF): frames, flows, messages, ICRC and VCRC verdicts",
    "replay": "send a capture's operations through a fabric: its latencies beside ours",
    "list": "built-in scenarios, profiles, topologies, traffic kinds",
    "doctor": "what this machine can do, what is missing, and the remedy for each",
    "clean": "remove what dead runs left behind, and nothing else",
}
LATER = (
    *("compare", "live", "lab", "sweep", "scale"),
    *("claims", "report", "view", "plot", "top", "wireshark"),
)
OURS = ("emu", "topologies", "traffic")
PLAIN_OPTIONS = ("-h", "--help", "--version")


class Command(Protocol):
    """What a module of emu.commands offers."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's options."""

    def execute(self, arguments: argparse.Namespace) -> int:
        """Do it; the exit code. Raises EmuError."""


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without the usage around it."""

    def error(self, message: str) -> NoReturn:
        """Raise ScenarioError, which ends the command with exit code 2."""
        raise ScenarioError(f"{message} ({self.prog} --help shows what is allowed)")

    def _print_message(self, message: str, file: object = None) -> None:
        """Help and version, where nobody need be reading."""
        write(message.rstrip())


def main(argv: Sequence[str] | None = None) -> int:
    """Run `emu ARGUMENTS`; the exit code. Never raises, whatever happens.

    Without `argv` the process is this command's own: once the exit code is known, no signal changes it any more.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    label = f"emu {arguments[0]}" if arguments and arguments[0] in COMMANDS else "emu"
    signals = Signals(for_good=argv is None)
    try:
        signals.catch()
        code = _outcome(label, arguments)
        signals.settle()
    except KeyboardInterrupt:
        signals.settle()
        say(f"{label}: interrupted")
        code = exit_codes.INTERRUPTED
    finally:
        signals.release()
    return code


def _outcome(label: str, arguments: list[str]) -> int:
    """The exit code, its reason told. Raises KeyboardInterrupt."""
    try:
        return settle(_dispatch(arguments))
    except (ScenarioError, MachineError) as error:
        say(f"{label}: {error}")
        return error.exit_code
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in OURS:
            return _bug(label, error)
        say(f"{label}: the Python package {error.name} is missing: run make install")
        return exit_codes.MACHINE
    except MemoryError:
        say(f"{label}: out of memory; a smaller scenario needs less")
        return exit_codes.MACHINE
    except Exception as error:
        return _bug(label, error)


def _bug(label: str, error: Exception) -> int:
    say("".join(traceback.format_exception(error)).rstrip())
    say(f"{label}: a bug in emu ({type(error).__name__}), not in what you asked for: please report the above")
    return exit_codes.BUG


def _dispatch(arguments: list[str]) -> int:
    name = arguments[0] if arguments else ""
    if name and name not in (*COMMANDS, *PLAIN_OPTIONS):
        raise ScenarioError(_unknown(name))
    parser, parsers = _parser()
    if not arguments:
        parser.print_help()
        return exit_codes.MISTAKE
    command = _load(name) if name in COMMANDS else None
    if command is not None:
        command.configure(parsers[name])
    try:
        namespace = parser.parse_args(arguments)
    except SystemExit as stop:  # --help and --version
        return int(stop.code or exit_codes.OK)
    assert command is not None  # an option in its place is refused: a command is required
    return command.execute(namespace)


def _load(name: str) -> Command:
    """In one piece: others' modules make an error of their own, or nothing, of an interrupt amid their loading."""
    with Interrupts():
        return cast(Command, import_module(f"emu.commands.{name}"))


def _parser() -> tuple[Parser, dict[str, argparse.ArgumentParser]]:
    """The parser, and that of each command by name, still without options."""
    parser = Parser(
        prog="emu",
        description="A packet-level emulator for lossless RDMA fabrics: real frames, modeled time.",
        epilog=f"Not yet: {', '.join(LATER)}.\n\n{exit_codes.HELP}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"emu {emu.__version__}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    return parser, {
        name: subparsers.add_parser(
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            epilog=exit_codes.HELP,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        for name, text in COMMANDS.items()
    }


def _unknown(name: str) -> str:
    if name.startswith("-"):
        return f"unknown option {name[:100]!r}; before a command: {', '.join(PLAIN_OPTIONS)}"
    if name in LATER:
        return f"not yet: {name!r} comes with a later version; known now: {', '.join(COMMANDS)}"
    close = get_close_matches(name, COMMANDS, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"unknown command {name[:100]!r}; {hint}known: {', '.join(COMMANDS)}"
