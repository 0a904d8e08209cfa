"""`emu doctor` and `emu clean`: what they print, and what doctor's exit code says."""

from __future__ import annotations

import json

import pytest

import emu.commands.clean
import emu.commands.doctor
from emu.cli import main
from emu.lab.doctor import Check
from tests.tree import ROOT

GOOD = Check("veth pairs", "--wire veth", True, "a link in 50 ms")
BAD = Check("mnexec", "Mininet's namespaces", False, "missing", "apt-get install mininet")
SMALL = Check("ifconfig", "emu live", False, "missing", "apt-get install net-tools", optional=True)


@pytest.mark.parametrize(("checks", "code"), [([GOOD], 0), ([GOOD, SMALL], 0), ([GOOD, BAD], 3)])
def test_doctor(
    checks: list[Check], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(emu.commands.doctor, "checks", lambda: checks)
    assert main(["doctor"]) == code
    out = capsys.readouterr().out
    assert all(each.need in out and each.found in out and each.remedy in out for each in checks)
    assert main(["doctor", "--json"]) == code
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert rows == [
        {"need": each.need, "for": each.for_, "found": each.found, "remedy": each.remedy} for each in checks
    ]


@pytest.mark.parametrize(
    ("removed", "said"), [([], "nothing to remove\n"), (["process 7 of run x"], "removed process 7 of run x\n")]
)
def test_clean(
    removed: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(emu.commands.clean, "clean", lambda: removed)
    assert main(["clean"]) == 0
    assert capsys.readouterr().out == said
    assert main(["clean", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"removed": removed}


def test_the_documentation_knows_the_marks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(emu.commands.doctor, "checks", lambda: [GOOD, SMALL, BAD])
    main(["doctor"])
    marks = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:4]]
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert all(f"`{mark}`" in text for mark in marks if mark != "ok")
    assert len(set(marks)) == 3
