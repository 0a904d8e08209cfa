"""Seven sums in one integer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from emu.parts import CONTROL, FLOW_CONTROL, NIC, PARTS, QUEUEING, pack, unpack, weight

times_ps = st.integers(0, 10**18)
rows = st.lists(times_ps, min_size=len(PARTS), max_size=len(PARTS))


@given(rows)
def test_what_is_packed_comes_out(row: list[int]) -> None:
    assert unpack(pack(*row)) == tuple(row)


@given(rows, rows)
def test_adding_adds_each_part(one: list[int], other: list[int]) -> None:
    assert unpack(pack(*one) + pack(*other)) == tuple(a + b for a, b in zip(one, other, strict=True))


@given(times_ps, times_ps, times_ps, st.sampled_from([NIC, FLOW_CONTROL]))
def test_a_wait_is_spread_without_a_rest(data_ps: int, control_ps: int, idle_ps: int, idle_part: int) -> None:
    gap_ps = data_ps + control_ps + idle_ps
    waits = data_ps * weight(QUEUEING, idle_part) + control_ps * weight(CONTROL, idle_part)
    assert (gap_ps << idle_part) + waits == (data_ps << QUEUEING) + (control_ps << CONTROL) + (idle_ps << idle_part)
