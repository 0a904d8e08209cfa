"""ICRC, VCRC and FCS against published packets, a real driver's frames, and a CRC computed bit by bit."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu import crc
from tests.golden_frames import GOLDEN, SAMPLE_GLOBAL, SAMPLE_LOCAL, captured_roce, vectors
from tests.reference_crc import bitwise

Icrc = Callable[[bytes], int]


def icrc_on_ethernet(frame: bytes) -> bytes:
    """The ICRC that the frame should end with; bytes that Ethernet added are cut off by the IP length."""
    compute: Icrc
    if frame[12:14] == b"\x08\x00":
        compute, end = crc.icrc_roce_ipv4, int.from_bytes(frame[16:18], "big")
    elif frame[12:14] == b"\x86\xdd":
        compute, end = crc.icrc_roce_ipv6, 40 + int.from_bytes(frame[18:20], "big")
    else:
        compute, end = crc.icrc_roce_v1, 40 + int.from_bytes(frame[18:20], "big")
    return compute(frame[14 : 14 + end - 4]).to_bytes(4, "little")


@pytest.mark.parametrize("name", GOLDEN)
def test_icrc_of_golden_frames(name: str) -> None:
    assert icrc_on_ethernet(GOLDEN[name]) == GOLDEN[name][-4:]


@pytest.mark.parametrize(("packet", "compute"), [(SAMPLE_LOCAL, crc.icrc_local), (SAMPLE_GLOBAL, crc.icrc_global)])
def test_sample_packets_of_the_specification(packet: bytes, compute: Icrc) -> None:
    assert compute(packet[:-6]).to_bytes(4, "little") == packet[-6:-2]
    assert crc.vcrc(packet[:-2]).to_bytes(2, "little") == packet[-2:]


@pytest.mark.parametrize("packet", ["100037FFD63E", "012304561CB3"])
def test_vcrc_is_a_flow_control_packets_lpcrc(packet: str) -> None:
    data = bytes.fromhex(packet)
    assert crc.vcrc(data[:4]).to_bytes(2, "little") == data[4:]


def test_fcs_check_value() -> None:
    assert crc.fcs(b"123456789") == 0xCBF43926


@given(st.binary(max_size=80))
def test_polynomials_bit_by_bit(data: bytes) -> None:
    assert crc.vcrc(data) == bitwise(data, 16, 0xD008)
    assert crc.fcs(data) == bitwise(data, 32, 0xEDB88320)


@given(st.binary(min_size=80, max_size=120), st.integers(5, 6))
def test_icrc_bit_by_bit(data: bytes, words: int) -> None:
    """The masked packet written out as in the specification's tables, `words` of IPv4 header."""
    ipv4 = bytes([0x40 | words]) + data[1:]
    udp = words * 4
    masked = bytearray(ipv4)
    for index in (1, 8, 10, 11, udp + 6, udp + 7, udp + 12):
        masked[index] = 0xFF
    assert crc.icrc_roce_ipv4(ipv4) == bitwise(b"\xff" * 8 + masked, 32, 0xEDB88320)

    masked = bytearray(data)
    masked[0] |= 0x0F
    for index in (1, 2, 3, 7, 46, 47, 52):
        masked[index] = 0xFF
    assert crc.icrc_roce_ipv6(data) == bitwise(b"\xff" * 8 + masked, 32, 0xEDB88320)

    masked = bytearray(data)
    masked[0] |= 0xF0
    masked[12] = 0xFF
    assert crc.icrc_local(data) == bitwise(masked, 32, 0xEDB88320)


def test_icrc_takes_any_buffer_and_continues() -> None:
    packet = GOLDEN["write_only"][14:-4]
    whole = crc.icrc_roce_ipv4(packet)
    assert crc.icrc_roce_ipv4(bytearray(packet)) == crc.icrc_roce_ipv4(memoryview(packet)) == whole
    assert zlib.crc32(packet[60:], crc.icrc_roce_ipv4(packet[:60])) == whole


def test_shared_vectors(shared_data: Path) -> None:
    found = vectors(shared_data)
    assert len(found) > 50
    for vector in found:
        if not vector.native:
            assert icrc_on_ethernet(vector.data) == vector.icrc, vector.name
            continue
        compute = crc.icrc_global if vector.data[1] & 3 == 3 else crc.icrc_local
        assert compute(vector.data[:-6]).to_bytes(4, "little") == vector.icrc, vector.name
        assert crc.vcrc(vector.data[:-2]).to_bytes(2, "little") == vector.vcrc, vector.name


def test_every_frame_of_a_real_driver(shared_data: Path) -> None:
    count = 0
    for frame in captured_roce(shared_data):
        end = 14 + int.from_bytes(frame[16:18], "big") if frame[12:14] == b"\x08\x00" else len(frame)
        assert icrc_on_ethernet(frame) == frame[end - 4 : end]
        count += 1
    assert count > 200
