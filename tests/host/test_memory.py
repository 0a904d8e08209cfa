"""A memory takes writes, tells watchers, and answers reads."""

from __future__ import annotations

import pytest

from emu.engine import Engine
from emu.errors import ScenarioError
from emu.host.address_space import AddressSpace
from emu.host.link import FarEnd
from emu.host.memory import Memory
from emu.pcie.framing import completion, memory_write
from emu.pcie.tlp import Tlp
from tests.host.bench import BASE, DEVICE, DRAM, Note, Sink, link, read_of, write_of


class Bench:
    """A memory of 8 KB, its answers noted."""

    def __init__(self, *, mps: int = 256, rcb: int = 64) -> None:
        self.engine = Engine()
        self.space = AddressSpace(BASE, 8192)
        self.space.allocate(8192)
        egress, self.sink = link(self.engine, "dram-root"), Sink(self.engine)
        egress.join(FarEnd(self.sink.receive))
        self.memory = Memory("dram", self.space, egress, completer=DRAM, mps_bytes=mps, rcb_bytes=rcb, read_ps=9)

    def answers(self, read: Tlp) -> list[Tlp]:
        self.memory.receive(read)
        self.engine.run()
        return [tlp for _, tlp in self.sink.arrived]


def test_a_write_is_there_before_its_watcher_is_told() -> None:
    bench, seen = Bench(), []
    bench.memory.watch(BASE + 8, lambda tlp: seen.append((tlp.address, bench.space.read(BASE + 8, 4))))
    for address in (BASE, BASE + 4, BASE + 12, BASE + 8):  # only the last begins there
        bench.memory.receive(memory_write(address, b"news", DEVICE))
    assert seen == [(BASE + 8, b"news")]
    bench.memory.unwatch(BASE + 8)
    bench.memory.receive(memory_write(BASE + 8, b"more", DEVICE))
    assert len(seen) == 1
    assert (bench.memory.received, bench.memory.writes, bench.memory.reads) == (5, 5, 0)


def test_a_writes_note_is_told_where_its_bytes_are_there() -> None:
    bench, note = Bench(), Note()
    there, elsewhere = (memory_write(BASE + at, b"news", DEVICE, note=note) for at in (8188, 8192))
    for tlp in (there, elsewhere):
        bench.memory.receive(tlp)
    assert note.arrivals == [there]


def test_an_address_has_one_watcher() -> None:
    bench = Bench()
    bench.memory.watch(BASE, lambda _: None)
    with pytest.raises(ScenarioError):
        bench.memory.watch(BASE, lambda _: None)
    bench.memory.unwatch(BASE)
    bench.memory.watch(BASE, lambda _: None)


def test_a_read_is_answered_with_what_is_held_then() -> None:
    bench = Bench()
    held = bytes(range(1, 256)) * 2
    bench.space.write(BASE + 96, held)
    read = read_of(510, BASE + 96, tag=77)
    answers = bench.answers(read)
    bench.space.write(BASE + 96, bytes(510))
    assert [(tlp.address - BASE, tlp.length, tlp.remaining) for tlp in answers] == [
        (96, 224, 510),  # up to 320, the last multiple of 64 within 256 bytes
        (320, 256, 286),
        (576, 30, 30),
    ]
    assert b"".join(tlp.payload for tlp in answers) == held
    assert {(tlp.tag, tlp.requester, tlp.completer) for tlp in answers} == {(77, DEVICE, DRAM)}


@pytest.mark.parametrize("length", [1, 64, 256])
def test_a_short_read_has_one_answer(length: int) -> None:
    answers = Bench().answers(read_of(length, BASE + 32))
    assert [(tlp.length, tlp.remaining) for tlp in answers] == [(length, length)]


def test_a_payload_is_counted_in_whole_dws() -> None:
    answers = Bench().answers(read_of(256, BASE + 2))  # as one it would be 65 DWs, more than MPS
    assert [tlp.length for tlp in answers] == [254, 2]


def test_a_read_of_no_bytes_is_answered() -> None:
    (answer,) = Bench().answers(read_of(0))
    assert (answer.length, answer.remaining) == (1, 1)


def test_a_read_of_what_is_not_there_brings_all_ones() -> None:
    bench = Bench()
    answers = bench.answers(read_of(300, BASE + 8192))
    assert b"".join(tlp.payload for tlp in answers) == b"\xff" * 300
    assert (bench.memory.reads, bench.memory.unsupported) == (1, 1)


def test_a_write_to_what_is_not_there_is_counted_and_nobody_told() -> None:
    bench = Bench()
    bench.memory.watch(BASE + 8192, lambda _: pytest.fail("told"))
    bench.memory.receive(write_of(64, BASE + 8192))
    bench.memory.receive(completion(read_of(4), 0, bytes(4), DRAM))
    assert (bench.memory.received, bench.memory.unsupported, bench.memory.unexpected) == (2, 1, 1)


def test_the_link_is_told_how_long_a_read_takes() -> None:
    assert Bench().memory.far_end().read_ps == 9


@pytest.mark.parametrize(("mps", "rcb"), [(100, 64), (8192, 64), (256, 32)])
def test_sizes_are_those_of_the_specification(mps: int, rcb: int) -> None:
    with pytest.raises(ScenarioError):
        Bench(mps=mps, rcb=rcb)
