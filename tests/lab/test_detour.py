"""Bytes really changed and delayed on their way, by another process beside the fabric: taken as they come out."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

from emu.measure.result import comparable
from tests.lab.detour import detour
from tests.lab.fabrics import process_at
from tests.lab.outside import LINK, Outside, told, undisturbed

pytestmark = pytest.mark.lab
DELAYS_MS = (0, 2)


def around(change: str, delay_ms: float = 0, name: str = LINK, **options: Any) -> tuple[Outside, dict[str, Any]]:
    """A run whose link is led around, and its result."""
    with ExitStack() as undo:

        def lay(them: Outside) -> None:
            node = name.partition("-")[0]
            undo.enter_context(detour(process_at(node), them.interface(name), change, delay_ms))

        outside = Outside((10, lay), **options)
        return outside, outside.run()


@pytest.mark.parametrize("delay_ms", DELAYS_MS)
@pytest.mark.parametrize("name", ["h0-leaf0", LINK])
def test_frames_that_come_late_as_they_were_sent_change_nothing(name: str, delay_ms: float) -> None:
    outside, result = around("nothing", delay_ms, name)
    if delay_ms:
        assert outside.wire(name).slow_calls >= 32  # it waited for them
    assert comparable(result) == comparable(undisturbed())


@pytest.mark.parametrize("delay_ms", DELAYS_MS)
def test_every_frame_changed_with_a_right_icrc_is_read_again(delay_ms: float) -> None:
    outside, result = around("ttl", delay_ms)
    wire = outside.wire(LINK)
    assert wire.changed == 96  # the others had gone before it was laid
    assert (wire.lost, wire.foreign) == (0, 0)
    assert result["disturbed"]
    assert result["warnings"] == [f"wire {LINK}: a frame came out changed; its ICRC is right, so it was read again"]
    assert told(result) == told(undisturbed())


@pytest.mark.parametrize("delay_ms", DELAYS_MS)
@pytest.mark.parametrize("switching", ["cut_through", "store_and_forward"])
def test_a_flipped_bit_is_dropped_where_the_link_crc_is_checked_and_sent_again(switching: str, delay_ms: float) -> None:
    outside, result = around("bit", delay_ms, more=f", switching: {switching}")
    store = switching == "store_and_forward"
    dropped_at = outside.fabric.switches["spine0"] if store else outside.fabric.nics["h3"]
    assert result["drops"]["by_reason"] == dropped_at.dropped == {"bad_crc": 1}
    assert (result["messages"]["completed"], result["messages"]["failed"]) == (8, 0)
    assert result["flows"][0]["retransmitted"] >= 1
    assert result["frames"]["lost_on_wire"] == 0
    assert result["disturbed"]
    assert result["warnings"] == [f"wire {LINK}: a frame came out changed; its link CRC counts as bad"]
