"""Every verb moves every size right, on every transport that has it, and says so in the right completions."""

from __future__ import annotations

from typing import Any

import pytest

from emu import opcodes
from emu.errors import VerbsError
from emu.frame import Frame
from emu.verbs import AH, QPAttr, QPState, QPType, SendFlags, WcFlags, WcOpcode, WcStatus, WROpcode
from tests.verbs.ends import QKEY, Ends

MTUS = (256, 1024, 4096)
OPERATIONS = [
    (QPType.RC, WROpcode.RDMA_WRITE),
    (QPType.RC, WROpcode.RDMA_WRITE_WITH_IMM),
    (QPType.RC, WROpcode.SEND),
    (QPType.RC, WROpcode.SEND_WITH_IMM),
    (QPType.RC, WROpcode.SEND_WITH_INV),
    (QPType.RC, WROpcode.RDMA_READ),
    (QPType.UC, WROpcode.RDMA_WRITE),
    (QPType.UC, WROpcode.RDMA_WRITE_WITH_IMM),
    (QPType.UC, WROpcode.SEND),
    (QPType.UC, WROpcode.SEND_WITH_IMM),
]
SENDS = (WROpcode.SEND, WROpcode.SEND_WITH_IMM, WROpcode.SEND_WITH_INV)
TAKES_RECEIVE = (*SENDS, WROpcode.RDMA_WRITE_WITH_IMM)
HALF = 1 << 15


def sizes(mtu: int) -> list[int]:
    return [0, 1, 3, mtu - 1, mtu, mtu + 1, 2 * mtu, 2 * mtu + 1, 9001]


def seen(ends: Ends) -> list[Frame]:
    """Frames as the first link of each direction has them, from now on."""
    frames: list[Frame] = []

    def note(_: int, link: str, frame: Frame) -> None:
        if link in ("h0-s0", "h1-s0") and hasattr(frame, "opcode"):
            frames.append(frame)

    ends.taps.frame_sent = note
    return frames


@pytest.mark.parametrize("profile", ["native", "roce"])
@pytest.mark.parametrize("mtu", MTUS)
@pytest.mark.parametrize(("qp_type", "operation"), OPERATIONS)
def test_every_size_arrives(qp_type: QPType, operation: WROpcode, mtu: int, profile: str) -> None:
    for size in sizes(mtu):
        ends = Ends(profile=profile, mtu=mtu, qp_type=qp_type)
        here, there = ends.here, ends.there
        frames = seen(ends)
        spare = there.pd.reg_mr(64, there.mr.access)
        there.receive(HALF, 9001)
        mine, others = bytes(here.mr.buffer), bytes(there.mr.buffer)
        ends.post(operation, size, offset=5, to=11, imm_data=0xFFFF_FFFE, invalidate_rkey=spare.rkey)
        ends.run()
        (done,) = here.cq.poll_cq(9)
        assert (done.status, done.byte_len, done.wr_id) == (WcStatus.SUCCESS, size, 7)
        if operation is WROpcode.RDMA_READ:
            assert here.mr.buffer == mine[:5] + others[11 : 11 + size] + mine[5 + size :]
            assert there.mr.buffer == others
        else:
            at = HALF if operation in SENDS else 11
            assert there.mr.buffer == others[:at] + mine[5 : 5 + size] + others[at + size :]
            assert here.mr.buffer == mine
        received = there.recv_cq.poll_cq(9)
        assert len(received) == (operation in TAKES_RECEIVE)
        for each in received:
            assert (each.status, each.byte_len) == (WcStatus.SUCCESS, size)
            assert (each.opcode is WcOpcode.RECV_RDMA_WITH_IMM) == (operation is WROpcode.RDMA_WRITE_WITH_IMM)
            assert bool(each.wc_flags & WcFlags.WITH_IMM) == (each.imm_data == 0xFFFF_FFFE)
            assert bool(each.wc_flags & WcFlags.WITH_INV) == (each.invalidated_rkey == spare.rkey)
        gone = there.pd.memory.find(spare.rkey, spare.addr, 1, type(ends.here.mr.access)(0)) is None
        assert gone == (operation is WROpcode.SEND_WITH_INV)
        packets = max(1, -(-size // mtu))
        data = [frame for frame in frames if len(frame.payload) or frame.opcode not in (opcodes.ACKNOWLEDGE,)]
        assert len(data) == packets + (operation is WROpcode.RDMA_READ)
        assert all(len(frame.payload) == mtu for frame in data[-packets:-1])


@pytest.mark.parametrize("profile", ["native", "roce"])
def test_atomics_return_what_was_there_and_act_once(profile: str) -> None:
    ends = Ends(profile=profile)
    place = ends.there.mr.buffer
    place[16:24] = (41).to_bytes(8, "little")
    ends.post(WROpcode.ATOMIC_FETCH_AND_ADD, 8, offset=0, to=16, compare_add=(1 << 64) - 1)
    ends.post(WROpcode.ATOMIC_CMP_AND_SWP, 8, offset=8, to=16, compare_add=40, swap=77)
    ends.post(WROpcode.ATOMIC_CMP_AND_SWP, 8, offset=16, to=16, compare_add=40, swap=99)
    ends.run()
    done = ends.here.cq.poll_cq(9)
    assert [each.status for each in done] == [WcStatus.SUCCESS] * 3
    assert [each.opcode for each in done] == [WcOpcode.FETCH_ADD, WcOpcode.COMP_SWAP, WcOpcode.COMP_SWAP]
    originals = [int.from_bytes(ends.here.mr.buffer[at : at + 8], "little") for at in (0, 8, 16)]
    assert originals == [41, 40, 77]
    assert int.from_bytes(place[16:24], "little") == 77


@pytest.mark.parametrize("profile", ["native", "roce"])
def test_a_datagram_arrives_behind_forty_bytes(profile: str) -> None:
    ends = Ends(profile=profile, qp_type=QPType.UD)
    ends.there.receive(0, 2048)
    there = ends.there
    ah = AH(address=there.context.address)
    mine = bytes(ends.here.mr.buffer)
    ends.post(WROpcode.SEND_WITH_IMM, 100, imm_data=0x8000_0001, ah=ah, remote_qpn=there.qp.qp_num, remote_qkey=QKEY)
    ends.run()
    (sent,) = ends.here.cq.poll_cq(9)
    (received,) = there.recv_cq.poll_cq(9)
    assert (sent.status, received.status, received.byte_len) == (WcStatus.SUCCESS, WcStatus.SUCCESS, 140)
    assert (received.imm_data, received.src_qp) == (0x8000_0001, ends.here.qp.qp_num)
    assert received.wc_flags == WcFlags.GRH | WcFlags.WITH_IMM
    assert there.mr.buffer[40:140] == mine[:100]
    if profile == "roce":
        assert there.mr.buffer[20] == 0x45  # the IPv4 header, in the last twenty


def test_datagrams_of_the_wrong_key_or_into_too_small_a_place_are_dropped() -> None:
    ends = Ends(qp_type=QPType.UD)
    there = ends.there
    there.receive(0, 139)
    before = bytes(there.mr.buffer)
    where: dict[str, Any] = {"ah": AH(address=there.context.address), "remote_qpn": there.qp.qp_num}
    ends.post(WROpcode.SEND, 99, remote_qkey=QKEY + 1, **where)
    ends.post(WROpcode.SEND, 100, remote_qkey=QKEY, **where)
    ends.run()
    assert there.mr.buffer == before
    assert there.recv_cq.poll_cq() == []
    ends.post(WROpcode.SEND, 99, remote_qkey=QKEY, **where)
    ends.run()
    assert [each.byte_len for each in there.recv_cq.poll_cq(9)] == [139]


def test_a_fence_waits_for_reads_and_others_overtake_them() -> None:
    for flags, first in ((SendFlags.SIGNALED, False), (SendFlags.SIGNALED | SendFlags.FENCE, True)):
        ends = Ends()
        frames = seen(ends)
        ends.post(WROpcode.RDMA_READ, 8192)
        ends.post(WROpcode.RDMA_WRITE, 64, to=9000, send_flags=flags)
        ends.run()
        order = [frame.opcode for frame in frames]
        last_response = max(at for at, opcode in enumerate(order) if opcode == opcodes.READ_RESPONSE_LAST)
        assert (order.index(opcodes.WRITE_ONLY) > last_response) is first
        assert [each.status for each in ends.here.cq.poll_cq(9)] == [WcStatus.SUCCESS] * 2


FETCHES = (WROpcode.RDMA_READ, WROpcode.ATOMIC_FETCH_AND_ADD, WROpcode.ATOMIC_CMP_AND_SWP)


@pytest.mark.parametrize("fetch", FETCHES)
def test_a_fetch_with_no_depth_for_it_is_refused_at_posting(fetch: WROpcode) -> None:
    ends = Ends(attr=QPAttr(max_rd_atomic=0))
    with pytest.raises(VerbsError, match=f"max_rd_atomic 0: {fetch.name}"):
        ends.post(fetch, 8)
    ends.post(WROpcode.RDMA_WRITE, 8)  # nothing else is
    ends.run()
    assert [each.status for each in ends.here.cq.poll_cq(9)] == [WcStatus.SUCCESS]


@pytest.mark.parametrize("fetch", FETCHES)
def test_a_peer_that_owes_no_fetch_refuses_it(fetch: WROpcode) -> None:
    ends = Ends(attr=QPAttr(max_dest_rd_atomic=0))
    before = bytes(ends.there.mr.buffer)
    ends.post(fetch, 8)
    ends.post(WROpcode.RDMA_WRITE, 8)
    ends.run()
    statuses = [each.status for each in ends.here.cq.poll_cq(9)]
    assert statuses == [WcStatus.REM_INV_REQ_ERR, WcStatus.WR_FLUSH_ERR]
    assert ends.here.qp.state is ends.there.qp.state is QPState.ERR
    assert ends.there.mr.buffer == before


def test_solicited_events_wake_only_for_messages_that_ask() -> None:
    ends = Ends()
    woken: list[int] = []
    ends.there.receive(0, 64, wr_id=1)
    ends.there.receive(64, 64, wr_id=2)
    armed = ends.there.recv_cq.req_notify(solicited_only=True)
    armed.when_done(lambda _: woken.append(ends.engine.now_ps))
    ends.post(WROpcode.SEND, 8)
    ends.run()
    assert (woken, len(ends.there.recv_cq.poll_cq(9))) == ([], 1)
    ends.post(WROpcode.SEND, 8, send_flags=SendFlags.SIGNALED | SendFlags.SOLICITED)
    ends.run()
    assert len(woken) == 1
