"""Wall time of the all-to-all over veth, against a bare loop that sends and receives the same frames there."""

from __future__ import annotations

import time
from socket import socket
from statistics import median

from emu.frame import Frame
from emu.lab.lab import Lab
from emu.run.assembly import Assembly, topology_of
from emu.wire.veth import READ_BUFFER, VethWire
from tests.bench.figure import Figure
from tests.bench.traffic import all_to_all

LIMIT = 3.0
ROUNDS = 7

Crossing = tuple[socket, socket, bytes]


def measure() -> list[Figure]:
    """The quickest run against the quickest bare loop of some rounds: what else runs here can only add time."""
    topology = topology_of(all_to_all())
    with Lab(topology) as lab:
        crossings: list[Crossing] = []
        _run(lab, crossings)
        runs_s, bares_s = zip(*((_run(lab), _bare(crossings)) for _ in range(ROUNDS)), strict=True)
    run_s, bare_s = min(runs_s), min(bares_s)
    hop_us = 1e6 * run_s / len(crossings), 1e6 * bare_s / len(crossings)
    medians = f"medians {median(runs_s):.3f} and {median(bares_s):.3f} s"
    return [
        Figure(
            "veth wall time over a bare send and receive loop",
            run_s / bare_s,
            LIMIT,
            f"{run_s:.3f} s against {bare_s:.3f} s for {len(crossings)} frames, best of {ROUNDS} ({medians}):"
            f" {hop_us[0]:.1f} and {hop_us[1]:.1f} us a frame-hop",
        )
    ]


def _run(lab: Lab, crossings: list[Crossing] | None = None) -> float:
    """Seconds that one all-to-all takes; with `crossings`, note what crossed which sockets instead."""
    assembly = Assembly(all_to_all())
    assembly.join(lab.wires)
    sent: list[tuple[str, Frame]] = []
    if crossings is not None:
        assembly.taps.frame_sent = lambda _, name, frame: sent.append((name, frame))
    began = time.perf_counter()
    assembly.engine.run()
    took = time.perf_counter() - began
    if crossings is not None:
        ends = {name: port.wire for name, (_, port) in assembly.fabric.links.items()}
        for name, frame in sent:
            wire = ends[name]
            assert isinstance(wire, VethWire)
            assert frame.data is not None
            crossings.append((wire.sender, wire.receiver, frame.data))
    return took


def _bare(crossings: list[Crossing]) -> float:
    began = time.perf_counter()
    for sender, receiver, data in crossings:
        sender.send(data)
        receiver.recv_into(READ_BUFFER)
    return time.perf_counter() - began
