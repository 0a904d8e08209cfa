"""DCQCN step by step, both presets, against figures worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from emu.congestion.alpha import ONE
from emu.congestion.dcqcn import Dcqcn
from emu.congestion.dcqcn_config import PRESETS, DcqcnConfig
from emu.errors import ScenarioError
from emu.units import US

ADAPTER, PAPER = PRESETS["adapter"], PRESETS["paper"]
GBPS, MBPS = 10**9, 10**6


def rates(flow: Dcqcn) -> tuple[int, int]:
    return flow.rate_bps, flow.target_bps


def test_paper_the_first_cnp_halves_the_rate_at_once() -> None:
    flow = Dcqcn(PAPER, 40 * GBPS)
    flow.on_cnp(100 * US)
    assert rates(flow) == (20 * GBPS, 40 * GBPS)
    assert flow.alpha_at(100 * US) == ONE
    assert flow.on_timer(100 * US) == 155 * US


def test_paper_step_by_step() -> None:
    flow = Dcqcn(PAPER, 40 * GBPS)
    flow.on_cnp(0)
    assert flow.on_timer(55 * US) == 110 * US
    assert rates(flow) == (30 * GBPS, 40 * GBPS)  # fast recovery: half the way back
    assert flow.alpha_at(55 * US) == ONE * 255 // 256
    flow.on_cnp(60 * US)  # alpha 255/256: 30 x (1 - 255/512), and alpha moves after the cut
    assert rates(flow) == (15_058_593_750, 30 * GBPS)
    assert flow.alpha_at(60 * US) == (ONE * 255 // 256 * 255 + ONE) // 256
    expected_bps = 15_058_593_750
    for tick in range(1, 5):  # 115, 170, 225, 280 us: fast recovery
        flow.on_timer((60 + 55 * tick) * US)
        expected_bps = (expected_bps + 30 * GBPS + 1) // 2
        assert rates(flow) == (expected_bps, 30 * GBPS)
    flow.on_timer((60 + 55 * 5) * US)  # the fifth: additive, 40 Mb/s
    assert rates(flow) == ((expected_bps + 30_040 * MBPS + 1) // 2, 30_040 * MBPS)


def test_paper_hyper_increase_grows_once_both_sources_are_past_five() -> None:
    flow = Dcqcn(PAPER, 400 * GBPS)
    for _ in range(3):
        flow.on_cnp(0)  # target 100, rate 50
    assert rates(flow) == (50 * GBPS, 100 * GBPS)
    flow.on_bytes_sent(60 * 10**6, 1 * US)  # six steps of the byte counter: the fifth and sixth additive
    assert flow.target_bps == 100_080 * MBPS
    flow.on_timer(5 * 55 * US)  # five of the timer: max > F, min not: additive each
    assert flow.target_bps == (100_080 + 5 * 40) * MBPS
    flow.on_timer(6 * 55 * US)  # both past five: i = 1
    assert flow.target_bps == (100_280 + 200) * MBPS
    flow.on_timer(7 * 55 * US)  # min(7, 6): still i = 1
    assert flow.target_bps == (100_480 + 200) * MBPS
    before_bps = flow.rate_bps
    flow.on_bytes_sent(10 * 10**6, 7 * 55 * US)  # min(7, 7): i = 2
    assert flow.target_bps == (100_680 + 400) * MBPS
    assert flow.rate_bps == (before_bps + flow.target_bps + 1) // 2


def test_adapter_the_first_cnp_cuts_at_the_end_of_its_period() -> None:
    flow = Dcqcn(ADAPTER, 10 * GBPS)
    flow.on_cnp(1 * US)
    assert flow.on_timer(5 * US - 1) == 5 * US
    assert rates(flow) == (10 * GBPS, 10 * GBPS)
    assert flow.on_timer(5 * US) == 305 * US
    assert rates(flow) == (10 * GBPS * (2048 - 1023) // 2048, 10 * GBPS)
    assert flow.rate_bps == 5_004_882_812


def test_adapter_step_by_step() -> None:
    flow = Dcqcn(ADAPTER, 10 * GBPS)
    flow.on_cnp(1 * US)
    flow.on_cnp(2 * US)  # the same period: one cut
    flow.on_timer(5 * US)
    assert (flow.cnps, flow.cuts) == (2, 1)
    flow.on_cnp(5_500_000)  # alpha's clock runs since 5 us: 6 us with, 7, 8 and 9 us without a notification
    assert flow.alpha_at(6 * US) >> 20 == 1023
    assert [flow.alpha_at(at * US) >> 20 for at in (7, 8)] == [1018, 1013]
    flow.on_timer(9 * US)  # 1008: alpha of 9 us first, then the cut
    assert rates(flow) == (5_004_882_812 * (2048 - 1008) // 2048, 10 * GBPS)  # no increase between: the target stays
    rate_bps = flow.rate_bps
    flow.on_timer(309 * US)  # threshold 1: additive from the first step on
    assert rates(flow) == ((rate_bps + 10 * GBPS + 1) // 2, 10 * GBPS)
    flow.on_cnp(310 * US)  # periods go on from the first notification: 309 to 313 us
    assert flow.on_timer(311 * US) == 313 * US
    before_bps = flow.rate_bps
    flow.on_timer(313 * US)
    assert flow.target_bps == before_bps  # the timer had raised it: the target is clamped
    flow.on_timer(613 * US)
    assert flow.target_bps == before_bps + 5 * MBPS


def test_adapter_byte_counter_and_hyper_increase() -> None:
    flow = Dcqcn(ADAPTER, 100 * GBPS)
    for period in range(2):
        flow.on_cnp(period * 4 * US)
    flow.on_timer(8 * US)
    target_bps = flow.target_bps
    flow.on_bytes_sent(32767 * 64 - 1, 9 * US)
    assert flow.increases == 0
    flow.on_bytes_sent(1, 9 * US)
    assert (flow.increases, flow.target_bps) == (1, target_bps)  # it is the line's already
    flow.on_cnp(9 * US)
    flow.on_timer(12 * US)  # clamped: the byte counter had raised it
    clamped_bps = flow.target_bps
    assert clamped_bps < target_bps
    flow.on_bytes_sent(2 * 32767 * 64, 13 * US)
    assert flow.target_bps == clamped_bps + 10 * MBPS
    flow.on_timer(312 * US)  # 1 and 2: not both past 1
    assert flow.target_bps == clamped_bps + 15 * MBPS
    flow.on_timer(612 * US)
    assert flow.target_bps == clamped_bps + 65 * MBPS
    flow.on_timer(912 * US)  # and no growth: min(3, 2)
    flow.on_bytes_sent(32767 * 64, 912 * US)
    assert flow.target_bps == clamped_bps + 165 * MBPS


@pytest.mark.parametrize(
    ("clamp", "after_timer", "by_timer", "clamped"),
    [(True, False, None, True), (False, True, None, False), (False, True, True, True), (False, False, True, False),
     (False, False, False, True)],
)  # fmt: skip
def test_when_a_cut_clamps_the_target(clamp: bool, after_timer: bool, by_timer: bool | None, clamped: bool) -> None:
    config = replace(PAPER, clamp_target=clamp, clamp_target_after_timer=after_timer)
    flow = Dcqcn(config, 10 * GBPS)
    flow.on_cnp(0)
    if by_timer:
        flow.on_timer(55 * US)
    elif by_timer is not None:
        flow.on_bytes_sent(10 * 10**6, 1 * US)
    before_bps = flow.rate_bps
    flow.on_cnp(56 * US - (0 if by_timer else 2 * US))
    assert (flow.target_bps == before_bps) == clamped


def test_a_notification_on_the_edge_belongs_to_the_next_period() -> None:
    flow = Dcqcn(ADAPTER, 10 * GBPS)
    flow.on_cnp(0)
    flow.on_cnp(4 * US)
    assert (flow.cuts, flow.on_timer(4 * US)) == (1, 8 * US)


def test_a_cut_on_the_timers_instant_comes_first_and_restarts_it() -> None:
    flow = Dcqcn(replace(ADAPTER, rate_timer_ps=8 * US), 10 * GBPS)
    flow.on_cnp(0)
    flow.on_cnp(9 * US)  # cut at 4, timer and cut at 12
    assert flow.on_timer(12 * US) == 20 * US
    assert (flow.cuts, flow.increases) == (2, 0)


def test_the_rate_stays_between_its_least_and_the_line() -> None:
    for config in (ADAPTER, PAPER):
        flow = Dcqcn(config, 10 * GBPS)
        for number in range(5000):
            flow.on_cnp(number * 5 * US)
        assert flow.rate_bps == config.min_rate_bps
        flow.on_timer(10**15)
        assert rates(flow) == (10 * GBPS, 10 * GBPS)
        assert flow.on_timer(10**15) is None  # nothing left to win back


def test_one_cut_leaves_half_of_the_rate_at_least() -> None:
    deep = replace(PAPER, gain_divisor_bits=30)  # alpha itself: all of it
    flow = Dcqcn(deep, 10 * GBPS)
    flow.on_cnp(0)
    assert flow.rate_bps == 5 * GBPS
    none_left = Dcqcn(replace(deep, least_factor_percent=0), 10 * GBPS)
    none_left.on_cnp(0)
    assert none_left.rate_bps == PAPER.min_rate_bps


def test_a_rate_can_be_set_on_the_first_cnp_only() -> None:
    flow = Dcqcn(replace(ADAPTER, rate_on_first_cnp_bps=2 * GBPS), 10 * GBPS)
    flow.on_cnp(0)
    assert rates(flow) == (2 * GBPS, 2 * GBPS)
    flow.on_timer(4 * US)
    after_bps = flow.rate_bps
    flow.on_cnp(5 * US)
    assert flow.rate_bps == after_bps


BAD = [
    ({"alpha_period_ps": 0}, "timers"), ({"rate_timer_ps": 0}, "timers"), ({"monitor_period_ps": -1}, "monitor"),
    ({"alpha_keep_1024": 1025}, "keeps"), ({"initial_alpha_1024": 0}, "initial alpha"), ({"alpha_bits": 31}, "bits"),
    ({"gain_divisor_bits": 9}, "gain divisor"), ({"least_factor_percent": 101}, "leaves"), ({"threshold": 0}, "above"),
    ({"byte_counter_bytes": 0}, "byte counter"), ({"additive_bps": -1}, "increases"), ({"min_rate_bps": 0}, "least"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "rule"), BAD)
def test_parameters_that_make_no_sense_are_refused(change: dict[str, int], rule: str) -> None:
    values = {name: getattr(ADAPTER, name) for name in DcqcnConfig.__dataclass_fields__} | change
    with pytest.raises(ScenarioError, match=rule):
        DcqcnConfig(**values)


def test_a_line_below_the_least_rate_is_refused() -> None:
    with pytest.raises(ScenarioError, match="above the line's"):
        Dcqcn(PAPER, 1 * MBPS)
