"""What a verb refuses: numbers that no header can hold, places that there are not, memory that has gone meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from emu.errors import VerbsError
from emu.units import US
from emu.verbs import (
    SGE,
    Access,
    QPAttr,
    QPState,
    QPType,
    RecvWR,
    SendFlags,
    SendWR,
    WcOpcode,
    WcStatus,
    WROpcode,
)
from tests.verbs.ends import ALL, QKEY, Ends

WIDE: list[tuple[WROpcode, dict[str, Any]]] = [
    *((WROpcode.RDMA_WRITE, {"rkey": value}) for value in (-1, 1 << 32)),
    *((WROpcode.RDMA_WRITE, {"remote_addr": value}) for value in (-8, 1 << 64)),
    *((WROpcode.RDMA_WRITE, {"wr_id": value}) for value in (-1, 1 << 64, "x")),
    *((WROpcode.SEND_WITH_IMM, {"imm_data": value}) for value in (-1, 1 << 32, 1.5)),
    *((WROpcode.SEND_WITH_INV, {"invalidate_rkey": value}) for value in (-1, 1 << 32)),
    *((WROpcode.ATOMIC_FETCH_AND_ADD, {"compare_add": value}) for value in (-1, 1 << 64)),
    *((WROpcode.ATOMIC_CMP_AND_SWP, {"swap": value}) for value in (-1, 1 << 64)),
]


@pytest.mark.parametrize("profile", ["native", "roce"])
@pytest.mark.parametrize(("opcode", "field"), WIDE, ids=str)
def test_a_number_that_its_header_cannot_hold(opcode: WROpcode, field: dict[str, Any], profile: str) -> None:
    """The encoder raised struct.error, or the wire said another number."""
    ends = Ends(profile=profile, depth=1)
    with pytest.raises(VerbsError, match=rf"{next(iter(field))} .*: an unsigned number of (32|64) bits"):
        ends.post(opcode, 8, **field)
    ends.post(WROpcode.RDMA_WRITE, 8)  # nothing was taken of the queue of one
    ends.run()
    assert [each.status for each in ends.here.cq.poll_cq(9)] == [WcStatus.SUCCESS]


@pytest.mark.parametrize("profile", ["native", "roce"])
@pytest.mark.parametrize(
    ("field", "bits"),
    [
        ({"remote_qpn": -1}, 24),
        ({"remote_qpn": 1 << 24}, 24),
        ({"remote_qkey": -1}, 32),
        ({"remote_qkey": 1 << 32}, 32),
    ],
    ids=str,
)
def test_a_datagrams_numbers_too(field: dict[str, int], bits: int, profile: str) -> None:
    ends = Ends(qp_type=QPType.UD, profile=profile)
    where: dict[str, Any] = {
        "ah": ends.here.pd.create_ah(ends.there.context.address),
        "remote_qpn": 17,
        "remote_qkey": QKEY,
    }
    with pytest.raises(VerbsError, match=f"unsigned number of {bits} bits"):
        ends.post(WROpcode.SEND, 8, **(where | field))


@pytest.mark.parametrize(("profile", "priority"), [("roce", 8), ("roce", 99), ("roce", -1), ("native", 16)])
def test_an_address_handles_priority_must_lead_somewhere(profile: str, priority: int) -> None:
    ends = Ends(qp_type=QPType.UD, profile=profile)
    with pytest.raises(VerbsError):
        ends.here.pd.create_ah(ends.there.context.address, priority=priority)


def test_a_key_with_its_highest_bit_set_stands_for_the_queue_pairs_own() -> None:
    """IBTA vol. 1, 10.2.5: so that a program may use a key that it is not to know."""
    ends = Ends(qp_type=QPType.UD)
    for number in range(2):
        ends.there.receive(1000 * number, 1000)
    ah = ends.here.pd.create_ah(ends.there.context.address)
    for key in (1 << 31, QKEY + 1):
        ends.post(WROpcode.SEND, 10, ah=ah, remote_qpn=ends.there.qp.qp_num, remote_qkey=key)
    ends.run()
    assert [each.byte_len for each in ends.there.recv_cq.poll_cq(9)] == [50]  # the other key's was dropped


@pytest.mark.parametrize("length", [-1, -5])
def test_a_negative_length_is_refused(length: int) -> None:
    """It passed the bounds' check, and counted backwards."""
    ends = Ends()
    place = SGE(addr=ends.here.mr.addr + 100, length=length, lkey=ends.here.mr.lkey)
    for post in (
        lambda: ends.here.qp.post_send(SendWR(wr_id=1, sge=place, opcode=WROpcode.SEND)),
        lambda: ends.here.qp.post_send(SendWR(wr_id=1, sg_list=(ends.here.sge(0, 8), place), opcode=WROpcode.SEND)),
        lambda: ends.here.qp.post_recv(RecvWR(wr_id=1, sg_list=(place,))),
    ):
        with pytest.raises(VerbsError, match="does not cover"):
            post()


@pytest.mark.parametrize(
    "make",
    [
        lambda ends: ends.here.pd.reg_mr(-1),
        lambda ends: ends.here.pd.reg_mr(1 << 62),
        lambda ends: ends.here.pd.create_srq(-1),
        lambda ends: ends.here.context.create_cq(0),
        lambda ends: ends.here.context.create_cq(-1),
        lambda ends: ends.here.pd.create_qp(ends.here.cq, -1),
        lambda ends: ends.here.pd.create_qp(ends.here.cq, max_recv_wr=-1),
        lambda ends: ends.here.pd.create_qp(ends.here.cq, max_inline_data=-1),
        lambda ends: ends.here.pd.create_qp(ends.here.cq, qp_type=99),
        lambda ends: ends.here.pd.create_qp(ends.there.cq),
        lambda ends: ends.here.pd.create_qp(ends.here.cq, srq=ends.there.pd.create_srq()),
        lambda ends: ends.here.pd.reg_mr(64, Access.REMOTE_WRITE),
        lambda ends: ends.here.pd.reg_mr(64, 1 << 20),
        lambda ends: ends.here.pd.dereg_mr(ends.there.mr),
    ],
)
def test_sizes_and_parts_that_cannot_be_are_refused_as_they_are_made(make: Callable[[Ends], object]) -> None:
    ends = Ends()
    with pytest.raises(VerbsError):
        make(ends)


def test_a_region_is_deregistered_once() -> None:
    ends = Ends()
    ends.here.pd.dereg_mr(ends.here.mr)
    with pytest.raises(VerbsError, match="registered in this protection domain"):
        ends.here.pd.dereg_mr(ends.here.mr)


def test_opcodes_and_flags_may_be_numbers_and_others_are_refused() -> None:
    ends = Ends()
    ends.post(4, 8, wr_id=1, send_flags=2)  # type: ignore[arg-type]
    ends.post(WROpcode.RDMA_WRITE, 8, wr_id=2, send_flags=0)
    ends.run()
    (done,) = ends.here.cq.poll_cq(9)
    assert (done.wr_id, done.opcode) == (1, WcOpcode.RDMA_READ)
    for more in ({"send_flags": 16}, {"send_flags": -1}, {"send_flags": 1.5}):
        with pytest.raises(VerbsError, match="send flags"):
            ends.post(WROpcode.RDMA_WRITE, 8, **more)
    for opcode in (7, -1, 99, "write"):
        with pytest.raises(VerbsError, match="is not an opcode"):
            ends.post(opcode, 8)  # type: ignore[arg-type]


@pytest.mark.parametrize("opcode", [WROpcode.RDMA_READ, WROpcode.ATOMIC_FETCH_AND_ADD, WROpcode.ATOMIC_CMP_AND_SWP])
def test_what_fetches_has_no_bytes_that_could_be_inline(opcode: WROpcode) -> None:
    ends = Ends()
    with pytest.raises(VerbsError, match="inline"):
        ends.post(opcode, 8, send_flags=SendFlags.INLINE)


@pytest.mark.parametrize("opcode", [WROpcode.SEND, WROpcode.RDMA_READ])
def test_what_comes_to_memory_that_was_deregistered_is_not_written_there(opcode: WROpcode) -> None:
    ends = Ends(length=1 << 16)
    ends.there.receive(0, 60_000, wr_id=5)
    ends.post(opcode, 60_000)
    ends.engine.run(2_500_000)  # amid it
    end = ends.there if opcode is WROpcode.SEND else ends.here
    end.pd.dereg_mr(end.mr)
    before = bytes(end.mr.buffer)
    ends.run()
    assert bytes(end.mr.buffer) == before
    (done,) = ends.here.cq.poll_cq(9)
    received = [(each.wr_id, each.status) for each in ends.there.recv_cq.poll_cq(9)]
    if opcode is WROpcode.SEND:
        assert done.status is WcStatus.REM_OP_ERR
        assert received == [(5, WcStatus.LOC_PROT_ERR)]
    else:
        assert done.status is WcStatus.LOC_PROT_ERR
        assert ends.here.qp.state.name == "ERR"


def test_what_was_posted_from_memory_that_was_deregistered_is_sent_still() -> None:
    ends = Ends()
    ends.post(WROpcode.RDMA_WRITE, 5000)
    ends.engine.run(US // 10)
    ends.here.pd.dereg_mr(ends.here.mr)
    ends.run()
    assert [each.status for each in ends.here.cq.poll_cq(9)] == [WcStatus.SUCCESS]
    assert ends.there.mr.buffer[:5000] == ends.here.mr.buffer[:5000]
    with pytest.raises(VerbsError, match="does not cover"):
        ends.post(WROpcode.RDMA_WRITE, 5000)


@pytest.mark.parametrize("grants", [Access.LOCAL_WRITE, None])
def test_a_send_invalidates_only_what_peers_were_granted(grants: Access | None) -> None:
    """It said that it had, and nothing had been invalidated."""
    ends = Ends()
    key = 0xDEAD if grants is None else ends.there.pd.reg_mr(64, grants).rkey
    ends.there.receive(0, 64, wr_id=3)
    ends.post(WROpcode.SEND_WITH_INV, 8, wr_id=1, invalidate_rkey=key)
    ends.run()
    assert [each.status for each in ends.here.cq.poll_cq(9)] == [WcStatus.REM_INV_REQ_ERR]
    (received,) = ends.there.recv_cq.poll_cq(9)
    assert (received.status, received.invalidated_rkey) == (WcStatus.REM_INV_REQ_ERR, 0)


def test_a_send_invalidates_nothing_of_another_domain() -> None:
    ends = Ends()
    region = ends.there.context.alloc_pd().reg_mr(64, ALL)
    ends.there.receive(0, 64)
    ends.post(WROpcode.SEND_WITH_INV, 8, invalidate_rkey=region.rkey)
    ends.run()
    assert [each.status for each in ends.here.cq.poll_cq(9)] == [WcStatus.REM_INV_REQ_ERR]
    assert region.is_known


def test_one_coroutine_at_a_time_waits_for_a_completion_queue() -> None:
    """The first of two was forgotten."""
    ends = Ends()
    taken: list[int] = []

    async def wait() -> None:
        taken.append((await ends.here.cq.next()).wr_id)

    ends.engine.spawn(wait())
    ends.engine.spawn(wait())
    with pytest.raises(VerbsError, match="another coroutine waits"):
        ends.run()
    ends.engine.close()


@pytest.mark.parametrize("profile", ["native", "roce"])
@pytest.mark.parametrize("mtu", [256, 1024])
def test_a_datagram_is_at_most_the_path_mtu(mtu: int, profile: str) -> None:
    """The fabric's, or less where the queue pair is told so."""
    ends = Ends(qp_type=QPType.UD, profile=profile, mtu=1024)
    qp = ends.here.pd.create_qp(ends.here.cq, qp_type=QPType.UD)
    for state in (QPState.INIT, QPState.RTR, QPState.RTS):
        qp.modify(state, QPAttr(qkey=QKEY, path_mtu_bytes=mtu))
    ends.there.receive(0, 40 + mtu)
    ah = ends.here.pd.create_ah(ends.there.context.address)
    where: dict[str, Any] = {"ah": ah, "remote_qpn": ends.there.qp.qp_num, "remote_qkey": QKEY}
    with pytest.raises(VerbsError, match=f"a datagram of {mtu + 1} bytes: at most the path MTU, {mtu}"):
        qp.post_send(SendWR(wr_id=1, opcode=WROpcode.SEND, sge=ends.here.sge(0, mtu + 1), **where))
    qp.post_send(SendWR(wr_id=2, opcode=WROpcode.SEND, sge=ends.here.sge(0, mtu), **where))
    with pytest.raises(VerbsError, match="needs an address handle"):
        qp.post_send(SendWR(wr_id=3, opcode=WROpcode.SEND, sge=ends.here.sge(0, 8)))
    ends.run()
    assert [each.wr_id for each in ends.here.cq.poll_cq(9)] == [2]
    assert [each.byte_len for each in ends.there.recv_cq.poll_cq(9)] == [40 + mtu]


@pytest.mark.parametrize("qp_type", [QPType.UC, QPType.UD])
def test_unreliable_queue_pairs_have_fewer_operations(qp_type: QPType) -> None:
    ends = Ends(qp_type=qp_type)
    none = {WROpcode.RDMA_READ, WROpcode.ATOMIC_CMP_AND_SWP, WROpcode.ATOMIC_FETCH_AND_ADD, WROpcode.SEND_WITH_INV}
    if qp_type is QPType.UD:
        none |= {WROpcode.RDMA_WRITE, WROpcode.RDMA_WRITE_WITH_IMM}
    for opcode in none:
        with pytest.raises(VerbsError, match=f"a {qp_type.name} queue pair has no {opcode.name}"):
            ends.post(opcode, 8)
