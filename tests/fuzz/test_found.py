"""What attacks have found, each as the fewest frames that show it."""

from __future__ import annotations

import random

from emu import opcodes
from emu.frame import Frame
from emu.transport.answer import AtomicAnswer, ReadAnswer
from emu.transport.memory import Access, MemoryRegion
from emu.verbs import WcStatus, WROpcode
from tests.fuzz.machines import DEPTH, Machines
from tests.verbs.ends import ALL, Ends

MASK = 0xFFFFFF


def machines() -> Machines:
    """Those of a victim, with a receive."""
    found = Machines(random.Random(1), 256)
    found.rc._queue.post(found.receive())
    return found


def invalidating(found: Machines, region: MemoryRegion) -> Frame:
    frame = Frame(found.envelope, opcodes.SEND_ONLY_WITH_INVALIDATE, found.rc._expected & 0xFFFFFF, b"bye")
    frame.extension = (region.rkey,)
    return frame


def atomic(found: Machines, ahead: int = 0) -> Frame:
    frame = Frame(found.envelope, opcodes.FETCH_ADD, found.rc._expected + ahead & 0xFFFFFF)
    frame.extension = (found.store.atomic.addr, found.store.atomic.rkey, 1, 0)
    return frame


def test_a_peer_takes_no_region_away_that_grants_it_nothing() -> None:
    """The program's own posts failed then, for want of an lkey."""
    found = machines()
    found.rc.on_request(invalidating(found, found.store.source))
    assert found.memory.find(found.store.source.lkey, found.store.source.addr, 1, Access(0)) is found.store.source


def test_a_peer_takes_back_what_it_was_granted() -> None:
    found = machines()
    region = found.store.writable
    found.rc.on_request(invalidating(found, region))
    assert found.memory.find(region.rkey, region.addr, 1, Access(0)) is None


def test_duplicate_atomics_are_owed_as_many_answers_as_there_may_be() -> None:
    """Each was owed an answer, however many waited already: memory without a bound while nothing could leave."""
    found = machines()
    assert isinstance(found.rc.on_request(atomic(found)), AtomicAnswer)
    answers = [found.rc.on_request(atomic(found, -1)) for _ in range(10 * DEPTH)]
    assert [answer is not None for answer in answers] == [True] * DEPTH + [False] * 9 * DEPTH
    first = answers[0]
    assert isinstance(first, AtomicAnswer)
    first.next_frame(found.envelope)
    assert found.rc.on_request(atomic(found, -1)) is not None


def test_atomics_beyond_the_depth_are_refused() -> None:
    found = machines()
    answers = [found.rc.on_request(atomic(found)) for _ in range(DEPTH + 1)]
    assert isinstance(answers[-2], AtomicAnswer)
    assert isinstance(answers[-1], tuple)
    assert answers[-1][1] == 0x61
    assert int.from_bytes(found.store.atomic.buffer[:8], "little") != 0


def test_a_write_goes_on_no_longer_than_its_key_is_known() -> None:
    found = Machines(random.Random(1), 256)
    region = found.store.writable
    reth = (region.addr, region.rkey, 600)
    found.rc.on_request(Frame(found.envelope, opcodes.WRITE_FIRST, found.rc._expected & MASK, bytes(256), reth=reth))
    found.memory.invalidate(region.rkey)
    before = bytes(region.buffer)
    more = Frame(found.envelope, opcodes.WRITE_MIDDLE, found.rc._expected & MASK, b"\xee" * 256)
    answer = found.rc.on_request(more)
    assert region.buffer == before
    assert isinstance(answer, tuple)
    assert answer[1] == 0x62


def test_a_read_that_is_owed_reads_no_memory_whose_key_is_gone() -> None:
    found = Machines(random.Random(1), 256)
    region = found.store.readable
    reth = (region.addr, region.rkey, 600)
    ask = Frame(found.envelope, opcodes.READ_REQUEST, found.rc._expected & MASK, b"", reth=reth)
    answer = found.rc.on_request(ask)
    assert isinstance(answer, ReadAnswer)
    found.memory.invalidate(region.rkey)
    frame = answer.next_frame(found.envelope)
    assert (frame.opcode, frame.payload, answer.is_done) == (opcodes.ACKNOWLEDGE, b"", True)


def test_a_key_of_another_protection_domain_is_refused() -> None:
    ends = Ends()
    other = ends.there.context.alloc_pd().reg_mr(64, ALL)
    ends.post(WROpcode.RDMA_WRITE, 8, remote_addr=other.addr, rkey=other.rkey)
    ends.run()
    assert ends.here.cq.poll_cq()[0].status is WcStatus.REM_ACCESS_ERR
    assert not any(other.buffer)
