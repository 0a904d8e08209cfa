"""100,000 hostile frames through every parser and every machine, in the suite; and that harm would be seen."""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from collections import Counter

import pytest

from emu.errors import InvariantBroken
from emu.transport.memory import Access, MemoryRegion, MemoryTable
from emu.transport.requester import Requester
from tests.fuzz.attack import EPISODE_FRAMES, Harm, attack
from tests.tree import ROOT

SEED = 20261130
FRAMES = 100_000
GROWTH_BYTES = 256 * 1024
EPISODES = 5  # in which each kind of harm is found


def check_reach(tally: Counter[str], frames: int) -> None:
    """The attack got behind the parsers, and behind the first checks of the machines."""
    assert tally["frames"] == frames
    assert tally["read"] + tally["refused"] == frames
    assert min(tally["read as rocev2"], tally["read as native"]) > frames / 8
    assert min(tally["read as link control"], tally["RNR NAKs"], tally["broken"]) > frames / 200
    assert tally["NAKs"] > frames / 20
    assert tally["sent"] < 40 * frames


def test_a_hundred_thousand_frames_do_no_harm() -> None:
    check_reach(attack(SEED, FRAMES), FRAMES)


@pytest.mark.long
def test_half_a_million_frames_do_no_harm() -> None:
    check_reach(attack(SEED + 1, 5 * FRAMES), 5 * FRAMES)


def test_nothing_is_left_of_an_attack() -> None:
    attack(SEED, EPISODE_FRAMES)  # fills caches
    tracemalloc.start()
    try:
        attack(SEED, 200, first_episode=3)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for episode in range(4, 8):
            attack(SEED, 200, first_episode=episode)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < GROWTH_BYTES


def harm() -> str:
    """What an attack says that found some."""
    with pytest.raises(Harm, match=rf"--seed {SEED} --episode \d+, (frame \d+ [0-9a-f]+|after all frames)") as caught:
        attack(SEED, EPISODES * EPISODE_FRAMES)
    return str(caught.value)


def test_an_error_in_a_machine_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def wait(self: Requester, number: int, code: int, now_ps: int) -> list[object]:
        raise InvariantBroken("a rare one")

    monkeypatch.setattr(Requester, "_wait_for_receive", wait)
    assert "InvariantBroken: a rare one" in harm()


def test_a_right_that_is_not_checked_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(self: MemoryTable, key: int, addr: int, length: int, access: Access) -> MemoryRegion | None:
        region = self._regions.get(key)
        return region if region is not None and region.covers(addr, length) else None

    monkeypatch.setattr(MemoryTable, "find", find)
    assert "may not" in harm()


def test_a_bound_that_is_not_checked_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryRegion, "covers", lambda self, addr, length: self.addr <= addr < self.addr + self.length)
    found = harm()
    assert "ValueError" in found or "another length" in found  # what memory itself says, or what comes back


def test_a_timer_that_does_not_run_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Requester, "_restart_timer", lambda self, now_ps: None)
    assert "no timer runs" in harm()


def test_an_episode_is_the_same_again() -> None:
    assert attack(7, 200, first_episode=9) == attack(7, 200, first_episode=9)


def test_the_command_says_what_it_did() -> None:
    command = [sys.executable, "-m", "tests.fuzz", "--frames", "1200", "--seed", "3", "--jobs", "2"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.startswith("seed 3, 1,200 frames, 2 jobs\n1,200 frames in ")
    assert "no harm" in done.stdout
