"""Captured TLPs are told for what they are, whole, cut or damaged; no bytes make anything raise."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.capture import Record
from emu.capture.summary import Summary
from emu.framing.dissect import LINK_ETHERNET, dissect
from emu.mlx5 import cqe, doorbell, wqe
from emu.pcie.dissect import dissect as dissect_tlp
from emu.pcie.dissect import identifier
from emu.pcie.framing import TLP_OFFSET, TlpFraming, completion, memory_read, memory_write
from emu.pcie.tlp import Tlp, TlpKind
from tests.mlx5.test_cqe import LITERAL as CQES
from tests.mlx5.test_wqe import LITERAL as WQES
from tests.pcie.tlps import tlps

FRAMING = TlpFraming()
UAR = 0x20_0000_0800
NIC, GPU = 0x0100, 0x0200
READ = memory_read(0x7F00_0000_0040, 128, NIC, tag=0x2A5)
WRITE, HEAD = (encode(WQES["write"][0]) for encode in (wqe.encode, lambda one: wqe.encode(one)[:8]))


def rows(*frames: bytes, snap: int = 1 << 16) -> list[dict[str, object]]:
    """What `emu decode --frames` has of each, on an Ethernet interface that cuts them at `snap` bytes."""
    summary = Summary(with_rows=True)
    summary.add(Record(number, "a-b", LINK_ETHERNET, frame[:snap], len(frame)) for number, frame in enumerate(frames))
    result = summary.result()
    assert result["frames"] == len(frames) == sum(result["networks"].values())
    return list(result["rows"])


def lines(*sent: Tlp, snap: int = 1 << 16) -> list[object]:
    return [row["info"] for row in rows(*map(FRAMING.encode, sent), snap=snap)]


def test_lines() -> None:
    expected = {
        "MWr 8 B at 0x2000000800: doorbell QP 0x12 producer 5": memory_write(UAR, doorbell.encode_doorbell(5, 0x12), 1),
        "MWr 8 B at 0x2000000800: doorbell RDMA_WRITE QP 0x12 WQE 5": memory_write(UAR, HEAD, 1),
        "MWr 64 B at 0x2000000800: RDMA_WRITE QP 0x12 WQE 5": memory_write(UAR, WRITE, 1),
        "MRd 128 B at 0x7f0000000040, tag 677": READ,
        "CplD 128 B of 128 still owed, lower address 0x40, tag 677: RDMA_WRITE QP 0x12 WQE 5, "
        "RDMA_WRITE QP 0x12 WQE 5": completion(READ, 0, WRITE * 2, 4),
        "MWr 64 B at 0x4000: CQE requester QP 0x12 WQE 4660": memory_write(
            0x4000, cqe.encode(CQES["write done"][0]), 1
        ),
        "MWr 64 B at 0x4000": memory_write(0x4000, bytes(64), 1),
        "MWr 3 B at 0x4001": memory_write(0x4001, b"abc", 1),
        "MRd 0 B at 0x4000, tag 1": memory_read(0x4000, 0, 1, tag=1),
    }
    assert lines(*expected.values()) == list(expected)


def test_a_row_has_every_field() -> None:
    (row,) = rows(FRAMING.encode(completion(READ, 64, b"x" * 64, GPU)))
    assert row["network"] == "tlp"
    assert (row["source"], row["destination"]) == ("02:00.0", "01:00.0")
    assert row["headers"] == {
        "tlp": {
            "kind": "CplD",
            "address": 0,  # the low 7 bits of ...80
            "length": 64,
            "requester": "01:00.0",
            "completer": "02:00.0",
            "tag": 677,
            "remaining": 64,
        }
    }
    assert (row["payload_bytes"], row["frame_bytes"], row["captured_bytes"]) == (64, 12 + 64, 15 + 12 + 64)
    assert (row["opcode"], row["psn"], row["icrc"], row["vcrc"]) == (None, None, "none", "none")
    (row,) = rows(FRAMING.encode(READ))
    assert (row["source"], row["destination"], row["payload_bytes"]) == ("01:00.0", "", 0)


@pytest.mark.parametrize(
    ("number", "text"), [(0x0100, "01:00.0"), (0x0200, "02:00.0"), (0xFFFF, "ff:1f.7"), (0, "00:00.0")]
)
def test_identifiers_are_as_lspci_has_them(number: int, text: str) -> None:
    assert identifier(number) == text


def test_what_a_snap_length_cut_is_told_as_far_as_it_goes() -> None:
    sent = memory_write(UAR, WRITE, GPU)
    (row,) = rows(FRAMING.encode(sent), snap=60)
    assert row["info"] == "MWr 64 B at 0x2000000800, cut short"
    assert row["payload_bytes"] == 64
    assert lines(READ, completion(READ, 0, bytes(128), 4), snap=TLP_OFFSET + 12) == [
        "TLP cut short",
        "CplD 128 B of 128 still owed, lower address 0x40, tag 677, cut short",
    ]


def test_what_contradicts_itself_says_how() -> None:
    whole = FRAMING.encode(memory_write(UAR, bytes(8), GPU))
    holes = bytearray(whole)
    holes[TLP_OFFSET + 7] = 0x5F
    shown = [row["info"] for row in rows(whole[:-1], bytes(holes), whole[:15] + b"\x0a" + whole[16:], whole[:15])]
    assert shown == [
        "TLP: a TLP's payload is cut short by 1 B",
        "TLP: byte enables 0xf and 0x5 of 2 DWs leave holes",
        "TLP of Fmt and Type 0x0a",
        "TLP cut short",
    ]


@given(tlps())
def test_any_tlp_is_told_as_it_is(tlp: Tlp) -> None:
    seen = dissect_tlp(FRAMING.encode(tlp)[TLP_OFFSET:])
    assert seen.header is not None
    address = tlp.address & 0x7F if tlp.kind is TlpKind.CPLD else tlp.address
    assert seen.header[:3] == (tlp.kind.value, address, tlp.length)
    assert (seen.header.tag, seen.header.remaining, seen.data) == (tlp.tag, tlp.remaining, bytes(tlp.payload))


@given(tlps(), st.data())
def test_however_cut_it_says_the_same_of_what_is_there(tlp: Tlp, data: st.DataObject) -> None:
    packet = FRAMING.encode(tlp)[TLP_OFFSET:]
    whole = dissect_tlp(packet)
    there = data.draw(st.integers(0, len(packet)))
    seen = dissect_tlp(packet[:there], cut=True)
    assert seen.header in (whole.header, None)
    assert whole.data.startswith(seen.data)
    assert seen.line in ("TLP cut short", whole.line, f"{whole.line}, cut short")


@given(st.binary(max_size=100), st.booleans())
def test_any_bytes_raise_nothing(packet: bytes, cut: bool) -> None:
    assert dissect_tlp(packet, cut=cut).line


def test_mangled_tlps_are_all_counted() -> None:
    numbers = random.Random("mangled TLPs")
    good = [
        FRAMING.encode(tlp)
        for tlp in (
            *(memory_write(UAR, wqe.encode(one), 1) for one, _ in WQES.values()),
            *(memory_write(0x4000, cqe.encode(one), 1) for one, _ in CQES.values()),
            memory_write(UAR, doorbell.encode_doorbell(5, 0x12), 1),
            READ,
            completion(READ, 0, WRITE * 2, 2),
        )
    ]
    frames = []
    for _ in range(20_000):
        frame = bytearray(numbers.choice(good))
        for _ in range(numbers.randrange(4)):
            frame[numbers.randrange(12, len(frame))] = numbers.choice((0, 1, 0x40, 0xFF, numbers.randrange(256)))
        frames.append(bytes(frame[: numbers.choice((len(frame), numbers.randrange(14, len(frame) + 1)))]))
    found = rows(*frames)
    counts = Counter(row["network"] for row in found)
    assert counts["tlp"] > 15_000
    assert all(row["info"] for row in found)
    assert {dissect(LINK_ETHERNET, frame).network for frame in good} == {"tlp"}
