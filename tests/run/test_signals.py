"""Signals that end a run: the first stops it, one right after changes nothing, a late one interrupts."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from emu.engine import Engine
from emu.run import Options, run, signals
from emu.run.signals import EndingSignals
from emu.scenario.load import parse

TEXT = """
name: long
fabric: {profile: native, topology: {kind: line, switches: 1}}
traffic: [{kind: write, pairs: [[h0, h1]], size: 4KiB, count: 100000}]
"""


@pytest.fixture(autouse=True)
def given_back() -> Iterator[None]:
    """What an interrupted run leaves to the next signal."""
    before = {number: signal.getsignal(number) for number in signals.ENDING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", signals.ENDING)
@pytest.mark.parametrize("times", [1, 3])
def test_a_run_ends_between_two_events_and_its_result_is_kept(
    number: signal.Signals, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0

    def interrupt(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls <= times:
            os.kill(os.getpid(), number)

    signal.signal(number, signal.default_int_handler)
    result = run(parse(TEXT, "long.yaml", ()), Options(wire="memory", on_progress=interrupt))
    assert (result["complete"], result["interrupted"]) == (False, True)
    assert 0 < result["messages"]["completed"] < 100_000
    signal.raise_signal(number)  # while the result is told, say
    monkeypatch.setattr(signals, "IMPATIENCE_S", -1)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)
    assert signal.getsignal(number) is signal.default_int_handler


def test_a_run_that_is_not_interrupted_gives_signals_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    run(parse(TEXT.replace("100000", "1"), "short.yaml", ()), Options(wire="memory"))
    assert signal.getsignal(signal.SIGINT) is before


def test_a_signal_right_after_another_is_the_same_wish() -> None:
    with EndingSignals(Engine()) as ending:
        ending.arm()
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGINT)
        assert len(ending.came) == 3


def test_a_later_one_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "IMPATIENCE_S", -1)
    with pytest.raises(KeyboardInterrupt), EndingSignals(Engine()) as ending:
        ending.arm()
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
