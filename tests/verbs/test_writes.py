"""Verbs by themselves on a two-host fabric in memory: what libibverbs would refuse is refused, bytes arrive."""

from __future__ import annotations

from typing import Any

import pytest

from emu.errors import VerbsError
from emu.frame import Frame
from emu.run.assembly import Assembly
from emu.scenario.load import parse
from emu.transport.memory import Access
from emu.transport.wc import WcStatus
from emu.verbs import QP, SGE, Context, SendFlags, SendWR

TEXT = """
name: two
fabric: {profile: native, topology: {kind: line, switches: 1}}
traffic: [{kind: write, pairs: [[h0, h1]], size: 1B}]
"""
BOTH = Access.LOCAL_WRITE | Access.REMOTE_WRITE


class Two:
    """Two hosts over one switch, a connected queue pair each way, a buffer at each."""

    def __init__(self, length: int = 4096, access: Access = BOTH, depth: int = 8) -> None:
        assembly = Assembly(parse(TEXT, "two.yaml", ()))
        self.engine, self.fabric, self.taps = assembly.engine, assembly.fabric, assembly.taps
        self.fabric.join(None)
        here, there = (self.fabric.contexts[name] for name in ("h0", "h1"))
        self.here, self.there = here, there
        self.pd, self.far_pd = here.alloc_pd(), there.alloc_pd()
        self.cq = here.create_cq(64)
        self.qp = self.pd.create_qp(self.cq, depth)
        self.source = self.pd.reg_mr(length)
        self.target = self.far_pd.reg_mr(length, access)
        self.qp.connect(self.far_pd.create_qp(there.create_cq()))

    def write(self, length: int, **changes: Any) -> SendWR:
        """A WRITE of the first bytes of the source to the target."""
        sge = SGE(addr=self.source.addr, length=length, lkey=self.source.lkey)
        fields: dict[str, Any] = {"wr_id": 7, "sge": sge, "remote_addr": self.target.addr, "rkey": self.target.rkey}
        return SendWR(**(fields | changes))


def test_bytes_arrive_and_the_completion_says_so() -> None:
    two = Two()
    two.source.buffer[:5] = b"hello"
    two.qp.post_send(two.write(5))
    assert two.cq.poll_cq() == []
    two.engine.run()
    (done,) = two.cq.poll_cq(10)
    assert (done.wr_id, done.status, done.byte_len, done.qp_num) == (7, WcStatus.SUCCESS, 5, two.qp.qp_num)
    assert bytes(two.target.buffer[:6]) == b"hello\0"


def test_an_unsignaled_request_completes_silently() -> None:
    two = Two()
    two.qp.post_send(two.write(5, send_flags=SendFlags.NONE))
    two.engine.run()
    assert two.cq.poll_cq() == []


def test_a_bad_rkey_is_a_remote_access_error_and_flushes_the_rest() -> None:
    two = Two()
    two.qp.post_send(two.write(5, rkey=0xBAD))
    two.qp.post_send(two.write(5, wr_id=8))
    two.engine.run()
    assert [(done.wr_id, done.status) for done in two.cq.poll_cq(10)] == [
        (7, WcStatus.REM_ACCESS_ERR),
        (8, WcStatus.WR_FLUSH_ERR),
    ]
    two.qp.post_send(two.write(5, wr_id=9))
    two.engine.run()
    assert [done.status for done in two.cq.poll_cq()] == [WcStatus.WR_FLUSH_ERR]


def test_memory_without_the_right_is_not_written() -> None:
    two = Two(access=Access.LOCAL_WRITE)
    two.source.buffer[:5] = b"hello"
    two.qp.post_send(two.write(5))
    two.engine.run()
    assert two.cq.poll_cq()[0].status is WcStatus.REM_ACCESS_ERR
    assert not any(two.target.buffer)


def test_a_full_send_queue_is_refused_until_something_completes() -> None:
    two = Two(depth=2)
    for _ in range(2):
        two.qp.post_send(two.write(5))
    with pytest.raises(VerbsError, match="send queue of 2"):
        two.qp.post_send(two.write(5))
    two.engine.run()
    two.qp.post_send(two.write(5))


def test_local_keys_and_ranges_are_checked_at_post() -> None:
    two = Two(length=64)
    with pytest.raises(VerbsError, match="lkey"):
        two.qp.post_send(two.write(65))
    with pytest.raises(VerbsError, match="lkey"):
        two.qp.post_send(two.write(1, sge=SGE(addr=two.source.addr, length=1, lkey=0)))


def test_what_is_not_connected_cannot_post() -> None:
    two = Two()
    qp = two.pd.create_qp(two.cq)
    with pytest.raises(VerbsError, match="not connected"):
        qp.post_send(two.write(1))
    with pytest.raises(VerbsError, match="connected already"):
        two.qp.connect(qp)


def test_several_queue_pairs_share_the_port_in_turn() -> None:
    two = Two(length=8 * 4096)
    order: list[int] = []
    other = two.pd.create_qp(two.cq)
    other.connect(two.far_pd.create_qp(two.there.create_cq()))

    def note(_: int, link: str, frame: Frame) -> None:
        if link == "h0-s0" and frame.message is not None:
            order.append(frame.envelope.destination_qp)

    two.taps.frame_sent = note
    for qp in (two.qp, other):
        qp.post_send(two.write(4 * 4096))
    two.engine.run()
    a, b = peer(two.qp), peer(other)
    assert order == [a, a, b, a, b, a, b, b]  # the first of `a` left before `b` had anything


def peer(qp: QP) -> int:
    """The number of the queue pair at the other end."""
    assert qp.peer is not None
    return qp.peer.qp_num


def test_a_context_has_its_hosts_name() -> None:
    two = Two()
    assert isinstance(two.here, Context)
    assert (two.here.name, two.there.name) == ("h0", "h1")
