"""The requester's side alone: what it sends, and what it does with completions, in whatever order they come."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.engine import Engine
from emu.errors import InvariantBroken, ScenarioError
from emu.host.dma import DmaEngine
from emu.host.link import FarEnd
from emu.pcie.framing import completion
from emu.pcie.split import completion_pieces
from emu.pcie.tlp import Tlp, TlpKind
from tests.host.bench import BASE, DEVICE, DRAM, Sink, link

BYTES = bytes(range(256)) * 32


class Bench:
    """A DMA engine whose requests are noted, and answered by hand."""

    def __init__(self, *, tags: int = 4, mps: int = 128, mrrs: int = 256) -> None:
        self.engine = Engine()
        up, self.sink = link(self.engine), Sink(self.engine)
        up.join(FarEnd(self.sink.receive))
        self.dma = DmaEngine(up, DEVICE, mps_bytes=mps, mrrs_bytes=mrrs, tags=tags)

    def sent(self) -> list[Tlp]:
        """Since the last time."""
        self.engine.run()
        arrived, self.sink.arrived = self.sink.arrived, []
        return [tlp for _, tlp in arrived]

    def answer(self, read: Tlp) -> None:
        """With what is held at its address: BYTES from BASE on."""
        for address, length in completion_pieces(read.address, read.length, 128, 64):
            data = BYTES[address - BASE : address - BASE + length]
            self.dma.complete(completion(read, address - read.address, data, DRAM))


def test_a_write_is_split_and_each_part_has_the_note() -> None:
    bench = Bench()
    bench.dma.write(BASE + 4000, memoryview(BYTES)[:300], note="mine")
    bench.dma.write(BASE, b"one")
    sent = bench.sent()
    assert [(tlp.address - BASE, tlp.length) for tlp in sent] == [(4000, 96), (4096, 128), (4224, 76), (0, 3)]
    assert b"".join(tlp.payload for tlp in sent) == BYTES[:300] + b"one"
    assert [tlp.note for tlp in sent] == ["mine"] * 3 + [None]
    assert {(tlp.kind, tlp.requester) for tlp in sent} == {(TlpKind.MWR, DEVICE)}
    assert bench.dma.writes == 4


def test_a_read_is_whole_request_by_request() -> None:
    bench, into, here = Bench(), bytearray(1000), list[int]()
    bench.dma.read(BASE + 4000, 600, memoryview(into)[100:], here.append, note="mine")
    sent = bench.sent()
    assert [(tlp.address - BASE, tlp.length, tlp.note) for tlp in sent] == [
        (4000, 96, "mine"),
        (4096, 256, "mine"),
        (4352, 248, "mine"),
    ]
    assert bench.dma.outstanding == 3
    for read in sent:
        bench.answer(read)
    assert here == [96, 352, 600]
    assert into == bytes(100) + BYTES[4000:4600] + bytes(300)
    assert (bench.dma.reads, bench.dma.received, bench.dma.max_outstanding, bench.dma.outstanding) == (3, 5, 3, 0)


@pytest.mark.parametrize("length", [1, 255, 256, 257, 511, 512, 513])
def test_the_last_byte_is_asked_for(length: int) -> None:
    bench, into, here = Bench(), bytearray(length), list[int]()
    bench.dma.read(BASE, length, into, here.append)
    for read in bench.sent():
        bench.answer(read)
    assert here == [count for count in (256, 512) if count < length] + [length]
    assert into == BYTES[:length]


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_progress_has_no_gaps_whatever_is_whole_first(order: tuple[int, ...]) -> None:
    bench, into, here = Bench(), bytearray(1024), list[int]()
    bench.dma.read(BASE, 1024, into, here.append)
    sent = bench.sent()
    whole, expected = set[int](), 0
    for number in order:
        bench.answer(sent[number])
        whole.add(number)
        expected = next(count for count in range(5) if count not in whole)
        assert len(here) == expected
    assert here == [256, 512, 768, 1024]
    assert into == BYTES[:1024]


def test_reads_without_a_tag_wait_in_order() -> None:
    bench, here = Bench(tags=2), list[tuple[str, int]]()
    into = {name: bytearray(512) for name in "abc"}

    def note(name: str) -> Callable[[int], None]:
        return lambda count: here.append((name, count))

    for place, name in enumerate(into):
        bench.dma.read(BASE + 512 * place, 512, into[name], note(name))
    bench.dma.write(BASE, b"does not wait")
    served = []
    while sent := bench.sent():
        assert bench.dma.outstanding <= 2
        served += [tlp.address - BASE for tlp in sent if tlp.kind is TlpKind.MRD]
        for read in sent:
            if read.kind is TlpKind.MRD:
                bench.answer(read)
    assert served == list(range(0, 1536, 256))
    assert here == [(name, count) for name in "abc" for count in (256, 512)]
    assert b"".join(into.values()) == BYTES[:1536]
    assert bench.dma.max_outstanding == 2


def test_a_reads_progress_may_ask_for_more() -> None:
    bench, into, here = Bench(tags=1), bytearray(64), list[int]()

    def again(count: int) -> None:
        here.append(count)
        if len(here) < 5:
            bench.dma.read(BASE, 64, into, again)

    bench.dma.read(BASE, 64, into, again)
    while sent := bench.sent():
        bench.answer(sent[0])
    assert here == [64] * 5


def test_a_read_of_no_bytes_flushes() -> None:
    bench, here = Bench(), list[int]()
    bench.dma.read(BASE, 0, bytearray(), here.append)
    (read,) = bench.sent()
    bench.dma.complete(completion(read, 0, b"", DRAM))
    assert (here, bench.dma.outstanding) == ([0], 0)


def test_completions_of_no_read_of_ours_are_dropped() -> None:
    bench, into = Bench(), bytearray(64)
    bench.dma.read(BASE, 64, into, lambda _: pytest.fail("whole"))
    (read,) = bench.sent()
    for field, value in (("tag", read.tag + 1), ("tag", 1023), ("requester", DEVICE + 1), ("address", BASE + 1)):
        stray = completion(read, 0, b"\1" * 64, DRAM)
        setattr(stray, field, value)
        bench.dma.complete(stray)
    assert (bench.dma.unexpected, bench.dma.outstanding) == (4, 1)
    assert into == bytes(64)


def test_what_cannot_be_is_refused() -> None:
    bench = Bench()
    with pytest.raises(InvariantBroken):
        bench.dma.write(BASE, b"")
    with pytest.raises(InvariantBroken):
        bench.dma.read(BASE, 65, bytearray(64), print)
    for sizes in ({"mps": 64}, {"mrrs": 8192}, {"tags": 0}, {"tags": 1025}):
        with pytest.raises(ScenarioError):
            Bench(**sizes)


@given(st.lists(st.tuples(st.integers(0, 4000), st.integers(1, 3000)), min_size=1, max_size=6), st.randoms())
def test_completions_of_different_reads_in_any_order(reads: list[tuple[int, int]], chance: random.Random) -> None:
    bench = Bench(tags=3)
    intos = [bytearray(length) for _, length in reads]
    here: list[list[int]] = [[] for _ in reads]
    for (offset, length), into, seen in zip(reads, intos, here, strict=True):
        bench.dma.read(BASE + offset, length, into, seen.append)
    waiting = bench.sent()
    while waiting:
        bench.answer(waiting.pop(chance.randrange(len(waiting))))
        waiting += bench.sent()
    for (offset, length), into, seen in zip(reads, intos, here, strict=True):
        assert into == BYTES[offset : offset + length]
        assert seen == sorted(set(seen))
        assert seen[-1] == length
