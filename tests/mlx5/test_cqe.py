"""CQEs by struct: literal entries, Scapy's view of the same, owner bits, what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.errors import InvariantBroken, WireError
from emu.mlx5.cqe import (
    INVALID_CQE,
    WQE_COUNTER_OFFSET,
    Cqe,
    CqeOpcode,
    Syndrome,
    decode,
    encode,
    is_written,
    owner_of,
)
from tests.mlx5.wqes import cqes
from traffic.layers import mlx5

LITERAL: dict[str, tuple[Cqe, str]] = {
    "write done": (
        Cqe(CqeOpcode.REQUESTER, wqe_counter=0x1234, qp_num=0x12, send_opcode=8, byte_count=4096, timestamp=7, owner=1),
        "00" * 44 + "00001000 0000000000000007 08 000012 1234 00 01",
    ),
    "send with immediate arrived": (
        Cqe(CqeOpcode.RESPONDER_SEND_IMM, 3, 0x99, imm=0xBEEF, remote_qp=0x12, srqn=5, byte_count=64, solicited=True),
        "00" * 24 + "00 000012 00000000 00000005 0000beef 00000000 00000040 0000000000000000 00 000099 0003 00 32",
    ),
    "retries exceeded": (
        Cqe(
            CqeOpcode.REQUESTER_ERROR,
            wqe_counter=9,
            qp_num=0x12,
            send_opcode=8,
            syndrome=Syndrome.TRANSPORT_RETRY_EXC_ERR,
            vendor_syndrome=0x81,
        ),
        "00" * 54 + "81 15 08 000012 0009 00 d0",
    ),
}


@pytest.mark.parametrize("name", LITERAL)
def test_literal(name: str) -> None:
    cqe, text = LITERAL[name]
    assert encode(cqe).hex() == bytes.fromhex(text).hex()
    assert decode(bytes.fromhex(text)) == cqe


def test_what_a_gpu_polls() -> None:
    data = encode(LITERAL["write done"][0])
    assert data[WQE_COUNTER_OFFSET : WQE_COUNTER_OFFSET + 2] == b"\x12\x34"


@given(cqes())
def test_it_comes_back(cqe: Cqe) -> None:
    assert decode(memoryview(encode(cqe))) == cqe


@given(cqes())
def test_scapy_says_the_same(cqe: Cqe) -> None:
    fails = cqe.opcode in (CqeOpcode.REQUESTER_ERROR, CqeOpcode.RESPONDER_ERROR)
    packet = (mlx5.ErrorCQE if fails else mlx5.CQE)(opcode=int(cqe.opcode), qpn=cqe.qp_num, owner=cqe.owner)
    packet.wqe_counter, packet.solicited, packet.send_opcode = cqe.wqe_counter, cqe.solicited, cqe.send_opcode
    packet.srqn = cqe.srqn
    if fails:
        packet.syndrome, packet.vendor_syndrome = int(cqe.syndrome), cqe.vendor_syndrome
    else:
        packet.remote_qpn, packet.imm = cqe.remote_qp, cqe.imm
        packet.byte_count, packet.timestamp = cqe.byte_count, cqe.timestamp
    data = encode(cqe)
    assert bytes(packet).hex() == data.hex()
    again = mlx5.CQE(data)
    assert type(again) is type(packet)
    for name in packet.fields:
        assert getattr(again, name) == getattr(packet, name), name
    again.clear_cache()
    assert bytes(again) == data


def test_owner_bits() -> None:
    """Of a ring of 4: what was written in the round before is no news, nor is what never was."""
    assert [owner_of(index, 4) for index in (0, 3, 4, 7, 8)] == [0, 0, 1, 1, 0]
    assert not is_written(INVALID_CQE, 0, 4)
    assert not is_written(INVALID_CQE, 4, 4)
    first = encode(Cqe(CqeOpcode.REQUESTER, 0, 1, owner=owner_of(2, 4)))
    assert is_written(first, 2, 4)
    assert not is_written(first, 6, 4)
    assert decode(INVALID_CQE).opcode is CqeOpcode.INVALID


@given(st.binary(max_size=64).map(lambda tail: tail.rjust(64, b"\0")))
def test_any_bytes_are_a_cqe_or_refused(data: bytes) -> None:
    try:
        cqe = decode(data)
    except WireError:
        return
    assert decode(encode(cqe)) == cqe


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (bytes(63), "63 B are no CQE"),
        (bytes(128), "128 B are no CQE"),
        (bytes(63) + b"\x70", "opcode 7, format 0"),
        (bytes(63) + b"\x24", "opcode 2, format 1"),
        (bytes(63) + b"\xd0", "syndrome 0x00"),
        (bytes(55) + b"\x77" + bytes(7) + b"\xe0", "syndrome 0x77"),
    ],
)
def test_what_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(WireError, match=message):
        decode(data)


@pytest.mark.parametrize(
    "cqe",
    [
        Cqe(CqeOpcode.REQUESTER, 65536, 1),
        Cqe(CqeOpcode.REQUESTER, 1, 1 << 24),
        Cqe(CqeOpcode.REQUESTER, 1, -1),
        Cqe(CqeOpcode.REQUESTER, 1, 1, owner=2),
        Cqe(CqeOpcode.REQUESTER, 1, 1, syndrome=Syndrome.LOCAL_PROT_ERR),
        Cqe(CqeOpcode.REQUESTER, 1, 1, vendor_syndrome=1),
        Cqe(CqeOpcode.REQUESTER, 1, 1, byte_count=1 << 32),
        Cqe(CqeOpcode.REQUESTER_ERROR, 1, 1),
        Cqe(CqeOpcode.REQUESTER_ERROR, 1, 1, syndrome=Syndrome.LOCAL_PROT_ERR, byte_count=1),
        Cqe(CqeOpcode.REQUESTER_ERROR, 1, 1, syndrome=Syndrome.LOCAL_PROT_ERR, vendor_syndrome=256),
    ],
)
def test_what_may_not_exist_is_our_bug(cqe: Cqe) -> None:
    with pytest.raises(InvariantBroken):
        encode(cqe)
