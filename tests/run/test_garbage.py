"""Python's thresholds are another's: a run leaves them as they were, however it ends."""

from __future__ import annotations

import gc

import pytest

from emu.run import Options, run
from emu.run.garbage import THRESHOLDS, sought_seldom
from emu.scenario.load import load


def test_thresholds_are_as_before_after_a_run() -> None:
    before, during = gc.get_threshold(), []
    run(load("all-to-all-native"), Options(wire="memory", on_progress=lambda *_: during.append(gc.get_threshold())))
    assert gc.get_threshold() == before
    assert set(during) == {THRESHOLDS}


def test_so_they_are_where_it_breaks_off() -> None:
    before = gc.get_threshold()
    with pytest.raises(KeyboardInterrupt), sought_seldom():
        raise KeyboardInterrupt
    assert gc.get_threshold() == before


def test_who_wants_none_gets_none() -> None:
    before = gc.get_threshold()
    gc.set_threshold(0)
    try:
        with sought_seldom():
            assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*before)
