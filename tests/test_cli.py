"""How commands end: exit codes, one line for each mistake, signals, and a stdout that nobody reads."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

import emu
import emu.commands.run
from emu.cli import COMMANDS, LATER, main
from emu.errors import InvariantBroken, MachineError, ScenarioError
from tests.tree import ROOT

# SIGINT is ignored in what a shell started in the background: here it must be as at a terminal.
START = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
    f"sys.path.insert(0, {str(ROOT)!r}); from emu.cli import main; sys.exit(main())"
)
LONG = """
name: long
fabric: {profile: native, topology: {kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 1}}
traffic: [{kind: write, pairs: [[h0, h1]], size: 4KiB, count: 100_000_000}]
""".replace("100_000_000", "100000000")
WIRES = ("memory", pytest.param("veth", marks=pytest.mark.lab))


def start(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    """Run `emu ARGUMENTS` in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", START, *arguments],
        stdout=options.pop("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def raising(error: BaseException) -> Callable[..., NoReturn]:
    def fail(*_: object) -> NoReturn:
        raise error

    return fail


def test_without_a_command_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    out = capsys.readouterr().out
    assert all(name in out for name in (*COMMANDS, *LATER))


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_help_tells_the_exit_codes(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "--help"]) == 0
    assert "130  ended by Ctrl-C, SIGTERM" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"emu {emu.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["rnu"],
            "emu: unknown command 'rnu'; did you mean 'run'?"
            " known: run, latency, congestion, doorbell, topo, decode, replay, list",
        ),
        (["compare"], "emu: not yet: 'compare'"),
        (["--fast"], "emu: unknown option '--fast'"),
        (["run"], "emu run: which scenario?"),
        (["run", "hello", "--wire", "string"], "emu run: argument --wire: invalid choice: 'string'"),
        (["run", "hello", "--sed", "1"], "emu run: unrecognized arguments: --sed 1"),
        (["run", "hello", "--seed", "-1"], "emu run: argument --seed: '-1' is no seed"),
        (["run", "helo"], "emu run: no scenario file or built-in 'helo'; did you mean 'hello'?"),
        (["run", "hello", "--set", "fabric.hop=1ns"], "unknown key 'hop'"),
        (["run", "hello", "--wire", "memory", "--accept-foreign"], "emu run: --accept-foreign: nobody else"),
        (["latency", "--sizes", "4"], "'4' has no unit: a size is written like 4KiB"),
        (["latency", "--sizes", "3GiB"], "argument --sizes: '3GiB': a message has at most 2GiB"),
        (["latency", "--profile", "nope"], "emu latency: --profile nope: unknown profile 'nope'; "),
        (["latency", "--profile", "./nope.yaml"], "emu latency: --profile ./nope.yaml: nope.yaml: No such file"),
        (["latency", "--sizes", "4KiB,,1B"], "write a list like a,b,c"),
        (["latency", "--iters", "0"], "'0': a whole number from 1"),
        (["latency", "--claim", "100%"], "write less than 100%"),
        (["list", "more"], "emu list: unrecognized arguments: more"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ScenarioError("no"), 2),
        (MachineError("no"), 3),
        (MemoryError(), 3),
        (ModuleNotFoundError("No module named 'scapy'", name="scapy"), 3),
        (KeyboardInterrupt(), 130),
    ],
)
def test_errors_end_with_their_code_and_without_traceback(
    error: BaseException,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(emu.commands.run, "run", raising(error))
    assert main(["run", "hello", "--wire", "memory", "--out", str(tmp_path / "out")]) == code
    err = capsys.readouterr().err
    assert err.startswith("emu run: ")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "error", [InvariantBroken("bytes went missing"), KeyError("x"), ModuleNotFoundError("x", name="emu.fabrik")]
)
def test_a_bug_of_ours_shows_a_traceback(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(emu.commands.run, "run", raising(error))
    assert main(["run", "hello", "--wire", "memory", "--out", str(tmp_path / "out")]) == 70
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert type(error).__name__ in err.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "hello", "--wire", "memory", "--out", "x"],
        ["run", "hello", "--wire", "memory", "--set", "fabric.profile=./x.yaml"],
        ["run", "./x.yaml", "--wire", "memory"],
        ["latency", "--wire", "memory", "--profile", "./x.yaml"],
        ["latency", "--wire", "memory", "--out", "x"],
    ],
)
def test_a_current_folder_that_is_gone_is_exit_2(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert "x" in err
    assert "No such file or directory" in err
    assert err.count("\n") == 1


def test_no_privileges_is_exit_3(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("emu.lab.rootless.ensure_privileges", raising(MachineError("no namespaces: use sudo")))
    assert main(["run", "hello"]) == 3
    assert capsys.readouterr().err == "emu run: no namespaces: use sudo\n"


def test_signals_are_handled_as_before_afterwards() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    assert main(["run", "hello", "--wire", "memory", "--quiet"]) == 0
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_writes_what_it_has(wire: str, number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "long.yaml").write_text(LONG)
    out = tmp_path / "out"
    process = start("run", "long.yaml", "--wire", wire, "--out", "out", "--json", cwd=tmp_path)
    try:
        wait_for(lambda: any(file.stat().st_size for file in tmp_path.glob(".out.*/messages.csv")))
        process.send_signal(number)
        printed, said = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "interrupted" in said
    assert "Traceback" not in said
    result = json.loads(printed)
    assert (result["complete"], result["interrupted"]) == (False, True)
    assert 0 < result["messages"]["completed"] < 100_000_000
    assert json.loads((out / "result.json").read_text()) == result
    assert len((out / "messages.csv").read_text().splitlines()) == result["messages"]["completed"] + 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["long.yaml", "out"]


def test_nobody_reads_what_is_printed() -> None:
    for arguments in (["list"], ["run", "hello", "--wire", "memory", "--json"], ["--help"]):
        reading, writing = os.pipe()
        os.close(reading)
        process = start(*arguments, stdout=writing)
        os.close(writing)
        assert (process.communicate(timeout=30)[1], process.returncode) == ("", 0)


def test_a_full_disk_is_no_success() -> None:
    with Path("/dev/full").open("w") as full:
        process = start("list", stdout=full)
        assert "No space left" in process.communicate(timeout=30)[1]
    assert process.returncode == 3


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "emu", "lst"], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


def test_public_names_are_there_and_loaded_late() -> None:
    code = "import emu, sys; assert not [name for name in sys.modules if name.startswith('emu.')]; print(dir(emu))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "'Scenario'" in done.stdout
    assert all(getattr(emu, name) is not None for name in emu.__all__)
    with pytest.raises(AttributeError, match="no attribute 'fabrik'"):
        emu.fabrik  # noqa: B018


def wait_for(condition: Callable[[], bool], timeout_s: float = 30) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
