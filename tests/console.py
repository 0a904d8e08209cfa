"""Console blocks of the documentation: commands and what they print, found, run and compared.

In a block that begins with ```console each line `$ COMMAND` is run by bash, and the lines after it must be what it
prints: a line `...` stands for any lines, wall-clock figures and the wire's name may differ. `$ echo $?` shows the exit
code of the command before.
A block that begins with ```yaml NAME is a file of that name in the folder where the commands run.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.tree import ROOT

COMMAND = ".venv/bin/emu"
LINKED = ("traffic", "emu", "Makefile", "scripts")  # what commands name by a path of the checkout
TIMEOUT_S = 120
_BLOCK = re.compile(r"^```(\w+) ?([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_VARIES = (
    (re.compile(r"wall time .*"), "wall time"),
    (re.compile(r"\b(wire|over) (veth|memory)\b"), r"\1 WIRE"),
)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, what stands after it, its text and its line."""

    language: str
    title: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Command:
    """What a reader types, and the lines a reader is told to see."""

    text: str
    shown: list[str]


def blocks(path: Path) -> list[Block]:
    """All fenced blocks of a Markdown file."""
    text = path.read_text(encoding="utf-8")
    return [
        Block(found[1], found[2], found[3], text.count("\n", 0, found.start()) + 1) for found in _BLOCK.finditer(text)
    ]


def files(path: Path) -> dict[str, str]:
    """The files that a Markdown file's blocks give, by name."""
    return {block.title: block.text for block in blocks(path) if block.language == "yaml" and block.title}


def commands(block: Block) -> list[Command]:
    """The block's commands, each with the output shown."""
    found: list[Command] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:], []))
        elif found:
            found[-1].shown.append(line)
    return found


def console_blocks(*paths: Path) -> Iterator[tuple[Path, Block]]:
    """Every console block of these files."""
    for path in paths:
        yield from ((path, block) for block in blocks(path) if block.language == "console")


def prepare(folder: Path, document: Path) -> None:
    """Make the folder look like the checkout to the document's commands, with the files it gives."""
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)
    for name, text in files(document).items():
        (folder / name).write_text(text, encoding="utf-8")


def run(block: Block, folder: Path, wire: str) -> Iterator[tuple[Command, str]]:
    """Run the block's commands in the folder; each with what it printed, errors too."""
    code = 0
    for command in commands(block):
        if command.text == "echo $?":
            yield command, f"{code}\n"
            continue
        done = subprocess.run(
            ["bash", "-c", _with_wire(_made(command.text), wire)],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        code = done.returncode
        yield command, done.stdout


def agrees(shown: list[str], printed: str) -> bool:
    """Whether the lines shown are those printed, `...` standing for any."""
    parts = [re.escape(_even(line)) + "\n" if line.strip() != "..." else r"(?:.*\n)*?" for line in shown]
    even = "".join(_even(line) + "\n" for line in printed.splitlines())
    return re.fullmatch("".join(parts), even) is not None


def _even(line: str) -> str:
    line = line.rstrip()
    for pattern, instead in _VARIES:
        line = pattern.sub(instead, line)
    return line


def _made(text: str) -> str:
    """`make demo` as the command that it runs: what it installs is there, or no test could run."""
    if text != "make demo":
        return text
    done = subprocess.run(
        ["make", "-n", "--no-print-directory", "demo"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()[-1]


def _with_wire(text: str, wire: str) -> str:
    emu = f"{shlex.quote(sys.executable)} -m emu"
    text = re.sub(rf"{re.escape(COMMAND)} (run|latency)\b(?!.*--wire)", rf"{COMMAND} \1 --wire {wire}", text)
    return text.replace(COMMAND, emu)
