"""Wall time of the all-to-all over veth, against a bare loop that sends and receives the same frames there."""

from __future__ import annotations

import time
from socket import socket
from statistics import median

from emu.frame import Frame
from emu.lab.lab import Lab
from emu.run.assembly import Assembly, topology_of
from emu.run.garbage import sought_seldom
from emu.wire.veth import READ_BUFFER, VethWire
from tests.bench.figure import Figure
from tests.bench.traffic import all_to_all

# Of a run without flow control, as when the bound was set, and of one that also keeps, sends and checks credits.
LIMITS = {"none": 3.0, "credits": 4.0}
ROUNDS = 7

Crossing = tuple[socket, socket, bytes]


def measure() -> list[Figure]:
    """Without flow control and with credits."""
    with Lab(topology_of(all_to_all())) as lab:
        return [_figure(lab, flow_control) for flow_control in LIMITS]


def _figure(lab: Lab, flow_control: str) -> Figure:
    """The quickest run against the quickest bare loop of some rounds: what else runs here can only add time."""
    crossings: list[Crossing] = []
    _run(lab, flow_control, crossings)
    runs_s, bares_s = zip(*((_run(lab, flow_control), _bare(crossings)) for _ in range(ROUNDS)), strict=True)
    run_s, bare_s = min(runs_s), min(bares_s)
    hop_us = 1e6 * run_s / len(crossings), 1e6 * bare_s / len(crossings)
    medians = f"medians {median(runs_s):.3f} and {median(bares_s):.3f} s"
    return Figure(
        f"veth wall time over a bare send and receive loop, flow control {flow_control}",
        run_s / bare_s,
        LIMITS[flow_control],
        f"{run_s:.3f} s against {bare_s:.3f} s for {len(crossings)} frames, best of {ROUNDS} ({medians}):"
        f" {hop_us[0]:.1f} and {hop_us[1]:.1f} us a frame-hop",
    )


def _run(lab: Lab, flow_control: str, crossings: list[Crossing] | None = None) -> float:
    """Seconds that one all-to-all takes; with `crossings`, note what crossed which sockets instead."""
    assembly = Assembly(all_to_all("native", "256KiB", 1, f"fabric.flow_control={flow_control}"))
    sent: list[tuple[str, Frame]] = []
    if crossings is not None:
        assembly.taps.frame_sent = lambda _, name, frame: sent.append((name, frame))
    assembly.join(lab.wires)
    began = time.perf_counter()
    with sought_seldom():
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
