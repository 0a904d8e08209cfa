"""Maps to classes: the customary ones, exceptions to them, and what lies outside."""

from __future__ import annotations

from typing import Any

import pytest

from emu.errors import ScenarioError
from emu.linklayer.classes import PriorityMap, SlToVl


def test_the_customary_maps() -> None:
    custom = PriorityMap()
    assert (custom.by_dscp[26], custom.by_dscp[48], custom.by_dscp[0], len(custom.by_dscp)) == (3, 6, 0, 64)
    assert custom.by_pcp == custom.queues == tuple(range(8))


def test_exceptions_to_them() -> None:
    made = PriorityMap(
        dscp_to_priority={3: 3, 4: 4}, pcp_to_priority={0: 1}, priority_to_queue={5: 0}, lossless=frozenset({3, 4})
    )
    assert made.by_dscp[2:6] == (0, 3, 4, 0)
    assert made.by_pcp == (1, 1, 2, 3, 4, 5, 6, 7)
    assert made.queues == (0, 1, 2, 3, 4, 0, 6, 7)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"dscp_to_priority": {64: 3}}, "DSCP 64: 0 to 63"),
        ({"dscp_to_priority": {-1: 3}}, "DSCP -1"),
        ({"dscp_to_priority": {26: 8}}, "DSCP 26: priority 8: 0 to 7"),
        ({"pcp_to_priority": {8: 0}}, "PCP 8"),
        ({"priority_to_queue": {0: 8}}, "priority 0: queue 8: 0 to 7"),
        ({"lossless": frozenset({8})}, "lossless priority 8"),
        (
            {"lossless": frozenset({3, 4}), "priority_to_queue": {4: 3}},
            "lossless priorities 3 and 4 share queue 3",
        ),
    ],
)
def test_what_lies_outside_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        PriorityMap(**values)


def test_a_lossless_and_a_lossy_priority_may_share_a_queue() -> None:
    assert PriorityMap(lossless=frozenset({3}), priority_to_queue={4: 3}).queues[4] == 3


def test_sl_to_vl() -> None:
    assert SlToVl(vls=1).by_sl == (0,) * 16
    assert SlToVl(vls=4, table={15: 0}).by_sl == (0, 1, 2, 3) * 3 + (0, 1, 2, 0)
    for values, message in (
        ((0, {}), "0 data VLs"),
        ((16, {}), "1 to 15"),
        ((2, {16: 0}), "SL 16"),
        ((2, {0: 2}), "VL 2"),
    ):
        with pytest.raises(ScenarioError, match=message):
            SlToVl(vls=values[0], table=values[1])
