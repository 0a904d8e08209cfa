"""Where a switch or root complex sends what it gets."""

from __future__ import annotations

import pytest

from emu.engine import Engine
from emu.errors import ScenarioError
from emu.host.forwarder import Forwarder
from emu.host.link import FarEnd, PcieLink
from emu.pcie.framing import completion
from tests.host.bench import BASE, DRAM, Sink, link, read_of, write_of

PAGE = 4096


def egress(engine: Engine, name: str) -> tuple[PcieLink, Sink]:
    line, sink = link(engine, name), Sink(engine)
    line.join(FarEnd(sink.receive))
    return line, sink


def test_requests_go_by_address_and_completions_by_requester() -> None:
    engine = Engine()
    (to_dram, dram), (to_gpu, gpu), (to_nic, nic) = (egress(engine, name) for name in ("dram", "gpu", "nic"))
    root = Forwarder("root", 0)
    root.claim(BASE + 4 * PAGE, PAGE, to_gpu)
    root.claim(BASE, 2 * PAGE, to_dram)
    root.claim_requester(0x0100, to_nic)
    last_of_dram, read = write_of(64, BASE + 2 * PAGE - 64), read_of(64, BASE + 4 * PAGE)
    answer = completion(read, 0, bytes(64), DRAM)
    for tlp in (last_of_dram, read, answer):
        root.receive(tlp)
    engine.run()
    assert [[tlp for _, tlp in sink.arrived] for sink in (dram, gpu, nic)] == [[last_of_dram], [read], [answer]]
    assert (root.received, root.unsupported) == (3, 0)


@pytest.mark.parametrize("address", [0, BASE - 1, BASE + PAGE, BASE + 3 * PAGE])
def test_what_nobody_claims_is_dropped_and_counted(address: int) -> None:
    engine = Engine()
    line, sink = egress(engine, "dram")
    root = Forwarder("root", 0)
    root.claim(BASE, PAGE, line)
    root.claim(BASE + 2 * PAGE, PAGE, line)
    root.receive(write_of(1, address))
    root.receive(completion(read_of(4, address), 0, bytes(4), DRAM))
    engine.run()
    assert (sink.arrived, root.received, root.unsupported) == ([], 2, 2)


def test_a_switch_sends_up_what_nobody_below_claims() -> None:
    engine = Engine()
    (upward, above), (down, below) = egress(engine, "up"), egress(engine, "down")
    switch = Forwarder("switch", 0, up=upward)
    switch.claim(BASE, PAGE, down)
    switch.receive(write_of(64, BASE))  # from another below it: peer to peer
    switch.receive(write_of(64, BASE + PAGE))
    switch.receive(completion(read_of(4), 0, bytes(4), DRAM))
    engine.run()
    assert (len(below.arrived), len(above.arrived), switch.unsupported) == (1, 2, 0)


@pytest.mark.parametrize(
    ("start", "length"), [(0, 2 * PAGE), (PAGE, PAGE), (0, 4 * PAGE), (2 * PAGE, PAGE), (0, 0), (8, PAGE), (0, 100)]
)
def test_claims_are_whole_pages_that_do_not_overlap(start: int, length: int) -> None:
    line, _ = egress(Engine(), "dram")
    root = Forwarder("root", 0)
    root.claim(BASE + PAGE, 2 * PAGE, line)
    with pytest.raises(ScenarioError):
        root.claim(BASE + start, length, line)
    root.claim(BASE, PAGE, line)
    root.claim(BASE + 3 * PAGE, PAGE, line)


def test_a_requester_is_claimed_once() -> None:
    line, _ = egress(Engine(), "nic")
    root = Forwarder("root", 0)
    root.claim_requester(0x0100, line)
    with pytest.raises(ScenarioError):
        root.claim_requester(0x0100, line)
