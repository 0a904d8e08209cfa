"""Doorbells, BlueFlame and doorbell records: literal bytes, Scapy's view of the same, what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.errors import InvariantBroken, WireError
from emu.mlx5.doorbell import (
    SEND_COUNTER_OFFSET,
    BlueFlame,
    Doorbell,
    WqeHead,
    decode,
    decode_doorbell,
    decode_record,
    encode_counter,
    encode_doorbell,
    encode_record,
)
from emu.mlx5.wqe import Wqe, WqeOpcode, blocks_of, ds_of
from emu.mlx5.wqe import encode as encode_wqe
from tests.framing.scapy_headers import bits
from tests.mlx5.wqes import wqes
from traffic.layers import mlx5


def test_literal_doorbell() -> None:
    data = bytes.fromhex("00 0005 00 000012 00")
    assert encode_doorbell(5, 0x12) == encode_doorbell(0x30005, 0x12) == data
    assert decode_doorbell(data) == decode(data) == Doorbell(producer=5, qp_num=0x12)


def test_a_blueflame_write_begins_with_its_wqe() -> None:
    wqe = Wqe(WqeOpcode.RDMA_WRITE, 0xFFFF, 0x12, inline=bytes(60))
    block = encode_wqe(wqe)
    assert decode(block) == decode(block[:8]) == WqeHead(0xFFFF, 0x12, opcode=8, ds=6)
    assert decode(block[:8]).producer == 1  # two WQEBBs on, past the wrap
    with pytest.raises(WireError, match="opcode 0x08 and DS 6"):
        decode_doorbell(block[:8])


@given(wqes())
def test_every_wqe_differs_from_every_doorbell(wqe: Wqe) -> None:
    found = decode(encode_wqe(wqe))
    assert found == WqeHead(wqe.index, wqe.qp_num, wqe.opcode, ds_of(wqe))
    assert found.producer == (wqe.index + blocks_of(ds_of(wqe))) % 65536


@given(st.integers(0, 1 << 40), bits(24))
def test_doorbells_come_back_and_scapy_agrees(producer: int, qp_num: int) -> None:
    data = encode_doorbell(producer, qp_num)
    assert decode_doorbell(data) == (producer % 65536, qp_num)
    packet = mlx5.Doorbell(producer=producer % 65536, qpn=qp_num)
    assert bytes(packet) == data
    read = mlx5.Doorbell(data)
    assert (read.producer, read.qpn, read.opmod, read.opcode, read.ds) == (producer % 65536, qp_num, 0, 0, 0)


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 40))
def test_records_come_back(send: int, receive: int) -> None:
    record = encode_record(send, receive)
    assert record == encode_counter(receive) + encode_counter(send)
    assert record[SEND_COUNTER_OFFSET:] == (send % 65536).to_bytes(4, "big")
    assert decode_record(record) == (send % 65536, receive % 65536)


@given(st.binary(max_size=16))
def test_any_bytes_are_known_or_refused(data: bytes) -> None:
    for read in (decode, decode_doorbell, decode_record):
        try:
            found = read(data)
        except WireError:
            continue
        if isinstance(found, Doorbell):
            assert encode_doorbell(*found) == data[:8]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("00000500000012", "7 B are no doorbell"),
        ("0000050a00001200", "opcode 0x0a without DS"),
        ("0100050000001200", "opcode 0x00 without DS"),
    ],
)
def test_what_is_no_doorbell(data: str, message: str) -> None:
    for read in (decode, decode_doorbell):
        with pytest.raises(WireError, match=message):
            read(bytes.fromhex(data))


@pytest.mark.parametrize("data", ["00000001", "0000000100010000", "000000010000000200"])
def test_what_is_no_record(data: str) -> None:
    with pytest.raises(WireError, match="doorbell record"):
        decode_record(bytes.fromhex(data))


def test_a_doorbell_has_8_bytes() -> None:
    with pytest.raises(WireError, match="9 B are no doorbell"):
        decode_doorbell(bytes(9))


@pytest.mark.parametrize("qp_num", [-1, 1 << 24])
def test_a_qpn_without_room_is_our_bug(qp_num: int) -> None:
    with pytest.raises(InvariantBroken):
        encode_doorbell(0, qp_num)


def test_blueflame_buffers_in_turn() -> None:
    blueflame = BlueFlame()
    assert [blueflame.next_offset() for _ in range(4)] == [0x800, 0x900, 0x800, 0x900]
