"""`kind: poisson`: messages posted at random times, whatever is outstanding: an open loop at a given load."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import count as counting

from emu import opcodes
from emu.engine import stream
from emu.frame import Envelope, Frame
from emu.scenario.traffic import Poisson
from emu.units import SECOND
from traffic.workloads.cluster import Cluster
from traffic.workloads.posting import launch_open

NO_RETH = (0, 0, 0)


def start(cluster: Cluster, model: Poisson) -> None:
    """Connect every pair and start two coroutines a queue pair, with random numbers of its own."""
    purpose, numbers = cluster.numbers(model.kind), counting()
    for source, destination in model.pairs:
        for _ in range(model.qps):
            channel = cluster.connect(
                source,
                destination,
                model.size_bytes,
                op=model.op,
                depth=model.count,
                priority=model.priority,
                kind=model.kind,
                setup=model.setup,
            )
            context, qp = cluster.contexts[source], channel.qp
            there = cluster.contexts[destination].address
            headers, _ = context.envelopes(context.address, there, qp.qp_num, qp.qp_num, model.priority)
            wire_bytes = message_wire_bytes(headers, model.size_bytes, context.config.path_mtu_bytes)
            gap_ps = mean_gap_ps(wire_bytes * model.qps, context.nic.port.rate_bps, model.load)
            times = arrivals(cluster.seed, f"{purpose}/{next(numbers)}", model.count, gap_ps)
            launch_open(cluster, channel, times_ps=times, count=model.count, start_ps=model.start_ps)


def arrivals(seed: int, purpose: str, count: int, mean_gap_ps: Fraction | int) -> Iterator[int]:
    """`count` times in picoseconds from 0, exponential gaps of that mean between them, each a whole number."""
    draw, rate = stream(seed, purpose).expovariate, float(1 / Fraction(mean_gap_ps))
    when_ps = 0
    for _ in range(count):
        when_ps += round(draw(rate))
        yield when_ps


def mean_gap_ps(wire_bytes: int, rate_bps: int, load: Fraction) -> Fraction:
    """How far apart messages of so many bytes on the wire are, for them to take that share of a rate."""
    return wire_bytes * 8 * SECOND / (rate_bps * load)


def message_wire_bytes(envelope: Envelope, size_bytes: int, path_mtu_bytes: int) -> int:
    """What a WRITE of `size_bytes` takes on the wire, headers and gaps of all its frames included."""
    last = max(0, -(-size_bytes // path_mtu_bytes) - 1)
    rest = bytes(size_bytes - last * path_mtu_bytes)
    if not last:
        return Frame(envelope, opcodes.WRITE_ONLY, 0, rest, reth=NO_RETH).wire_bytes
    full = bytes(path_mtu_bytes)
    first = Frame(envelope, opcodes.WRITE_FIRST, 0, full, reth=NO_RETH).wire_bytes
    middle = Frame(envelope, opcodes.WRITE_MIDDLE, 0, full).wire_bytes
    return first + (last - 1) * middle + Frame(envelope, opcodes.WRITE_LAST, 0, rest).wire_bytes
