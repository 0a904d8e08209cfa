"""Every verb by every path: the right bytes in every piece of memory, once and in order, with losses and resets too."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.run import pcie, pcie_books
from emu.scenario.host_path import PATHS
from emu.verbs import AH, SGE, QPType, RecvWR, SendFlags, SendWR, WcStatus, WROpcode
from tests.verbs.ends import QKEY, Ends
from tests.verbs.test_operations import OPERATIONS, SENDS, TAKES_RECEIVE

MTU = 1024
HOSTS = [[f"host.path={path}", f"host.gpu_direct={direct}"] for path, direct in product(PATHS, ("true", "false"))]
IDS = [" ".join(each) for each in HOSTS]
ON_THE_WAY = ["host.queues.nic_handler=cpu", "host.queues.nic_buf_memtype=hostmem"]


def check_books(ends: Ends) -> None:
    pcie_books.check(ends.fabric, ends.engine)
    assert list(pcie.warnings(ends.fabric)) == []
    for host in ends.fabric.hosts.values():
        assert host.tree.nic.owed() == {}
        for queue in host._queues.values():
            assert not queue.in_transport and not queue.line and not queue.unfinished
        assert host.front_end._gather._held_bytes == 0


@pytest.mark.parametrize("host", [*HOSTS, [*HOSTS[0], *ON_THE_WAY]], ids=[*IDS, "by the CPU"])
@pytest.mark.parametrize(("qp_type", "operation"), OPERATIONS)
def test_every_operation_moves_its_bytes(qp_type: QPType, operation: WROpcode, host: list[str]) -> None:
    half = 1 << 15
    for size, inline in ((0, False), (3, False), (100, True), (MTU + 1, False), (5 * MTU, False)):
        ends = Ends(mtu=MTU, qp_type=qp_type, settings=host)
        here, there = ends.here, ends.there
        spare = there.pd.reg_mr(64, there.mr.access)
        there.receive(half, 9001)
        mine, others = bytes(here.mr.buffer), bytes(there.mr.buffer)
        flags = SendFlags.SIGNALED
        if inline and operation is not WROpcode.RDMA_READ:
            flags |= SendFlags.INLINE
        ends.post(operation, size, 5, 11, imm_data=0x8000_0001, invalidate_rkey=spare.rkey, send_flags=flags)
        if flags & SendFlags.INLINE:
            here.mr.buffer[5 : 5 + size] = bytes(size)  # taken at posting
        ends.run()
        assert [each.status for each in here.cq.poll_cq(9)] == [WcStatus.SUCCESS]
        if operation is WROpcode.RDMA_READ:
            assert here.mr.buffer == mine[:5] + others[11 : 11 + size] + mine[5 + size :]
            assert there.mr.buffer == others
        else:
            at = half if operation in SENDS else 11
            assert there.mr.buffer == others[:at] + mine[5 : 5 + size] + others[at + size :]
        received = there.recv_cq.poll_cq(9)
        assert [(each.status, each.byte_len) for each in received] == [(WcStatus.SUCCESS, size)] * (
            operation in TAKES_RECEIVE
        )
        check_books(ends)


@pytest.mark.parametrize("host", HOSTS, ids=IDS)
def test_atomics_act_once_each_and_return_what_was_there(host: list[str]) -> None:
    """Many at a time on one word: none sees what another's way through memory would have made of it."""
    ends = Ends(settings=host)
    count, word = 40, ends.there.mr.buffer
    word[64:72] = (1000).to_bytes(8, "little")
    for number in range(count):
        ends.post(WROpcode.ATOMIC_FETCH_AND_ADD, 8, number * 8, 64, wr_id=number, compare_add=3)
    ends.post(WROpcode.ATOMIC_CMP_AND_SWP, 8, count * 8, 64, compare_add=1000 + 3 * count, swap=7)
    ends.run()
    assert {each.status for each in ends.here.cq.poll_cq(99)} == {WcStatus.SUCCESS}
    found = [int.from_bytes(ends.here.mr.buffer[at * 8 : at * 8 + 8], "little") for at in range(count + 1)]
    assert found == [1000 + 3 * number for number in range(count + 1)]
    assert int.from_bytes(word[64:72], "little") == 7
    check_books(ends)


@pytest.mark.parametrize("host", HOSTS, ids=IDS)
def test_a_datagram_arrives_behind_forty_bytes(host: list[str]) -> None:
    ends = Ends(profile="native", qp_type=QPType.UD, settings=host)
    there, mine = ends.there, bytes(ends.here.mr.buffer)
    there.receive(0, 2048)
    before = bytes(there.mr.buffer)
    to: dict[str, Any] = {"ah": AH(address=there.context.address), "remote_qpn": there.qp.qp_num, "remote_qkey": QKEY}
    ends.post(WROpcode.SEND_WITH_IMM, 100, imm_data=5, **to)
    ends.run()
    assert [each.byte_len for each in there.recv_cq.poll_cq(9)] == [140]
    assert there.mr.buffer == bytes(40) + mine[:100] + before[140:]
    check_books(ends)


def pieces(numbers: list[int], start: int) -> list[tuple[int, int]]:
    """Offsets and lengths that do not touch."""
    found = []
    for length in numbers:
        found.append((start, length))
        start += length + 13
    return found


@settings(max_examples=40)
@given(
    st.sampled_from(HOSTS),
    st.sampled_from([WROpcode.SEND, WROpcode.RDMA_READ, WROpcode.RDMA_WRITE]),
    st.lists(st.sampled_from([0, 1, 7, 64, 1000, 1500]), min_size=1, max_size=8),
    st.lists(st.sampled_from([1, 9, 100, 700, 2000]), min_size=1, max_size=8),
)
def test_pieces_of_memory_get_their_bytes_and_no_others(
    host: list[str], operation: WROpcode, sent: list[int], taken: list[int]
) -> None:
    ends = Ends(mtu=MTU, settings=host)
    here, there = ends.here.mr, ends.there.mr
    out, into = pieces(sent, 100), pieces([*taken, sum(sent)], 30_000)
    there_before, here_before = bytes(there.buffer), bytes(here.buffer)
    ends.there.qp.post_recv(
        RecvWR(wr_id=1, sg_list=tuple(SGE(addr=there.addr + at, length=n, lkey=there.lkey) for at, n in into))
    )
    ends.here.qp.post_send(
        SendWR(
            wr_id=2,
            opcode=operation,
            sg_list=tuple(SGE(addr=here.addr + at, length=n, lkey=here.lkey) for at, n in out),
            remote_addr=there.addr + 30_000,
            rkey=there.rkey,
        )
    )
    ends.run()
    assert [each.status for each in ends.here.cq.poll_cq(9)] == [WcStatus.SUCCESS]
    expected_here, expected_there = bytearray(here_before), bytearray(there_before)
    size = sum(sent)
    gathered = b"".join(here_before[at : at + n] for at, n in out)
    if operation is WROpcode.RDMA_READ:
        left = there_before[30_000 : 30_000 + size]
        for at, n in out:
            expected_here[at : at + n], left = left[:n], left[n:]
    elif operation is WROpcode.RDMA_WRITE:
        expected_there[30_000 : 30_000 + size] = gathered
    else:
        for at, n in into:
            n = min(n, len(gathered))
            expected_there[at : at + n], gathered = gathered[:n], gathered[n:]
    assert there.buffer == expected_there
    assert here.buffer == expected_here
    check_books(ends)


@pytest.mark.parametrize("host", HOSTS, ids=IDS)
def test_work_requests_are_done_in_their_order_though_some_are_copied_first(host: list[str]) -> None:
    ends = Ends(settings=host)
    order = [WROpcode.RDMA_WRITE, WROpcode.RDMA_READ, WROpcode.RDMA_WRITE, WROpcode.ATOMIC_FETCH_AND_ADD]
    for number in range(24):
        operation = order[number % 4]
        size = 8 if operation is WROpcode.ATOMIC_FETCH_AND_ADD else (number * 37) % 900
        ends.post(operation, size, number * 1000, number * 1000, wr_id=number)
    ends.run()
    assert [each.wr_id for each in ends.here.cq.poll_cq(99)] == list(range(24))
    check_books(ends)


@pytest.mark.parametrize("host", HOSTS, ids=IDS)
def test_a_word_that_is_sent_back_where_it_landed_is_known_there(host: list[str]) -> None:
    """Without GPU-direct a buffer in host memory stands for a region: what lands in it, and what is sent from it."""
    ends = Ends(settings=host)
    ends.post(WROpcode.RDMA_WRITE, 500, 0, 7000)
    ends.run()
    ends.there.qp.post_send(
        SendWR(
            wr_id=9,
            sge=ends.there.sge(7000, 500),
            opcode=WROpcode.RDMA_WRITE,
            remote_addr=ends.here.mr.addr + 9000,
            rkey=ends.here.mr.rkey,
        )
    )
    ends.run()
    assert [each.status for each in ends.there.cq.poll_cq(9)] == [WcStatus.SUCCESS]
    assert ends.here.mr.buffer[9000:9500] == ends.here.mr.buffer[:500]


@pytest.mark.parametrize("host", HOSTS, ids=IDS)
@pytest.mark.parametrize("operation", [WROpcode.SEND, WROpcode.RDMA_WRITE_WITH_IMM, WROpcode.RDMA_READ])
def test_nobody_is_told_of_bytes_before_they_are_in_gpu_memory(operation: WROpcode, host: list[str]) -> None:
    ends = Ends(settings=host)
    told: list[int] = []
    arrived: list[int] = []
    for number, size in enumerate((3000, 0, 8)):
        ends.there.receive(number * 4096, 4096)
        ends.post(operation, size, number * 4096, number * 4096)
    cq = ends.here.cq if operation is WROpcode.RDMA_READ else ends.there.recv_cq
    push = cq.push

    def pushed(*entry: Any, **more: Any) -> None:
        told.append(ends.engine.now_ps)
        push(*entry, **more)

    cq.push = pushed  # type: ignore[method-assign]
    ends.taps.message_delivered = lambda message: arrived.append(message.delivered_ps)
    ends.run()
    assert len(told) == len(arrived) == 3
    assert all(when >= max(arrived[: number + 1]) for number, when in enumerate(told) if number != 1)
    check_books(ends)


@pytest.mark.parametrize("host", [["host.path=none"], *HOSTS], ids=["none", *IDS])
def test_what_is_answered_later_does_not_overtake_a_read(host: list[str]) -> None:
    """A long READ, one of nothing, a WRITE: their answers come in order, so nothing is asked for twice."""
    ends = Ends(settings=host)
    ends.post(WROpcode.RDMA_READ, 20_000, wr_id=1)
    ends.post(WROpcode.RDMA_READ, 0, wr_id=2)
    ends.post(WROpcode.RDMA_WRITE, 64, 30_000, 30_000, wr_id=3)
    ends.post(WROpcode.ATOMIC_FETCH_AND_ADD, 8, 40_000, 40_000, wr_id=4)
    ends.post(WROpcode.RDMA_WRITE, 0, wr_id=5)
    ends.run()
    assert [(each.wr_id, each.status) for each in ends.here.cq.poll_cq(9)] == [
        (number, WcStatus.SUCCESS) for number in range(1, 6)
    ]
    assert ends.fabric.nics["h1"].received == 5  # nothing was sent again
