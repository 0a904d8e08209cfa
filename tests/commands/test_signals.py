"""Signals: one interrupts, its repetition changes nothing, and once the exit code is known nor does any."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import emu.commands.signals
from emu.commands.signals import ENDING, Signals
from tests.tree import ROOT

# Says when the interpreter is as far down as it is asked about, and stays there for a while.
LINGER = """
import atexit, os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, {root!r})
def linger(write=os.write, sleep=time.sleep, now=time.monotonic):
    write(2, b"late")
    end = now() + 0.5
    while now() < end:
        sleep(0.01)
class Last:
    def __del__(self, linger=linger):
        linger()
if {when!r} == "atexit":
    atexit.register(linger)
else:
    last = Last()
from emu.cli import main
sys.exit(main())
"""
LONG = """
name: long
fabric: {profile: native, topology: {kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 1}}
traffic: [{kind: write, pairs: [[h0, h1]], size: 4KiB, count: 100000000}]
"""
ARGUMENTS = ("run", "hello", "--wire", "memory", "--json")


@pytest.fixture
def caught() -> Iterator[Signals]:
    signals = Signals(for_good=False)
    try:
        signals.catch()
        yield signals
    finally:
        signals.release()


@pytest.mark.parametrize("number", ENDING)
def test_one_interrupts_and_its_repetition_does_not(
    caught: Signals, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KeyboardInterrupt, match=number.name):
        signal.raise_signal(number)
    for again in ENDING:
        signal.raise_signal(again)
    monkeypatch.setattr(emu.commands.signals, "PATIENCE_S", 0.0)  # later on
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)


@pytest.mark.parametrize("number", ENDING)
def test_one_that_nobody_could_raise_comes_again(caught: Signals, number: signal.Signals) -> None:
    """In a destructor, or a callback of the import system, Python prints what is raised and forgets it."""

    class Last:
        def __del__(self) -> None:
            signal.raise_signal(number)

    with pytest.raises(KeyboardInterrupt, match=number.name):
        Last()
        time.sleep(5)


def test_settled_nothing_interrupts(caught: Signals) -> None:
    caught.settle()
    for number in ENDING:
        signal.raise_signal(number)


def test_what_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signals = Signals(for_good=False)
    try:
        signals.catch()
        signal.raise_signal(signal.SIGHUP)
    finally:
        signals.release()
        assert signal.signal(signal.SIGHUP, before) is signal.SIG_IGN


@pytest.mark.parametrize("when", ["atexit", "del"])
@pytest.mark.parametrize("number", ENDING)
def test_no_signal_changes_how_a_command_ends(number: signal.Signals, when: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", LINGER.format(root=str(ROOT), when=when), *ARGUMENTS],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        assert process.stderr.read(4) == b"late"
        process.send_signal(number)
        assert json.loads(process.stdout.read())["complete"] is True
        assert (process.wait(timeout=30), process.stderr.read()) == (0, b"")


def test_many_interrupts_are_one(tmp_path: Path) -> None:
    (tmp_path / "long.yaml").write_text(LONG)
    (tmp_path / "run").mkdir()
    (tmp_path / "results").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", LINGER.format(root=str(ROOT), when="del")]
        + ["run", "long.yaml", "--wire", "memory", "--json", "--out", "results/out"],
        cwd=tmp_path,
        env=os.environ | {"XDG_RUNTIME_DIR": str(tmp_path / "run")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    with process.stderr:
        deadline = time.monotonic() + 30
        while not any(file.stat().st_size for file in tmp_path.glob("results/.out.*/messages.csv")):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert list(tmp_path.glob("run/emu/*"))
        while process.poll() is None:
            process.send_signal((signal.SIGINT, signal.SIGTERM)[time.monotonic_ns() % 2])
            time.sleep(0.001)
            assert time.monotonic() < deadline + 30
        assert process.returncode == 130
        assert "Traceback" not in process.stderr.read()
    assert list(tmp_path.glob("run/emu/*")) == []
    assert list(tmp_path.glob("results/.out.*")) == []
