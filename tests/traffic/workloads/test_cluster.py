"""Workloads' buffers: noise from the seed, checked at the end, bounded by the machine."""

from __future__ import annotations

from typing import Any

import pytest

from emu.errors import InvariantBroken, MachineError
from emu.frame import Frame
from emu.run import Options, run
from emu.run.assembly import Assembly
from emu.scenario.load import parse
from emu.scenario.traffic import TRAFFIC
from emu.transport.memory import Access
from emu.transport.responder import Responder
from traffic.workloads import BY_KIND
from traffic.workloads.channel import SHIFT_BYTES
from traffic.workloads.cluster import TILE_BYTES, Cluster

TEXT = """
name: two
fabric: {profile: native, topology: {kind: line, switches: 1}}
traffic: [{kind: write, pairs: [[h0, h1]], size: 1B}]
"""


def cluster(seed: int = 1, **more: Any) -> Cluster:
    """Two hosts in memory, nothing started."""
    assembly = Assembly(parse(TEXT, "two.yaml", ()))
    assembly.fabric.join(None)
    return Cluster(assembly.engine, assembly.fabric.contexts, seed, **more)


def test_every_kind_of_traffic_has_a_workload() -> None:
    assert set(BY_KIND) == set(TRAFFIC)


def test_source_bytes_come_from_the_seed_and_differ_between_hosts() -> None:
    one, same, other = cluster(1), cluster(1), cluster(2)
    length = 3 * TILE_BYTES + 5
    assert one.source("h0", length).buffer == same.source("h0", length).buffer
    assert one.source("h0", length).buffer != other.source("h0", length).buffer
    assert one.source("h0", length).buffer != one.source("h1", length).buffer
    assert one.source("h0", length).length == length
    assert one.source("h0", 10) is one.source("h0", 20)


def test_bytes_that_did_not_arrive_are_noticed() -> None:
    channel = cluster().connect("h0", "h1", 100, depth=2)
    channel.post()
    channel.post()
    for number in range(2):
        with pytest.raises(InvariantBroken, match="not in the target"):
            channel.verify(number)
    start = SHIFT_BYTES
    channel.target.buffer[:] = channel.source.buffer[:100] + channel.source.buffer[start : start + 100]
    channel.verify(0)
    channel.verify(1)


def test_a_place_that_a_later_message_goes_to_is_not_judged() -> None:
    channel = cluster().connect("h0", "h1", 100)
    channel.post()
    channel.posted += 1
    channel.verify(0)


@pytest.mark.parametrize("depth", [1, 4])
def test_a_responder_that_stops_writing_is_caught(depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    write = Responder._execute

    def only_the_first(responder: Responder, frame: Frame, place: int) -> int:
        if responder._msn:
            frame.payload = responder._memory.register(len(frame.payload), Access(0)).view
        return write(responder, frame, place)

    monkeypatch.setattr(Responder, "_execute", only_the_first)
    text = TEXT.replace("size: 1B", f"size: 4KiB, count: 100, depth: {depth}")
    with pytest.raises(InvariantBroken, match="message 1 is not"):
        run(parse(text, "two.yaml", ()), Options(wire="memory"))


def test_more_memory_than_there_is_is_refused_before_it_is_taken() -> None:
    with pytest.raises(MachineError, match="smaller messages"):
        cluster(memory_bytes=1 << 20).connect("h0", "h1", 1 << 20)
