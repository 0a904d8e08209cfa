"""The program that docs/transport.md shows does what it says there."""

from __future__ import annotations

import re

import pytest

from tests.tree import ROOT


def test_the_documented_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "transport.md").read_text(encoding="utf-8")
    section = page[page.index("## A program of one's own") :]
    match = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert match is not None
    program = match[1]
    (said,) = re.findall(r"print\(.*#(.*)", program)
    exec(compile(program, "transport.md", "exec"), {})
    assert capsys.readouterr().out.strip() == said.strip()
