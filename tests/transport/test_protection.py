"""Keys, bounds and rights: what may not be done is refused, changes no memory, and ends the connection."""

from __future__ import annotations

from typing import Any

import pytest

from emu.transport.memory import Access
from emu.transport.wc import WcStatus
from emu.transport.work import SendFlags, WROpcode
from tests.transport.machines import ALL, Machines

RIGHTS = {
    WROpcode.RDMA_WRITE: Access.REMOTE_WRITE,
    WROpcode.RDMA_WRITE_WITH_IMM: Access.REMOTE_WRITE,
    WROpcode.RDMA_READ: Access.REMOTE_READ,
    WROpcode.ATOMIC_CMP_AND_SWP: Access.REMOTE_ATOMIC,
    WROpcode.ATOMIC_FETCH_AND_ADD: Access.REMOTE_ATOMIC,
}
LENGTH = 4096


def refused(machines: Machines, opcode: WROpcode, size: int, **more: Any) -> None:
    """Whatever it is, the first frame is refused with 0x62, before any byte moves."""
    machines.receive(64)
    before = bytes(machines.target.buffer)
    data = b"" if opcode not in (WROpcode.RDMA_WRITE, WROpcode.RDMA_WRITE_WITH_IMM) else b"\xee" * size
    machines.post(opcode, data, size=size, compare_add=1, **more)
    machines.post(WROpcode.RDMA_WRITE, b"\xee")
    first, *rest = machines.frames()
    (nak,) = machines.answers(first)
    assert nak.aeth == (0x62, 0)
    assert machines.responder.failed
    assert [answer for frame in rest for answer in machines.answers(frame)] == []
    machines.take(nak)
    assert [status for _, status in machines.done] == [WcStatus.REM_ACCESS_ERR, WcStatus.WR_FLUSH_ERR]
    assert machines.target.buffer == before
    assert not any(machines.sinks[0])
    assert len(machines.queue) == 1


@pytest.mark.parametrize("opcode", RIGHTS)
def test_an_unknown_key_is_refused(opcode: WROpcode) -> None:
    machines = Machines(target_bytes=LENGTH)
    refused(machines, opcode, 8, rkey=machines.target.rkey ^ 1)


@pytest.mark.parametrize("opcode", RIGHTS)
@pytest.mark.parametrize("offset", [-8, LENGTH - 7, LENGTH, -(2**40), 2**40])
def test_bytes_out_of_range_are_refused(opcode: WROpcode, offset: int) -> None:
    if offset == LENGTH - 7 and RIGHTS[opcode] is Access.REMOTE_ATOMIC:
        offset = LENGTH  # an atomic must lie at a word, or is refused for that
    refused(Machines(target_bytes=LENGTH), opcode, 8, offset=offset)


@pytest.mark.parametrize("opcode", [WROpcode.RDMA_WRITE, WROpcode.RDMA_READ])
def test_a_long_message_that_begins_inside_and_ends_outside_is_refused_at_once(opcode: WROpcode) -> None:
    refused(Machines(target_bytes=LENGTH), opcode, 4000, offset=1000)


@pytest.mark.parametrize("opcode", RIGHTS)
def test_a_missing_right_is_refused(opcode: WROpcode) -> None:
    refused(Machines(target_bytes=LENGTH, rights=ALL & ~RIGHTS[opcode]), opcode, 8)


@pytest.mark.parametrize("opcode", [WROpcode.RDMA_WRITE, WROpcode.RDMA_READ])
def test_no_bytes_need_no_key(opcode: WROpcode) -> None:
    machines = Machines()
    machines.post(opcode, size=0, rkey=0xBAD, offset=1 << 40)
    machines.exchange()
    assert [status for _, status in machines.done] == [WcStatus.SUCCESS]


def test_a_key_is_unknown_once_a_send_has_invalidated_it() -> None:
    machines = Machines()
    machines.receive(64)
    machines.post(WROpcode.RDMA_WRITE, b"good", offset=0)
    machines.post(WROpcode.SEND_WITH_INV, b"done", imm_data=machines.target.rkey, flags=SendFlags.SOLICITED)
    machines.post(WROpcode.RDMA_WRITE, b"evil", offset=0)
    machines.exchange()
    assert [status for _, status in machines.done] == [WcStatus.SUCCESS, WcStatus.SUCCESS, WcStatus.REM_ACCESS_ERR]
    assert machines.target.buffer[:4] == b"good"
    (received,) = machines.received
    assert (received.invalidated, received.imm_data, received.solicited) == (machines.target.rkey, None, True)


@pytest.mark.parametrize("size", [17, 3000])
def test_a_send_longer_than_its_receive_is_invalid(size: int) -> None:
    machines = Machines()
    machines.receive(16)
    machines.post(WROpcode.SEND, b"\xee" * size)
    machines.exchange()
    assert [status for _, status in machines.done] == [WcStatus.REM_INV_REQ_ERR]
    assert [(received.status, received.byte_len) for received in machines.received] == [(WcStatus.LOC_LEN_ERR, 0)]
    assert not any(machines.buffers[0])


def test_a_send_that_outgrows_its_receive_is_invalid_where_it_does() -> None:
    machines = Machines()
    machines.receive(1500)
    machines.post(WROpcode.SEND, b"\xee" * 2048)
    first, last = machines.frames()
    assert machines.answers(first) == []
    (nak,) = machines.answers(last)
    assert (nak.psn, nak.aeth) == (1, (0x61, 0))


def test_flushing_gives_back_the_receive_of_a_message_that_has_begun() -> None:
    machines = Machines()
    machines.receive(4096, 3)
    machines.post(WROpcode.SEND, bytes(2000))
    machines.answers(machines.frames(limit=1)[0])
    flushed = machines.responder.flush()
    assert [(each.wqe.wr_id, each.status) for each in flushed] == [(n, WcStatus.WR_FLUSH_ERR) for n in range(3)]
