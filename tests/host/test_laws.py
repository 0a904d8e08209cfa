"""Any mix of reads and writes: the right bytes, and nothing gone missing."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from tests.host.bench import BASE, Host

MEMORY_BYTES = 3 * 4096
SIZES = (128, 256, 512, 1024, 4096)


@dataclass
class Operation:
    """One transfer, and what became of it."""

    writes: bool
    offset: int
    length: int
    at_ps: int
    into: bytearray = field(default_factory=bytearray)
    progress: list[int] = field(default_factory=list)


@st.composite
def operations(draw: st.DrawFn) -> list[Operation]:
    found, at_ps = [], 0
    for _ in range(draw(st.integers(1, 12))):
        offset = draw(st.integers(0, MEMORY_BYTES - 1))
        length = draw(st.integers(1, min(6000, MEMORY_BYTES - offset)))
        at_ps += draw(st.sampled_from([0, 0, 1, 50_000, 400_000]))
        found.append(Operation(draw(st.booleans()), offset, length, at_ps))
    return found


def start(host: Host, number: int, operation: Operation) -> None:
    address = BASE + operation.offset
    if operation.writes:
        host.dma.write(address, bytes([number + 1]) * operation.length)
    else:
        operation.into = bytearray(operation.length)
        host.dma.read(address, operation.length, operation.into, operation.progress.append)


def may_be_read(done: list[Operation], number: int, at: int) -> set[int]:
    """The byte that the last write before left, or one that a later write brings: writes may pass reads."""
    values = [n + 1 if op.writes and op.offset <= at < op.offset + op.length else -1 for n, op in enumerate(done)]
    before = [value for value in values[:number] if value >= 0]
    return {before[-1] if before else 0, *values[number:]}


@given(
    operations(),
    st.sampled_from(SIZES),
    st.sampled_from(SIZES),
    st.sampled_from([64, 128]),
    st.sampled_from([1, 2, 7, 256]),
    st.sampled_from([0, 210_000]),
    st.integers(0, 3_000_000),
)
def test_any_mix_delivers_the_right_bytes(
    done: list[Operation], mps: int, mrrs: int, rcb: int, tags: int, read_ps: int, look_ps: int
) -> None:
    host = Host(mps=mps, mrrs=mrrs, rcb=rcb, tags=tags, read_ps=read_ps)
    memory = bytearray(MEMORY_BYTES)
    host.space.map(BASE, memory)
    for number, operation in enumerate(done):
        host.engine.at(operation.at_ps, lambda pair: start(host, *pair), (number, operation))
    host.engine.run(look_ps)
    host.check_books()
    host.engine.run()
    host.check_books()
    expected = bytearray(MEMORY_BYTES)
    for number, operation in enumerate(done):
        end = operation.offset + operation.length
        if operation.writes:
            expected[operation.offset : end] = bytes([number + 1]) * operation.length
            continue
        assert operation.progress == sorted(set(operation.progress))
        assert operation.progress[-1] == operation.length
        assert all(
            value in may_be_read(done, number, operation.offset + place) for place, value in enumerate(operation.into)
        )
    assert memory == expected
    assert host.engine.pending(object) == []
    assert host.dma.outstanding == host.dma.unexpected == host.memory.unsupported == host.root.unsupported == 0
    assert host.dma.max_outstanding <= tags
    assert host.engine.events_run == len(done) + sum(link.tlps for link in host.links)  # no other events
