"""Attacks in episodes: each has a world of its own, and its numbers from the seed and its own number alone."""

from __future__ import annotations

import random
from collections import Counter

from emu.framing.control import Fcp, Pause, Pfc, encode
from tests.framing import mangle
from tests.fuzz.aim import Aim, shot
from tests.fuzz.corpus import known, whole
from tests.fuzz.machines import Machines
from tests.fuzz.parsers import parse, summarise
from tests.fuzz.world import MTUS, PASSING_PS, World

EPISODE_FRAMES = 400
MOST_CONNECTIONS = 24  # of one episode


class Harm(AssertionError):  # noqa: N818 - what was done, not what went wrong here
    """What a frame did that it may not; the message says how to see it again."""


class Episode:
    """One of them. `tally`: what came of its frames."""

    def __init__(self, seed: int, number: int) -> None:
        self.name = f"--seed {seed} --episode {number}"
        self._numbers = random.Random(f"{seed}/{number}")
        self.tally: Counter[str] = Counter()
        self._corpus = [*whole(), *whole(), whole()[0]]  # its last is the last that was aimed
        self._seen: list[bytes] = []
        self.world = World(self._numbers)
        self.machines = Machines(self._numbers, self._numbers.choice(MTUS))

    def run(self, frames: int = EPISODE_FRAMES) -> None:
        """All of it. Raises Harm."""
        data = b""
        try:
            while len(self._seen) < frames:
                data = self._next()
                self._strike(data)
            data = b""
            self.world.settle()
            summarise(self._seen)
        except Exception as error:
            place = f"frame {len(self._seen)} {data.hex()}" if data else "after all frames"
            raise Harm(f"{type(error).__name__}: {error}; {self.name}, {place}") from error
        self.tally["frames"] += frames
        self.tally["NAKs"] += self.machines.naks
        self.tally.update(self.world.tally)

    def _next(self) -> bytes:
        """Bytes: flow control, aimed, aimed and mangled, known and mangled, noise."""
        choice = self._numbers.random()
        if choice < 0.7:
            data = _control(self._numbers) if choice < 0.03 else self._encoded(self._aim())
            self._corpus[-1] = data
            if choice < 0.6:
                return data
        only_last = choice < 0.7
        return next(mangle.frames(self._numbers, self._corpus[-1:] if only_last else self._corpus, 1))

    def _aim(self) -> Aim:
        return self.world.aim() if self._numbers.random() < 0.7 else self.machines.aim()

    def _encoded(self, aim: Aim) -> bytes:
        frame = shot(self._numbers, aim, known())
        return frame.envelope.framing.encode(frame)

    def _strike(self, data: bytes) -> None:
        numbers, world = self._numbers, self.world
        self._seen.append(data)
        for frame in parse(numbers, data, self.tally):
            self.machines.take(frame)
        world.take(data, roundabout=numbers.random() < 0.1)
        if numbers.random() < 0.06:
            world.work()
            self._reconnect()
        world.go_on(numbers.choice(PASSING_PS))

    def _reconnect(self) -> None:
        """In place of a connection that was broken, another."""
        pairs = self.world.pairs
        for place, (here, there) in enumerate(pairs):
            if here._attached().is_broken or there._attached().is_broken:
                if len(self.world.nic.queue_pairs) >= MOST_CONNECTIONS:
                    return
                self.tally["broken"] += 1
                self.world.connect(here.qp_type, shared=here._receives.is_shared)
                pairs[place] = pairs.pop()


def _control(numbers: random.Random) -> bytes:
    quanta = tuple(numbers.choice((0, 1, 40, 0xFFFF)) for _ in range(8))
    fcp = Fcp(numbers.choice((0, 0, 1, 2, 15)), numbers.randrange(16), numbers.getrandbits(12), numbers.getrandbits(12))
    return encode(numbers.choice((Pfc(1, numbers.getrandbits(8), quanta), Pause(1, quanta[0]), fcp)))


def attack(seed: int, frames: int, first_episode: int = 0) -> Counter[str]:
    """So many frames, in as many episodes as that takes. Raises Harm."""
    tally: Counter[str] = Counter()
    for number in range(-(-frames // EPISODE_FRAMES)):
        episode = Episode(seed, first_episode + number)
        episode.run(min(EPISODE_FRAMES, frames - number * EPISODE_FRAMES))
        tally.update(episode.tally)
    return tally
