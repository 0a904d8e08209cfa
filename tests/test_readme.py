"""The README is true: every command in it is run, and prints what the README shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.console import Block, agrees, blocks, commands, console_blocks, prepare, run
from tests.tree import ROOT

README = ROOT / "README.md"
BLOCKS = [block for _, block in console_blocks(README)]


def check(block: Block, folder: Path, wire: str) -> None:
    prepare(folder, README)
    for command, printed in run(block, folder, wire):
        assert agrees(command.shown, printed), f"README.md:{block.line}: $ {command.text}\n{printed}"


@pytest.mark.long
@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"line-{block.line}")
def test_the_readme_shows_what_comes_out(block: Block, tmp_path: Path) -> None:
    check(block, tmp_path, "memory")


@pytest.mark.lab
@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"line-{block.line}")
def test_the_readme_shows_what_comes_out_over_veth(block: Block, tmp_path: Path) -> None:
    check(block, tmp_path, "veth")


def test_the_readme_shows_both_commands_and_the_changes_to_try() -> None:
    tried = " ".join(command.text for block in BLOCKS for command in commands(block))
    for part in ("make demo", "fabric.hop_latency=", "fabric.topology.", "mine.yaml"):
        assert part in tried
    assert "make test" in README.read_text(encoding="utf-8")


def test_a_wrong_figure_would_be_found() -> None:
    printed = "  size     native\n  4KiB   942.9 ns\nover veth, wall time 3 s\nend\n"
    shown = ["...", "  4KiB   942.9 ns", "over memory, wall time 0.1 s after that", "end"]
    assert agrees(shown, printed)
    assert not agrees([shown[0], "  4KiB   942.8 ns", *shown[2:]], printed)
    assert not agrees(shown[:-1], printed)
    assert not agrees(shown[1:], printed)


def test_blocks_are_read_as_written(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "text\n```console\n$ a | b\nout\n\n$ echo $?\n4\n```\n```yaml x.yaml\nname: x\n```\n", encoding="utf-8"
    )
    console, file = blocks(page)
    assert [(command.text, command.shown) for command in commands(console)] == [
        ("a | b", ["out", ""]),
        ("echo $?", ["4"]),
    ]
    assert (console.line, file.title, file.text) == (2, "x.yaml", "name: x\n")
