"""What data on a bus is taken for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.mlx5 import cqe, doorbell, wqe
from emu.mlx5.dissect import CQE_NAMES, meaning
from tests.mlx5.test_cqe import LITERAL as CQES
from tests.mlx5.wqes import cqes, wqes


@given(wqes())
def test_every_wqe_is_known_by_its_name(one: wqe.Wqe) -> None:
    line = f"{one.opcode.name} QP 0x{one.qp_num:x} WQE {one.index}"
    block = wqe.encode(one)
    assert meaning(block, writes=False) == line
    assert meaning(block + block, writes=False) == f"{line}, {line}"
    assert meaning(block[:8], writes=True) == f"doorbell {line}"
    assert meaning(block[:-1], writes=True) == meaning(block[:8], writes=False) == ""


@given(cqes())
def test_every_cqe_is_known_where_it_is_written(one: cqe.Cqe) -> None:
    data = cqe.encode(one)
    said = meaning(data, writes=True)
    if one.qp_num and one.opcode in CQE_NAMES:
        assert said == f"CQE {CQE_NAMES[one.opcode]} QP 0x{one.qp_num:x} WQE {one.wqe_counter}"
    else:
        assert not said.startswith("CQE")


@given(st.integers(0, 0xFFFF), st.integers(1, 0xFFFFFF))
def test_every_doorbell(counter: int, qp_num: int) -> None:
    data = doorbell.encode_doorbell(counter, qp_num)
    assert meaning(data, writes=True) == f"doorbell QP 0x{qp_num:x} producer {counter}"
    assert meaning(data, writes=False) == ""


@pytest.mark.parametrize(
    "data",
    [b"", bytes(8), bytes(64), bytes(4096), cqe.INVALID_CQE, b"\xff" * 8, b"\xff" * 64, doorbell.encode_doorbell(1, 0)],
)
def test_what_is_none_of_them(data: bytes) -> None:
    assert meaning(data, writes=True) == meaning(data, writes=False) == ""


def test_what_was_read_is_no_cqe() -> None:
    assert meaning(cqe.encode(CQES["write done"][0]), writes=False) == ""


@given(
    st.one_of(st.binary(max_size=200), st.integers(1, 4).flatmap(lambda n: st.binary(min_size=n * 64, max_size=n * 64)))
)
def test_any_bytes_are_taken(data: bytes) -> None:
    for writes in (False, True):
        assert "\n" not in meaning(data, writes=writes)
