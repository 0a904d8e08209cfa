"""Send WQEs by struct: literal blocks, Scapy's view of the same, what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.packet import Packet, Padding

from emu.errors import InvariantBroken, WireError
from emu.mlx5.segments import ATOMICS, MASKED, MODELED, WITH_REMOTE
from emu.mlx5.wqe import Fence, Wqe, WqeOpcode, blocks_of, decode, ds_of, encode
from tests.framing.scapy_headers import bits
from tests.mlx5.wqes import wqes
from traffic.layers import mlx5

WRITE = Wqe(
    WqeOpcode.RDMA_WRITE,
    index=5,
    qp_num=0x12,
    data=((4096, 0xAABB, 0x7F00_0000_1000),),
    remote_addr=0x7E00_0000_2000,
    rkey=0xCCDD,
    signaled=True,
)
# (WQE, its segments as hexadecimal text; the rest of the last 64 bytes is zeros)
LITERAL: dict[str, tuple[Wqe, str]] = {
    "write": (
        WRITE,
        "00 0005 08 000012 03 00 0000 08 0000000000007e0000002000 0000ccdd 0000000000001000 0000aabb 00007f0000001000",
    ),
    "inline write that just fits one WQEBB": (
        replace(WRITE, opcode=WqeOpcode.RDMA_WRITE_IMM, data=(), inline=b"\x11" * 28, imm=0xBEEF, signaled=False),
        "00 0005 09 000012 04 00 0000 00 0000beef 00007e0000002000 0000ccdd 00000000 8000001c" + "11" * 28,
    ),
    "send of 2 GiB, solicited, fenced": (
        Wqe(WqeOpcode.SEND, 0xFFFF, 1, data=((1 << 31, 1, 2),), solicited=True, fence=Fence.FENCE),
        "00 ffff 0a 000001 02 00 0000 82 00000000 00000000 00000001 0000000000000002",
    ),
    "write of no bytes": (
        replace(WRITE, data=()),
        "00 0005 08 000012 02 00 0000 08 00000000 00007e0000002000 0000ccdd 00000000",
    ),
    "fetch and add": (
        replace(WRITE, opcode=WqeOpcode.ATOMIC_FA, data=((8, 1, 2),), swap_add=1),
        "00 0005 12 000012 04 00 0000 08 00000000 00007e0000002000 0000ccdd 00000000"
        "0000000000000001 0000000000000000 00000008 00000001 0000000000000002",
    ),
    "DeepEP's count: masked fetch and add of 4 bytes": (
        replace(WRITE, opcode=WqeOpcode.ATOMIC_MASKED_FA, data=((4, 1, 2),), swap_add=0xFFFFFFF7, operand_bytes=4),
        "08 0005 15 000012 04 00 0000 08 00000000 00007e0000002000 0000ccdd 00000000"
        "fffffff7 00000000 00000000 00000000 00000004 00000001 0000000000000002",
    ),
    "masked compare and swap of 8 bytes": (
        replace(WRITE, opcode=WqeOpcode.ATOMIC_MASKED_CS, data=(), swap_add=1, compare=2, swap_mask=3, compare_mask=4),
        "09 0005 14 000012 04 00 0000 08 00000000 00007e0000002000 0000ccdd 00000000"
        "0000000000000001 0000000000000002 0000000000000003 0000000000000004",
    ),
    "nop": (Wqe(WqeOpcode.NOP, 1, 2), "00 0001 00 000002 01 00 0000 00 00000000"),
}


def scapy_wqe(wqe: Wqe) -> Packet:
    """The WQE as a person would write it in Scapy."""
    control = mlx5.Control(opcode=int(wqe.opcode), index=wqe.index, qpn=wqe.qp_num, imm=wqe.imm)
    control.ce, control.solicited, control.fence = 2 * wqe.signaled, wqe.solicited, int(wqe.fence)
    packet: Packet = control
    if wqe.opcode in WITH_REMOTE:
        packet = packet / mlx5.RemoteAddress(va=wqe.remote_addr, rkey=wqe.rkey)
    adds = wqe.opcode is WqeOpcode.ATOMIC_MASKED_FA
    if wqe.opcode in MASKED:
        packet.opmod = 8 if wqe.operand_bytes == 4 else 9
    if wqe.opcode in MASKED and wqe.operand_bytes == 4:
        operands = mlx5.MaskedAtomic4(swap_add=wqe.swap_add, compare=wqe.swap_mask if adds else wqe.compare)
        if not adds:
            operands.swap_mask, operands.compare_mask = wqe.swap_mask, wqe.compare_mask
        packet = packet / operands
    elif wqe.opcode in ATOMICS:
        packet = packet / mlx5.Atomic(swap_add=wqe.swap_add, compare=wqe.swap_mask if adds else wqe.compare)
        if wqe.opcode is WqeOpcode.ATOMIC_MASKED_CS:
            packet = packet / mlx5.AtomicMasks(swap_mask=wqe.swap_mask, compare_mask=wqe.compare_mask)
    for byte_count, lkey, address in wqe.data:
        packet = packet / mlx5.Data(byte_count=byte_count % (1 << 31), lkey=lkey, address=address)
    return packet if wqe.inline is None else packet / mlx5.Inline(load=wqe.inline)


@pytest.mark.parametrize("name", LITERAL)
def test_literal(name: str) -> None:
    wqe, text = LITERAL[name]
    data = bytes.fromhex(text)
    assert ds_of(wqe) == len(data) // 16
    data = data.ljust(-(-len(data) // 64) * 64, b"\0")
    assert encode(wqe).hex() == data.hex()
    assert decode(data) == wqe


@pytest.mark.parametrize(("ds", "blocks"), [(1, 1), (3, 1), (4, 1), (5, 2), (63, 16)])
def test_blocks(ds: int, blocks: int) -> None:
    assert blocks_of(ds) == blocks


def test_length() -> None:
    assert (WRITE.length, replace(WRITE, data=()).length, replace(WRITE, data=WRITE.data * 3).length) == (
        4096,
        0,
        12288,
    )
    assert replace(WRITE, data=(), inline=b"abc").length == 3


def test_inline_data_of_no_bytes_is_no_segment() -> None:
    nothing = replace(WRITE, data=(), inline=b"")
    assert ds_of(nothing) == 2
    assert decode(encode(nothing)) == replace(nothing, inline=None)


@given(wqes(), st.binary(max_size=70))
def test_it_comes_back(wqe: Wqe, behind: bytes) -> None:
    block = encode(wqe)
    assert len(block) == blocks_of(ds_of(wqe)) * 64
    assert decode(block + behind) == wqe
    assert decode(memoryview(block)[: ds_of(wqe) * 16]) == wqe


@given(wqes())
def test_scapy_builds_the_same(wqe: Wqe) -> None:
    assert encode(wqe).hex() == bytes(scapy_wqe(wqe)).hex()


@given(wqes())
def test_scapy_reads_the_same(wqe: Wqe) -> None:
    block = encode(wqe)
    packet = mlx5.Control(block)
    expected = scapy_wqe(wqe).layers()
    assert [layer for layer in packet.layers() if layer is not Padding] == expected
    assert (packet.opcode, packet.index, packet.qpn, packet.ds) == (wqe.opcode, wqe.index, wqe.qp_num, ds_of(wqe))
    found = [
        (piece.byte_count or 1 << 31, piece.lkey, piece.address)
        for piece in packet.iterpayloads()
        if isinstance(piece, mlx5.Data)
    ]
    assert tuple(found) == wqe.data
    if wqe.inline:
        assert packet[mlx5.Inline].load == wqe.inline
    for layer in packet.iterpayloads():
        layer.clear_cache()
    assert bytes(packet) == block


@given(wqes(), st.integers(0, 15), bits(8), st.integers(0, 130))
def test_any_bytes_are_a_wqe_or_refused(wqe: Wqe, offset: int, value: int, length: int) -> None:
    block = bytearray(encode(wqe))
    block[offset] = value
    for data in (bytes(block), bytes(block[:length])):
        try:
            again = decode(data)
        except WireError:
            continue
        assert decode(encode(again)) == again


@given(st.binary(max_size=200))
def test_noise(data: bytes) -> None:
    try:
        wqe = decode(data)
    except WireError:
        return
    assert decode(encode(wqe)) == wqe


def control(opcode: int, ds: int, opmod: int = 0, flags: int = 0, more: str = "") -> bytes:
    head = bytes([opmod, 0, 0, opcode, 0, 0, 1, ds, 0, 0, 0, flags, 0, 0, 0, 0]) + bytes.fromhex(more)
    return head.ljust(64, b"\0")


REMOTE = "00" * 16


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (b"\0" * 15, "15 B are no control segment"),
        (control(0x77, 1), "opcode 0x77 is unknown"),
        (control(0x25, 3), r"UMR \(0x25\) is not modeled"),
        (control(0x0A, 0), "DS 0 of a WQE"),
        (control(0x0A, 64), "DS 64 of a WQE"),
        (control(0x0A, 5), "DS 5 exceeds the block: 80 B of 64"),
        (control(0x0A, 1, flags=0x04), "flags 0x04 are not modeled"),
        (control(0x0A, 1, flags=0x40), "flags 0x40 are not modeled"),
        (control(0x0A, 1)[:8] + b"\1" + bytes(55), "signature 0x01"),
        (control(0x08, 1), "DS 1 of RDMA_WRITE: it has at least 2"),
        (control(0x12, 2), "DS 2 of ATOMIC_FA: it has at least 3"),
        (control(0x14, 3, opmod=9), "DS 3 of ATOMIC_MASKED_CS: it has at least 4"),
        (control(0x14, 3, opmod=0), "opmod 0x00 of ATOMIC_MASKED_CS"),
        (control(0x08, 2, opmod=1), "opmod 0x01 of RDMA_WRITE: it has none"),
        (control(0x00, 2), "DS 2 of NOP: it has no data"),
        (control(0x10, 3, more=REMOTE + "80000004"), "RDMA_READ may not have inline data"),
        (control(0x08, 3, more=REMOTE + "8000000d"), "13 B of inline data do not fill DS 3 of RDMA_WRITE"),
        (control(0x08, 4, more=REMOTE + "8000000c"), "12 B of inline data do not fill DS 4 of RDMA_WRITE"),
        (control(0x08, 3, more=REMOTE + "80000000"), "0 B of inline data do not fill DS 3"),
        (control(0x0A, 3, more=REMOTE + "80000001"), "inline data after a data segment"),
    ],
)
def test_what_is_refused(block: bytes, message: str) -> None:
    with pytest.raises(WireError, match=message):
        decode(block)


@pytest.mark.parametrize(
    "wqe",
    [
        *(replace(WRITE, opcode=opcode, data=()) for opcode in WqeOpcode if opcode not in MODELED),
        replace(WRITE, data=((0, 1, 2),)),
        replace(WRITE, data=(((1 << 31) + 1, 1, 2),)),
        replace(WRITE, data=((1, 1, 1 << 64),)),
        replace(WRITE, data=((1, -1, 1),)),
        replace(WRITE, data=((1, 1, 1),) * 62),
        replace(WRITE, inline=b"x"),
        replace(WRITE, data=(), inline=bytes(1000)),
        replace(WRITE, opcode=WqeOpcode.RDMA_READ, data=(), inline=b"x"),
        replace(WRITE, opcode=WqeOpcode.NOP),
        replace(WRITE, opcode=WqeOpcode.ATOMIC_FA, swap_add=1 << 64),
        replace(WRITE, opcode=WqeOpcode.ATOMIC_MASKED_FA, operand_bytes=4, swap_add=1 << 32),
        replace(WRITE, index=65536),
        replace(WRITE, qp_num=1 << 24),
        replace(WRITE, rkey=1 << 32),
        replace(WRITE, imm=-1),
    ],
)
def test_what_may_not_exist_is_our_bug(wqe: Wqe) -> None:
    with pytest.raises(InvariantBroken):
        encode(wqe)
