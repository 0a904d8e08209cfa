"""A put with its signal, there and back between two GPUs: how long until the first GPU sees the other's answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from emu.engine import Engine, Future
from emu.fabric import Fabric
from emu.frame import Message
from emu.run import Options, run
from emu.scenario.model import Scenario
from traffic.workloads.channel import Channel
from traffic.workloads.cluster import Cluster

ENDS = ("h0", "h1")
ROUNDS = 4  # in the first the NICs do not have the queue pairs' contexts yet; the last counts
SIGNAL_BYTES = 8  # the put is as small


class _Game:
    """Each side posts a put and a signal behind it on one queue pair; the other spins on the signal's place."""

    def __init__(self, engine: Engine, fabric: Fabric, scenario: Scenario) -> None:
        gpu = scenario.host.gpu
        assert gpu is not None
        self._engine = engine
        self._poll_ps = gpu.poll_ps
        self._here: Future | None = None
        self._left = 0
        cluster = Cluster(engine, fabric.contexts, scenario.run.seed)
        there = cluster.connect(*ENDS, SIGNAL_BYTES, depth=2 * ROUNDS)
        back = cluster.connect(*ENDS[::-1], SIGNAL_BYTES, depth=2 * ROUNDS)
        self._channels: tuple[Channel, ...] = (there, back)
        self.times_ps: list[int] = []

    async def play(self) -> None:
        """All rounds."""
        for _ in range(ROUNDS):
            began_ps = self._engine.now_ps
            for channel in self._channels:
                self._here, self._left = Future(), 2
                channel.post()
                channel.post()
                await self._here
                await self._engine.sleep(self._poll_ps)
            self.times_ps.append(self._engine.now_ps - began_ps)

    def delivered(self, _: Message) -> None:
        """Two make a put with its signal: they arrive in order."""
        self._left -= 1
        if not self._left and self._here is not None:
            self._here.resolve()


def round_trip_ps(scenario: Scenario, options: Options) -> int:
    """Of a scenario with a host path and no traffic of its own; 0 if it was interrupted."""
    games: list[_Game] = []

    def begin(fabric: Fabric) -> None:
        host = fabric.hosts[ENDS[0]]
        game = _Game(host.engine, fabric, scenario)
        before = host.taps.message_delivered

        def delivered(message: Message) -> None:
            if before is not None:
                before(message)
            game.delivered(message)

        host.taps.message_delivered = delivered
        host.engine.spawn(game.play())
        games.append(game)

    result: dict[str, Any] = run(scenario, replace(options, before_run=begin))
    times_ps = games[0].times_ps
    return times_ps[-1] if len(times_ps) == ROUNDS and result["complete"] else 0
