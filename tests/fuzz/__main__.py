"""`python -m tests.fuzz`: so many frames from a seed, in several processes; exit 1 if one did harm or memory grew."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from tests.fuzz.attack import EPISODE_FRAMES, Episode, Harm, attack

BLOCK_EPISODES = 25
GROWTH_LIMIT_MIB = 32.0
REPORT_EVERY_S = 10.0


class Block(NamedTuple):
    """What came of some episodes: in which process, and how much memory that has now."""

    tally: Counter[str]
    process: int
    memory_mib: float
    harm: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=None, help="a random one, which is printed")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--episode", type=int, default=None, help="only this one, to see again what it did")
    options = parser.parse_args(arguments)
    seed = random.randrange(2**32) if options.seed is None else options.seed
    if options.episode is not None:
        Episode(seed, options.episode).run()
        print(f"seed {seed}, episode {options.episode}: no harm")
        return 0
    print(f"seed {seed}, {options.frames:,} frames, {options.jobs} jobs", flush=True)
    return run(seed, options.frames, options.jobs)


def run(seed: int, frames: int, jobs: int) -> int:
    """The whole attack, with progress and a summary."""
    began = said = time.monotonic()
    tally: Counter[str] = Counter()
    memory: dict[int, list[float]] = {}
    block_frames = BLOCK_EPISODES * EPISODE_FRAMES
    blocks = [
        (seed, number * BLOCK_EPISODES, min(block_frames, frames - number * block_frames))
        for number in range(-(-frames // block_frames))
    ]
    with multiprocessing.Pool(jobs) as pool:
        for block in pool.imap_unordered(strike, blocks):
            if block.harm:
                print(block.harm)
                return 1
            tally.update(block.tally)
            memory.setdefault(block.process, []).append(block.memory_mib)
            if time.monotonic() - said > REPORT_EVERY_S:
                said = time.monotonic()
                print(f"{tally['frames']:,} frames, {tally['frames'] / (said - began):,.0f} a second", flush=True)
    growth_mib = max(each[-1] - each[0] for each in memory.values())  # of a process, after its first block
    print(summary(tally, time.monotonic() - began, growth_mib, [max(each) for each in memory.values()]))
    return int(growth_mib > GROWTH_LIMIT_MIB)


def strike(block: tuple[int, int, int]) -> Block:
    """Some episodes, in a process of their own."""
    seed, first_episode, frames = block
    harm, tally = "", Counter[str]()
    try:
        tally = attack(seed, frames, first_episode)
    except Harm as error:
        harm = str(error)
    return Block(tally, os.getpid(), memory_mib(), harm)


def memory_mib() -> float:
    """What this process has resident."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize() / 2**20


def summary(tally: Counter[str], seconds: float, growth_mib: float, peaks_mib: Sequence[float]) -> str:
    """What came of it, in lines."""
    frames = tally["frames"]
    return "\n".join(
        (
            f"{frames:,} frames in {seconds:,.0f} s: {frames / seconds:,.0f} a second; no harm",
            f"  decoded     {tally['read']:,}; refused by every parser {tally['refused']:,}",
            f"  NAKs        {tally['NAKs']:,}; RNR NAKs {tally['RNR NAKs']:,}; connections broken {tally['broken']:,}",
            f"  sent        {tally['sent']:,} frames by the host under attack, its own work included",
            f"  memory      {max(peaks_mib):.0f} MiB a process; {growth_mib:+.1f} MiB since its first block",
        )
    )


if __name__ == "__main__":
    sys.exit(main())
