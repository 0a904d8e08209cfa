"""`emu topo`: its forms, that mistakes are exit 2 in one line, and that it needs no rights and makes nothing."""

from __future__ import annotations

import json

import pytest
import yaml

from emu.cli import main
from emu.scenario import builtin

ROCE = ("topo", "all-to-all-roce")


def test_the_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ROCE, "--set", "fabric.flow_control=pfc", "--set", "fabric.headroom=tight"]) == 0
    printed, said = capsys.readouterr()
    assert said == ""
    assert printed.startswith("all-to-all-roce: leaf_spine, profile roce\n")
    assert "tight 8,348" in printed


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ROCE, "--json", "--set", "fabric.flow_control=pfc"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"nodes", "links", "headroom", "credits", "deadlock"} <= set(found)
    assert found["deadlock"]["possible"] is False and found["deadlock"]["cycle"] == []
    assert len(found["headroom"]) == 2 and found["credits"] == []


def test_exports(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ROCE, "--dot"]) == 0
    assert capsys.readouterr().out.startswith('graph "all-to-all-roce" {')
    assert main([*ROCE, "--containerlab"]) == 0
    assert len(yaml.safe_load(capsys.readouterr().out)["topology"]["links"]) == 32
    assert main([*ROCE, "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("name", builtin.names())
def test_every_built_in_can_be_shown(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topo", name]) == 0
    assert capsys.readouterr().out.startswith(f"{name}: ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "no scenario file or built-in 'nowhere'"),
        (["hello", "--set", "fabric.headroom=loose"], "fabric.headroom"),
        (["hello", "--set", "expect=[drops.lossles == 0]"], "expect"),
        ([*ROCE[1:], "--set", "fabric.flow_control=pfc", "--set", "fabric.buffer=1MB"], "switch leaf0 sets aside"),
        (["hello", "--json", "--dot"], "not allowed with"),
        (["hello", "--wire", "memory"], "--wire"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topo", *arguments]) == 2
    printed, error = capsys.readouterr()
    assert printed == ""
    assert said in error
    assert error.count("\n") == 1


def test_nothing_is_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("emu topo wants rights")

    monkeypatch.setattr("emu.lab.rootless.ensure_privileges", refuse)
    assert main([*ROCE, "--json"]) == 0
    assert capsys.readouterr().err == ""
