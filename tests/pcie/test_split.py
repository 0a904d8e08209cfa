"""Where transfers are cut: nothing missing, nothing twice, and never where the specification forbids it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.errors import ScenarioError
from emu.pcie.layout import length_dw
from emu.pcie.split import SIZES_BYTES, check_sizes, completion_pieces, request_pieces

ADDRESSES = st.integers(0, 3 * 4096)
LENGTHS = st.integers(1, 3 * 4096)
LIMITS = st.sampled_from(SIZES_BYTES)


def are_seamless(pieces: list[tuple[int, int]], address: int, length: int) -> bool:
    ends = [at + piece_bytes for at, piece_bytes in pieces]
    return [at for at, _ in pieces] == [address, *ends[:-1]] and ends[-1] == address + length


@pytest.mark.parametrize(
    ("address", "length", "limit", "lengths"),
    [
        (0, 64, 256, [64]),
        (0, 512, 256, [256, 256]),
        (64, 256, 256, [256]),
        (4032, 256, 256, [64, 192]),
        (4095, 2, 128, [1, 1]),
        (2, 128, 128, [126, 2]),  # 128 bytes from there on touch 33 DWs
        (0, 4096, 4096, [4096]),
        (8, 4096, 4096, [4088, 8]),
        (8, 0, 128, []),
    ],
)
def test_requests(address: int, length: int, limit: int, lengths: list[int]) -> None:
    assert [piece_bytes for _, piece_bytes in request_pieces(address, length, limit)] == lengths


@pytest.mark.parametrize(
    ("address", "length", "mps", "rcb", "lengths"),
    [
        (0, 64, 256, 64, [64]),
        (0, 512, 256, 64, [256, 256]),
        (32, 512, 256, 64, [224, 256, 32]),
        (64, 512, 256, 64, [256, 256]),
        (64, 512, 256, 128, [192, 256, 64]),
        (60, 8, 256, 64, [8]),  # a read that fits one packet need not be cut at a boundary
        (2, 256, 256, 64, [254, 2]),
        (100, 300, 128, 128, [28, 128, 128, 16]),
    ],
)
def test_completions(address: int, length: int, mps: int, rcb: int, lengths: list[int]) -> None:
    assert [piece_bytes for _, piece_bytes in completion_pieces(address, length, mps, rcb)] == lengths


@given(ADDRESSES, LENGTHS, LIMITS)
def test_no_request_is_too_long_or_crosses_4_kb(address: int, length: int, limit: int) -> None:
    pieces = request_pieces(address, length, limit)
    assert are_seamless(pieces, address, length)
    for at, piece_bytes in pieces:
        assert 0 < length_dw(at, piece_bytes) * 4 <= limit
        assert at // 4096 == (at + piece_bytes - 1) // 4096


@given(ADDRESSES, LENGTHS, LIMITS, st.sampled_from([64, 128]))
def test_all_completions_but_the_last_end_at_the_boundary(address: int, length: int, mps: int, rcb: int) -> None:
    pieces = completion_pieces(address, length, mps, rcb)
    assert are_seamless(pieces, address, length)
    assert all(0 < length_dw(at, piece_bytes) * 4 <= mps for at, piece_bytes in pieces)
    assert all((at + piece_bytes) % rcb == 0 for at, piece_bytes in pieces[:-1])
    assert all(piece_bytes == mps for _, piece_bytes in pieces[1:-1])


@pytest.mark.parametrize("sizes", [{"mps_bytes": 64}, {"mrrs_bytes": 300}, {"rcb_bytes": 256}])
def test_sizes_without_a_code(sizes: dict[str, int]) -> None:
    with pytest.raises(ScenarioError, match="it is one of"):
        check_sizes(**sizes)
