"""Whatever is lost, repeated or overtaken: each message is done once and in order, or the queue pair gives up."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.transport.wc import WcStatus
from emu.transport.work import ATOMICS, CONSUMES_RECEIVE, WITH_IMMEDIATE, WRITES, SendFlags, WROpcode
from tests.transport.channel import Badness, Channel
from tests.transport.machines import Machines

MTU, ROOM = 256, 1100  # bytes; a message has at most 5 packets
WORDS, WORD = 2, 2**64
KINDS = [kind for kind in WROpcode if kind is not WROpcode.SEND_WITH_INV]
MESSAGES = 12
READ_AT = ROOM * MESSAGES  # where READs read, and nothing is written
WORDS_AT = 8 * ((READ_AT + 2 * ROOM) // 8)


class Operation(NamedTuple):
    """One work request to post."""

    kind: WROpcode
    size: int
    fence: bool
    word: int  # which of the words an atomic acts on
    operand: int


def operations() -> st.SearchStrategy[list[Operation]]:
    sizes = st.one_of(st.sampled_from([0, 1, MTU - 1, MTU, MTU + 1, 2 * MTU]), st.integers(0, ROOM))
    operation = st.builds(
        Operation, st.sampled_from(KINDS), sizes, st.booleans(), st.integers(0, WORDS - 1), st.integers(0, 3)
    )
    return st.lists(operation, min_size=1, max_size=MESSAGES)


class Exchange:
    """Operations of all kinds over a channel, and what must have come of them."""

    def __init__(self, works: list[Operation], badness: Badness, seed: int, **settings: Any) -> None:
        self.works, self.dice = works, Random(seed)
        self.machines = Machines(mtu=MTU, min_rnr_timer=1, **settings)
        self.retry_cnt = self.machines.requester._config.retry_cnt
        self.before = bytes(self.machines.target.buffer)
        self.data = [self.dice.randbytes(work.size) for work in works]
        receives = sum(work.kind in CONSUMES_RECEIVE for work in works)
        self.channel = Channel(self.machines, badness, self.dice, receives, ROOM)
        for number, work in enumerate(works):
            self._post(number, work)

    def _post(self, number: int, work: Operation) -> None:
        offset = number * ROOM
        if work.kind in ATOMICS:
            offset = WORDS_AT + 8 * work.word
        elif work.kind is WROpcode.RDMA_READ:
            offset = READ_AT + number
        self.machines.post(
            work.kind,
            self.data[number] if work.kind in WRITES or work.kind in CONSUMES_RECEIVE else b"",
            size=work.size,
            offset=offset,
            imm_data=number,
            flags=SendFlags.FENCE if work.fence else SendFlags.NONE,
            compare_add=work.operand,
            swap=work.operand + 1,
        )

    def limit(self) -> int:
        """So many frames and waits at most: each packet's progress gives back all tries, each try sends all again."""
        packets = sum(wqe.packets for wqe in self.machines.requester._wqes)
        rounds = (packets + 1) * (self.retry_cnt + 1) + 2 * len(self.works) * (packets + 1)
        return rounds * (packets + 1)

    def run(self) -> list[WcStatus]:
        """The statuses of all work requests; everything that must hold is held against what happened."""
        self.channel.run(self.limit())
        done, total = self.machines.done, len(self.works)
        assert [wqe.wr_id for wqe, _ in done] == list(range(total))
        statuses = [status for _, status in done]
        good = statuses.count(WcStatus.SUCCESS)
        assert statuses[:good] == [WcStatus.SUCCESS] * good
        if good < total:
            assert statuses[good] is WcStatus.RETRY_EXC_ERR
            assert statuses[good + 1 :] == [WcStatus.WR_FLUSH_ERR] * (total - good - 1)
        executed = self.machines.responder._msn
        assert good <= executed <= total
        self._check_memory(executed)
        self._check_words(good, executed)
        self._check_receives(executed)
        for number, work in enumerate(self.works[:good]):
            if work.kind is WROpcode.RDMA_READ:
                start = READ_AT + number
                assert self.machines.sinks[number] == self.before[start : start + work.size]
        return statuses

    def _check_memory(self, executed: int) -> None:
        """Each WRITE is whole; nothing else has changed. Of the one that was cut off any part may be there."""
        memory = self.machines.target.buffer
        for number, work in enumerate(self.works):
            start = number * ROOM
            held, was = memory[start : start + ROOM], self.before[start : start + ROOM]
            if work.kind in WRITES and number < executed:
                assert held == self.data[number] + was[work.size :]
            elif work.kind not in WRITES or number > executed:
                assert held == was
        assert memory[READ_AT:WORDS_AT] == self.before[READ_AT:WORDS_AT]

    def _check_words(self, good: int, executed: int) -> None:
        """Each atomic acted once, in order, and brought back what was there before."""
        words = [int.from_bytes(self._word(self.before, number), "little") for number in range(WORDS)]
        for number, work in enumerate(self.works[:executed]):
            if work.kind not in ATOMICS:
                continue
            original = words[work.word]
            if number < good:
                assert int.from_bytes(self.machines.sinks[number], "little") == original
            if work.kind is WROpcode.ATOMIC_FETCH_AND_ADD:
                words[work.word] = (original + work.operand) % WORD
            elif original == work.operand:
                words[work.word] = work.operand + 1
        held = self.machines.target.buffer
        assert [int.from_bytes(self._word(held, number), "little") for number in range(WORDS)] == words

    @staticmethod
    def _word(memory: bytes | bytearray, number: int) -> bytes | bytearray:
        return memory[WORDS_AT + 8 * number : WORDS_AT + 8 * number + 8]

    def _check_receives(self, executed: int) -> None:
        """Each message that takes a receive took one, in order, and says what it should."""
        taken = [(number, work) for number, work in enumerate(self.works[:executed]) if work.kind in CONSUMES_RECEIVE]
        received = self.machines.received
        assert [each.wqe.wr_id for each in received] == list(range(len(taken)))
        for each, (number, work) in zip(received, taken, strict=True):
            assert (each.status, each.byte_len) == (WcStatus.SUCCESS, work.size)
            assert each.imm_data == (number if work.kind in WITH_IMMEDIATE else None)
            if work.kind not in WRITES:
                assert self.machines.buffers[each.wqe.wr_id][: work.size] == self.data[number]


def machine_settings() -> st.SearchStrategy[dict[str, Any]]:
    """Windows, depths, timers shorter and longer than the way back and forth, numbers before a wrap."""
    return st.fixed_dictionaries(
        {
            "window_packets": st.sampled_from([1, 3, 16]),
            "ack_every_packets": st.just(1) | st.just(64),
            "depth": st.sampled_from([1, 2, 4]),
            "ack_timeout_code": st.sampled_from([1, 4, 6]),
            "first_psn": st.sampled_from([0, 0xFFFFFA]),
            "credits": st.booleans(),
            "selective": st.booleans(),
        }
    )


@settings(max_examples=300)
@given(
    operations(),
    machine_settings(),
    st.builds(Badness, st.sampled_from([0, 0.05, 0.3, 0.7]), st.sampled_from([0, 0.2]), st.sampled_from([0, 0.1, 0.5])),
    st.integers(0, 7),
    st.integers(0, 2**32),
)
def test_each_message_is_done_once_or_the_queue_pair_gives_up(
    works: list[Operation], machines: dict[str, Any], badness: Badness, retry_cnt: int, seed: int
) -> None:
    machines["dest_depth"] = machines["depth"]
    Exchange(works, badness, seed, retry_cnt=retry_cnt, **machines).run()


@settings(max_examples=200)
@given(
    operations(),
    machine_settings(),
    st.builds(Badness, st.sampled_from([0, 0.01, 0.05]), st.sampled_from([0, 0.05]), st.sampled_from([0, 0.05])),
    st.integers(0, 2**32),
)
def test_over_a_fair_way_every_message_is_done(
    works: list[Operation], machines: dict[str, Any], badness: Badness, seed: int
) -> None:
    machines |= {"dest_depth": machines["depth"], "ack_timeout_code": 6}
    statuses = Exchange(works, badness, seed, retry_cnt=7, **machines).run()
    assert set(statuses) == {WcStatus.SUCCESS}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("retry_cnt", [0, 3, 7])
def test_when_all_is_lost_it_ends_at_the_computed_time(kind: WROpcode, retry_cnt: int) -> None:
    works = [Operation(kind, 700, fence=False, word=0, operand=1)] * 3
    exchange = Exchange(works, Badness(1, 0, 0), 1, retry_cnt=retry_cnt, ack_timeout_code=14)
    assert exchange.run() == [WcStatus.RETRY_EXC_ERR, WcStatus.WR_FLUSH_ERR, WcStatus.WR_FLUSH_ERR]
    wait_ps = exchange.machines.requester._timeout_ps
    assert wait_ps * (retry_cnt + 1) <= exchange.channel.now_ps <= (wait_ps + 10**9) * (retry_cnt + 1)
