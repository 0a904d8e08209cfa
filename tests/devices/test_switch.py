"""A switch: which egress, when, and what it refuses."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from emu.addresses import address_of
from emu.devices.egress import EgressPort
from emu.devices.port import FarEnd
from emu.devices.switch import Switch
from emu.engine import Engine
from emu.framing.roce import RoceFraming
from emu.parts import unpack
from emu.taps import Taps
from tests.devices.bench import GBPS, Sink, data_frame, message


def switch(engine: Engine, rates_gbps: tuple[int, ...], name: str = "s0", **options: Any) -> tuple[Switch, list[Sink]]:
    """A switch with ports 1, 2, ... of those rates, each joined to a sink at no distance."""
    options.setdefault("switching", "cut_through")
    device = Switch(engine, name, hop_latency_ps=0, **options)
    sinks = []
    for number, rate in enumerate(rates_gbps, start=1):
        sink = Sink(engine)
        port = EgressPort(engine, f"{name}-{number}", rate * GBPS, Taps())
        port.join(FarEnd(sink.deliver, False, 0, 0), 0, None)
        device.ports[number] = port
        sinks.append(sink)
    return device, sinks


def test_the_table_decides_the_egress() -> None:
    engine = Engine()
    device, (first, second) = switch(engine, (400, 400))
    device.install({2: (1,), 3: (2,)})
    device.receive(data_frame(message(), to=2))
    device.receive(data_frame(message(), to=1))
    engine.run()
    assert (len(first.arrived), len(second.arrived)) == (1, 1)


def test_an_unknown_destination_is_dropped_and_counted() -> None:
    engine = Engine()
    device, _ = switch(engine, (400,))
    device.install({})
    frame = data_frame(message())
    device.receive(frame)
    assert device.dropped == {"unknown_destination": 1}
    assert device.dropped_bytes == frame.wire_bytes


@pytest.mark.parametrize(("switching", "passes"), [("cut_through", 1), ("store_and_forward", 0)])
def test_a_bad_frame_is_passed_on_only_by_cut_through(switching: str, passes: int) -> None:
    engine = Engine()
    device, (sink,) = switch(engine, (400,), switching=switching)
    device.install({2: (1,)})
    frame = data_frame(message(), to=1)
    frame.bad = True
    device.receive(frame)
    engine.run()
    assert len(sink.arrived) == passes
    assert sum(device.dropped.values()) == 1 - passes


@pytest.mark.parametrize(
    ("ingress_gbps", "slow_to_fast", "start_bytes_of_ingress"),
    [
        (100, "cut_through", 0.75),
        (100, "store_and_forward", 1.0),
        (400, "store_and_forward", 0),
        (800, "cut_through", 0),
    ],
)
def test_a_frame_from_a_slower_link_starts_so_that_it_never_runs_dry(
    ingress_gbps: int, slow_to_fast: str, start_bytes_of_ingress: float
) -> None:
    engine = Engine()
    device, (sink,) = switch(engine, (400,), slow_to_fast=slow_to_fast)
    device.install({2: (1,)})
    device._mixed_rates = True  # the frame comes from a link that is not there
    frame = data_frame(message())
    frame.ser_ps = frame.wire_bytes * 8000 // ingress_gbps
    ingress_ps = frame.ser_ps
    device.receive(frame)
    engine.run()
    assert sink.arrived[0][0] == ingress_ps * start_bytes_of_ingress
    assert sum(unpack(frame.parts)) == sink.arrived[0][0]


def test_a_flow_keeps_to_one_way_and_flows_spread_over_all() -> None:
    device, _ = switch(Engine(), (400,) * 4)
    device.install({1: (1, 2, 3, 4)})
    framing = RoceFraming()
    hosts = [address_of(f"h{number}", number) for number in range(2)]
    chosen: Counter[str] = Counter()
    for qp in range(4000):
        flow = framing.envelope(*hosts, source_qp=0x11 + qp, destination_qp=0x11 + qp)
        ways = {device.choose(1, flow.path_hash) for _ in range(3)}
        assert len(ways) == 1
        port = ways.pop()
        assert port is not None
        chosen[port.name] += 1
    assert min(chosen.values()) > 0.8 * 1000
    assert len(chosen) == 4


def test_two_switches_do_not_choose_alike() -> None:
    """Or the second stage would send all that the first one gave it the same way."""
    first, _ = switch(Engine(), (400,) * 2, "leaf0")
    second, _ = switch(Engine(), (400,) * 2, "spine0")
    hashes = [number * 2_654_435_761 % 2**32 for number in range(4000)]
    for device in (first, second):
        device.install({1: (1, 2)})
    of_first = [value for value in hashes if first.choose(1, value) is first.ports[1]]
    share = sum(second.choose(1, value) is second.ports[1] for value in of_first) / len(of_first)
    assert 0.4 < share < 0.6


def test_flows_may_be_dealt_out_in_turn_and_then_keep_their_way() -> None:
    engine = Engine()
    device, _ = switch(engine, (100, 100, 100), deals_from=1)
    device.install({1: (1, 2, 3), 2: (1, 2, 3)})
    chosen = [device.choose(1, flow) for flow in (7, 8, 9, 10, 7, 9)]
    ports = device.ports
    assert chosen == [ports[2], ports[3], ports[1], ports[2], ports[2], ports[1]]
    assert device.choose(2, 7) is ports[2]  # each destination has turns of its own
