"""What stands in a queue's memory is what the NIC does, whatever was meant; one written wrong gets its error CQE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import pack_into
from typing import Any

import pytest

from emu.frame import Frame
from emu.mlx5.cqe import Cqe, CqeOpcode, Syndrome
from emu.mlx5.cqe import decode as decode_cqe
from emu.mlx5.wqe import Wqe, WqeOpcode, encode
from emu.pcie.tlp import Tlp
from emu.scenario.host_path import PATHS
from emu.verbs import AH, QPState, QPType, WcStatus, WROpcode
from tests.verbs.ends import QKEY, Ends

Change = Callable[[bytearray], object]
BLOCK_BYTES, CQE_BYTES = 64, 64
FAR = [0, 20_000, 40_000]  # where the three messages go
SIZE = 100


class Writer:
    """Changes the WQEs of `h0` as they stand in memory, by their place, before its NIC is told of them."""

    def __init__(self, ends: Ends, changes: dict[int, Change]) -> None:
        self.ends = ends
        self.changes = changes
        self.written = 0
        self.cqes: list[Cqe] = []
        self.host = ends.fabric.hosts["h0"]
        ends.taps.host_step = self.did
        ends.taps.frame_sent = self.sent

    @property
    def queue(self) -> Any:
        (queue,) = self.host._queues.values()
        return queue

    def did(self, who: str, what: str, where: str) -> None:
        if not what.startswith("writes the WQE") or not who.startswith("h0"):
            return
        change = self.changes.get(self.written)
        self.written += 1
        if change is None:
            return
        place = self.queue.sq_addr + (self.written - 1) * BLOCK_BYTES
        block = bytearray(self.host.queue_memory.space.read(place, BLOCK_BYTES) or b"")
        change(block)
        assert self.host.queue_memory.space.write(place, block)

    def sent(self, when_ps: int, link: str, frame: Frame) -> None:
        if link == "h0.nic-h0.pcie" and isinstance(frame, Tlp) and frame.length == CQE_BYTES and frame.payload:
            self.cqes.append(decode_cqe(frame.payload))


def ends_of(path: str = "ibgda", qp_type: QPType = QPType.RC) -> Ends:
    """Work requests of one block each, and none goes to the NIC with its doorbell."""
    return Ends(qp_type=qp_type, settings=[f"host.path={path}", "host.cpu.blueflame=false"])


def put(at: int, *data: int) -> Change:
    def change(block: bytearray) -> None:
        block[at : at + len(data)] = bytes(data)

    return change


def put_word(at: int, word: int, kind: str = "!I") -> Change:
    return lambda block: pack_into(kind, block, at, word)


def post(ends: Ends, sizes: Sequence[int] = (SIZE, SIZE, SIZE), **more: Any) -> None:
    for number, size in enumerate(sizes):
        ends.post(WROpcode.RDMA_WRITE, size, offset=FAR[number], to=FAR[number], wr_id=number, **more)


def arrived(ends: Ends, before: bytes) -> list[bool]:
    """Of each message: whether its bytes are there; all or none of them."""
    here, there = bytes(ends.here.mr.buffer), bytes(ends.there.mr.buffer)
    found = []
    for at in FAR:
        place = slice(at, at + SIZE)
        assert there[place] in (here[place], before[place])
        found.append(there[place] == here[place])
    return found


# reference.md 4.1: opcode at 3, QPN at 4 and DS at 7, index at 1, signature at 8, flags at 11; address at 16, rkey at
# 24; byte count at 32, lkey at 36, address at 40.
WRONG: dict[str, tuple[Change, WcStatus, Syndrome]] = {
    "unknown opcode": (put(3, 0x3F), WcStatus.LOC_QP_OP_ERR, Syndrome.LOCAL_QP_OP_ERR),
    "UMR": (put(3, 0x25), WcStatus.LOC_QP_OP_ERR, Syndrome.LOCAL_QP_OP_ERR),
    "masked atomic": (put(3, 0x14), WcStatus.LOC_QP_OP_ERR, Syndrome.LOCAL_QP_OP_ERR),
    "NOP with data": (put(3, 0x00), WcStatus.LOC_QP_OP_ERR, Syndrome.LOCAL_QP_OP_ERR),
    "atomic without operands": (put(3, 0x12), WcStatus.LOC_QP_OP_ERR, Syndrome.LOCAL_QP_OP_ERR),
    "opmod": (put(0, 1), WcStatus.LOC_QP_OP_ERR, Syndrome.LOCAL_QP_OP_ERR),
    "DS 0": (put(7, 0), WcStatus.LOC_QP_OP_ERR, Syndrome.LOCAL_QP_OP_ERR),
    "DS 1": (put(7, 1), WcStatus.LOC_QP_OP_ERR, Syndrome.LOCAL_QP_OP_ERR),
    "DS 5": (put(7, 5), WcStatus.LOC_QP_OP_ERR, Syndrome.LOCAL_QP_OP_ERR),
    "DS 63": (put(7, 63), WcStatus.LOC_QP_OP_ERR, Syndrome.LOCAL_QP_OP_ERR),
    "index": (put(1, 0, 9), WcStatus.LOC_QP_OP_ERR, Syndrome.LOCAL_QP_OP_ERR),
    "QPN": (put(6, 0x77), WcStatus.LOC_QP_OP_ERR, Syndrome.LOCAL_QP_OP_ERR),
    "signature": (put(8, 1), WcStatus.LOC_QP_OP_ERR, Syndrome.LOCAL_QP_OP_ERR),
    "flags": (put(11, 0x1C), WcStatus.LOC_QP_OP_ERR, Syndrome.LOCAL_QP_OP_ERR),
    "inline too long": (put_word(32, 1 << 31 | 29), WcStatus.LOC_QP_OP_ERR, Syndrome.LOCAL_QP_OP_ERR),
    "lkey": (put_word(36, 0xDEAD), WcStatus.LOC_PROT_ERR, Syndrome.LOCAL_PROT_ERR),
    "lkey of nobody": (put_word(36, 0), WcStatus.LOC_PROT_ERR, Syndrome.LOCAL_PROT_ERR),
    "address before": (put_word(40, 0x1000, "!Q"), WcStatus.LOC_PROT_ERR, Syndrome.LOCAL_PROT_ERR),
    "length beyond": (put_word(32, 1 << 20), WcStatus.LOC_PROT_ERR, Syndrome.LOCAL_PROT_ERR),
    "length 2 GiB": (put_word(32, 0), WcStatus.LOC_PROT_ERR, Syndrome.LOCAL_PROT_ERR),
    "rkey": (put_word(24, 0xDEAD), WcStatus.REM_ACCESS_ERR, Syndrome.REMOTE_ACCESS_ERR),
    "remote address": (put_word(16, 0x1000, "!Q"), WcStatus.REM_ACCESS_ERR, Syndrome.REMOTE_ACCESS_ERR),
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_wqe_ends_what_is_behind_it_and_nothing_before(path: str, wrong: str) -> None:
    change, status, syndrome = WRONG[wrong]
    ends = ends_of(path)
    writer, before = Writer(ends, {1: change}), bytes(ends.there.mr.buffer)
    post(ends)
    ends.run()
    done = ends.here.cq.poll_cq(9)
    assert [(each.wr_id, each.status) for each in done] == [
        (0, WcStatus.SUCCESS),
        (1, status),
        (2, WcStatus.WR_FLUSH_ERR),
    ]
    assert [(cqe.opcode, cqe.wqe_counter, cqe.syndrome) for cqe in writer.cqes] == [
        (CqeOpcode.REQUESTER, 0, Syndrome.NONE),
        (CqeOpcode.REQUESTER_ERROR, 1, syndrome),
        (CqeOpcode.REQUESTER_ERROR, 2, Syndrome.WR_FLUSH_ERR),
    ]
    assert {cqe.qp_num for cqe in writer.cqes} == {ends.here.qp.qp_num}
    assert arrived(ends, before) == [True, False, False]
    assert ends.here.qp.state is QPState.ERR
    assert ends.there.qp.taken_bytes == SIZE


def test_what_is_behind_a_wrong_wqe_does_not_begin_while_that_waits_for_its_turn() -> None:
    ends = ends_of()
    Writer(ends, {1: WRONG["lkey"][0]})
    before = bytes(ends.there.mr.buffer)
    post(ends, (20_000, SIZE, SIZE))
    ends.run()
    assert [each.status for each in ends.here.cq.poll_cq(9)] == [
        WcStatus.SUCCESS,
        WcStatus.LOC_PROT_ERR,
        WcStatus.WR_FLUSH_ERR,
    ]
    assert arrived(ends, before) == [True, False, False]


@pytest.mark.parametrize("first", ["lkey", "DS 0"])
def test_of_two_wrong_wqes_the_second_is_flushed(first: str) -> None:
    change, status, _ = WRONG[first]
    ends = ends_of()
    Writer(ends, {1: change, 2: WRONG["index"][0]})
    post(ends, (20_000, SIZE, SIZE))
    ends.run()
    assert [each.status for each in ends.here.cq.poll_cq(9)] == [WcStatus.SUCCESS, status, WcStatus.WR_FLUSH_ERR]


def test_a_wrong_wqe_behind_one_that_the_peer_refuses_is_flushed() -> None:
    ends = ends_of()
    Writer(ends, {0: WRONG["rkey"][0], 1: WRONG["lkey"][0]})
    post(ends)
    ends.run()
    assert [each.status for each in ends.here.cq.poll_cq(9)] == [
        WcStatus.REM_ACCESS_ERR,
        WcStatus.WR_FLUSH_ERR,
        WcStatus.WR_FLUSH_ERR,
    ]


def test_what_is_posted_after_an_error_is_flushed() -> None:
    ends = ends_of()
    writer = Writer(ends, {0: WRONG["opmod"][0]})
    post(ends)
    ends.run()
    post(ends)
    ends.run()
    assert [each.status for each in ends.here.cq.poll_cq(9)] == [WcStatus.LOC_QP_OP_ERR, *[WcStatus.WR_FLUSH_ERR] * 5]
    assert [cqe.wqe_counter for cqe in writer.cqes] == list(range(6))


def replaced(ends: Ends, opcode: WqeOpcode, *, at: int = 60_000, length: int = SIZE, **fields: Any) -> Change:
    """Another WQE in its place, right in itself."""
    here, there = ends.here.mr, ends.there.mr
    usual: dict[str, Any] = {"remote_addr": there.addr + 50_000, "rkey": there.rkey, "signaled": True}

    def change(block: bytearray) -> None:
        wqe = Wqe(opcode, int.from_bytes(block[1:3], "big"), ends.here.qp.qp_num)
        wqe.data = ((length, here.lkey, here.addr + at),)
        for name, value in (usual | fields).items():
            setattr(wqe, name, value)
        block[:] = encode(wqe)

    return change


@pytest.mark.parametrize("path", PATHS)
def test_the_nic_does_what_the_wqe_says_and_not_what_was_meant(path: str) -> None:
    ends = ends_of(path)
    Writer(
        ends,
        {
            0: replaced(ends, WqeOpcode.RDMA_READ),
            1: replaced(ends, WqeOpcode.ATOMIC_FA, swap_add=5, length=8, remote_addr=ends.there.mr.addr + 51_000),
            2: replaced(ends, WqeOpcode.RDMA_WRITE, at=61_000, length=40, remote_addr=ends.there.mr.addr + 52_000),
        },
    )
    there = ends.there.mr.buffer
    there[51_000:51_008] = (7).to_bytes(8, "little")
    mine, others = bytes(ends.here.mr.buffer), bytes(there)
    post(ends)
    ends.run()
    assert [each.status for each in ends.here.cq.poll_cq(9)] == [WcStatus.SUCCESS] * 3
    got = (7).to_bytes(8, "little") + others[50_008 : 50_000 + SIZE]
    assert ends.here.mr.buffer == mine[:60_000] + got + mine[60_000 + SIZE :]
    assert there[51_000:51_008] == (12).to_bytes(8, "little")
    assert there[52_000:52_040] == mine[61_000:61_040]
    assert arrived(ends, others) == [False] * 3


def test_a_read_into_memory_that_may_not_be_written_is_a_protection_error() -> None:
    ends = ends_of()
    region = ends.here.pd.reg_mr(4096)
    region.access = type(region.access)(0)

    def change(block: bytearray) -> None:
        replaced(ends, WqeOpcode.RDMA_READ)(block)
        pack_into("!IQ", block, 36, region.lkey, region.addr)

    Writer(ends, {0: change})
    post(ends)
    ends.run()
    assert [each.status for each in ends.here.cq.poll_cq(9)] == [WcStatus.LOC_PROT_ERR, *[WcStatus.WR_FLUSH_ERR] * 2]


@pytest.mark.parametrize("opcode", [WqeOpcode.RDMA_READ, WqeOpcode.ATOMIC_FA, WqeOpcode.SEND_INVAL])
def test_an_unreliable_connection_has_no_such_operation(opcode: WqeOpcode) -> None:
    ends = ends_of(qp_type=QPType.UC)
    Writer(ends, {1: replaced(ends, opcode, length=8)})
    before = bytes(ends.there.mr.buffer)
    post(ends)
    ends.run()
    assert [each.status for each in ends.here.cq.poll_cq(9)] == [
        WcStatus.SUCCESS,
        WcStatus.LOC_QP_OP_ERR,
        WcStatus.WR_FLUSH_ERR,
    ]
    assert arrived(ends, before) == [True, False, False]


@pytest.mark.parametrize(
    ("opcode", "length", "status"),
    [(WqeOpcode.SEND, 1025, WcStatus.LOC_LEN_ERR), (WqeOpcode.RDMA_WRITE, 100, WcStatus.LOC_QP_OP_ERR)],
)
def test_a_datagram_is_a_send_of_one_packet(opcode: WqeOpcode, length: int, status: WcStatus) -> None:
    ends = ends_of(qp_type=QPType.UD)
    Writer(ends, {0: replaced(ends, opcode, length=length)})
    ends.there.receive(0, 4096)
    to = AH(address=ends.there.context.address)
    ends.post(WROpcode.SEND, 100, ah=to, remote_qpn=ends.there.qp.qp_num, remote_qkey=QKEY)
    ends.run()
    assert [each.status for each in ends.here.cq.poll_cq(9)] == [status]
    assert ends.there.recv_cq.poll_cq(9) == []


def test_a_wqe_that_wants_no_cqe_gets_none_and_is_told_of_by_the_next() -> None:
    ends = ends_of()
    writer = Writer(ends, {0: put(11, 0), 1: put(11, 0)})
    post(ends)
    ends.run()
    assert [cqe.wqe_counter for cqe in writer.cqes] == [2]
    assert [each.wr_id for each in ends.here.cq.poll_cq(9)] == [2]
    assert writer.queue.ring.retired == 3
