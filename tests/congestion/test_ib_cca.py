"""InfiniBand congestion control: the index goes up with BECNs and down with time; the table says what it means."""

from __future__ import annotations

from dataclasses import replace

import pytest

from emu.congestion.ib_cca import SHIFT_POSITION, TIMER_UNIT_PS, IbCca, IbCcaConfig, linear_table
from emu.errors import ScenarioError

LINE_BPS = 100 * 10**9
BYTE_PS = 80
CONFIG = IbCcaConfig(ccti_increase=2, ccti_timer=10, ccti_min=1, trigger_threshold=5, table=linear_table(8))
PERIOD_PS = 10 * TIMER_UNIT_PS


def test_it_begins_at_the_least_index() -> None:
    flow = IbCca(CONFIG, LINE_BPS)
    assert (flow.ccti, flow.rate_bps, flow.on_timer(10**12)) == (1, LINE_BPS // 2, None)


def test_up_by_the_increase_down_by_one_a_period() -> None:
    flow = IbCca(CONFIG, LINE_BPS)
    flow.on_cnp(1000)
    assert (flow.ccti, flow.on_timer(1000)) == (3, 1000 + PERIOD_PS)
    flow.on_cnp(2000)  # the timer runs on
    assert (flow.ccti, flow.on_timer(2000)) == (5, 1000 + PERIOD_PS)
    assert flow.on_timer(1000 + PERIOD_PS) == 1000 + 2 * PERIOD_PS
    assert flow.ccti == 4
    assert flow.on_timer(1000 + 3 * PERIOD_PS) == 1000 + 4 * PERIOD_PS
    assert flow.ccti == 2
    assert flow.on_timer(1000 + 4 * PERIOD_PS) is None
    assert flow.ccti == 1
    flow.on_cnp(10**12)
    assert flow.on_timer(10**12) == 10**12 + PERIOD_PS


def test_never_past_the_end_of_the_table() -> None:
    flow = IbCca(CONFIG, LINE_BPS)
    for _ in range(10):
        flow.on_cnp(0)
    assert (flow.ccti, flow.rate_bps) == (7, LINE_BPS // 8)


def test_threshold_events_are_counted_from_the_trigger_on() -> None:
    flow, quiet = IbCca(CONFIG, LINE_BPS), IbCca(replace(CONFIG, trigger_threshold=0), LINE_BPS)
    for _ in range(4):  # 3, 5, 7, 7
        flow.on_cnp(0)
        quiet.on_cnp(0)
    assert (flow.cnps, flow.events, quiet.events) == (4, 3, 0)


@pytest.mark.parametrize(
    ("shift", "multiplier", "delay_bytes"), [(0, 0, 0), (0, 1, 1000), (1, 3, 1500), (2, 1, 250), (3, 0x3FFF, 2047875)]
)
def test_an_entry_is_a_multiple_of_the_frames_own_time(shift: int, multiplier: int, delay_bytes: int) -> None:
    flow = IbCca(IbCcaConfig(table=(shift << SHIFT_POSITION | multiplier,)), LINE_BPS)
    assert flow.pace(1000, 500) == 500 + (1000 + delay_bytes) * BYTE_PS
    assert flow.rate_bps == LINE_BPS * 1000 // (1000 + delay_bytes)


def test_the_delay_is_rounded_up() -> None:
    flow = IbCca(IbCcaConfig(table=(3 << SHIFT_POSITION | 1,)), 8 * 10**12)  # a byte a picosecond, an eighth more
    assert flow.pace(9, 0) == 9 + 2


BAD = [
    (IbCcaConfig, {"table": ()}, "at least one"), (IbCcaConfig, {"table": (1 << 16,)}, "16 bits"),
    (IbCcaConfig, {"ccti_min": 128}, "index"), (IbCcaConfig, {"ccti_increase": 0}, "CCTI_Increase"),
    (IbCcaConfig, {"ccti_timer": 0}, "CCTI_Timer"), (IbCcaConfig, {"trigger_threshold": 256}, "Trigger"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "change", "rule"), BAD)
def test_settings_that_make_no_sense_are_refused(make: type[IbCcaConfig], change: dict[str, int], rule: str) -> None:
    with pytest.raises(ScenarioError, match=rule):
        make(**change)  # type: ignore[arg-type]
