"""How a queue pair's messages are posted: `depth` outstanding at a time, or at given times whatever is outstanding."""

from __future__ import annotations

from collections.abc import Iterator

from emu.engine import Engine
from traffic.workloads.channel import Channel
from traffic.workloads.cluster import Cluster


def launch(cluster: Cluster, channel: Channel, *, count: int, depth: int, start_ps: int) -> None:
    """Start the coroutine that sends `count` messages, `depth` of them outstanding."""
    channel.qp.expected = count
    cluster.engine.spawn(write_all(cluster.engine, channel, count=count, depth=depth, start_ps=start_ps))


def launch_open(cluster: Cluster, channel: Channel, *, times_ps: Iterator[int], count: int, start_ps: int) -> None:
    """Start the coroutines that post `count` messages, one at each of the times, and take their completions.

    Times are from `start_ps` on, or from when it is connected, if that is to be done then.
    """
    channel.qp.expected = count
    if channel.connect is None:
        _open(cluster.engine, channel, (start_ps + when_ps for when_ps in times_ps), count)
    else:
        cluster.engine.spawn(_open_connected(cluster.engine, channel, times_ps, count, start_ps))


def _open(engine: Engine, channel: Channel, times_ps: Iterator[int], count: int) -> None:
    ledger = Ledger(count)
    engine.spawn(post_at(engine, channel, ledger, times_ps))
    engine.spawn(take_all(channel, ledger))


async def _open_connected(engine: Engine, channel: Channel, times_ps: Iterator[int], count: int, start_ps: int) -> None:
    if await ready(engine, channel, start_ps):
        now_ps = engine.now_ps
        _open(engine, channel, (now_ps + when_ps for when_ps in times_ps), count)


async def ready(engine: Engine, channel: Channel, start_ps: int) -> bool:
    """Wait for the start, and for the connection if it is to be made then; False: it could not be."""
    if start_ps > engine.now_ps:
        await engine.sleep(start_ps - engine.now_ps)
    return channel.connect is None or await channel.connect()


async def write_all(engine: Engine, channel: Channel, *, count: int, depth: int, start_ps: int) -> None:
    """Send `count` messages, `depth` of them outstanding, and check each in memory; stops at the first that fails."""
    if not await ready(engine, channel, start_ps):
        return
    done = failed = 0
    while done + failed < channel.posted or (channel.posted < count and not failed):
        while channel.posted < count and not failed and channel.posted - done < depth:
            channel.post()
        completion = await channel.cq.next()
        if completion.status:
            failed += 1
        else:
            channel.verify(completion.wr_id)
            done += 1


class Ledger:
    """What the one that posts and the one that takes completions know of each other."""

    __slots__ = ("failed", "left")

    def __init__(self, count: int) -> None:
        self.left = count  # messages not yet completed
        self.failed = False


async def post_at(engine: Engine, channel: Channel, ledger: Ledger, times_ps: Iterator[int]) -> None:
    """Post a message at each time; none after the first that failed."""
    for when_ps in times_ps:
        await engine.sleep(when_ps - engine.now_ps)
        if ledger.failed:
            return
        channel.post()


async def take_all(channel: Channel, ledger: Ledger) -> None:
    """Take completions and check each in memory, until all are done, or one failed and nothing is outstanding."""
    taken = 0
    while ledger.left and not (ledger.failed and taken == channel.posted):
        completion = await channel.cq.next()
        taken += 1
        if completion.status:
            ledger.failed = True
        else:
            channel.verify(completion.wr_id)
            ledger.left -= 1
