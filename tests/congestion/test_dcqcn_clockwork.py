"""DCQCN against a plain clockwork in floating point that does everything every microsecond and nothing when asked."""

from __future__ import annotations

import random

import pytest

from emu.congestion.dcqcn import Dcqcn
from emu.congestion.dcqcn_config import PRESETS, DcqcnConfig
from emu.units import US

LINE_BPS = 25 * 10**9


class Clockwork:
    """One flow; in each microsecond alpha's clock, then the cut or else the timer, then notifications, then bytes."""

    def __init__(self, config: DcqcnConfig) -> None:
        self.config = config
        self.rate = self.target = float(LINE_BPS)
        self.alpha = config.initial_alpha_1024 / 1024
        self.seen = False
        self.alpha_at = self.timer_at = self.cut_at = self.first = -1
        self.stages = [0, 0]  # timer, byte counter
        self.counted = 0

    def microsecond(self, now: int, cnp: bool, sent: int) -> None:
        config = self.config
        if now == self.alpha_at:
            self.update_alpha(now, self.seen)
        if now == self.cut_at:
            self.cut(now)
        elif now == self.timer_at:
            self.timer_at += config.rate_timer_ps // US
            self.increase(0)
        if cnp and config.monitor_period_ps == 0:
            self.cut(now)
            self.update_alpha(now, True)
        elif cnp:
            self.first = now if self.first < 0 else self.first
            period = config.monitor_period_ps // US
            self.cut_at = self.first + ((now - self.first) // period + 1) * period
            self.seen = self.alpha_at > 0
        if self.timer_at > 0:
            self.counted += sent
            while self.counted >= config.byte_counter_bytes:
                self.counted -= config.byte_counter_bytes
                self.increase(1)

    def update_alpha(self, now: int, seen: bool) -> None:
        self.alpha = (self.alpha * self.config.alpha_keep_1024 + (1024 - self.config.alpha_keep_1024) * seen) / 1024
        self.alpha_at, self.seen = now + self.config.alpha_period_ps // US, False

    def cut(self, now: int) -> None:
        config = self.config
        if config.clamp_target or self.stages[1] or (self.stages[0] and config.clamp_target_after_timer):
            self.target = self.rate
        share = int(self.alpha * 2**config.alpha_bits) / 2**config.gain_divisor_bits
        self.rate = max(self.rate * (1 - share), config.min_rate_bps)
        self.timer_at, self.stages, self.counted = now + config.rate_timer_ps // US, [0, 0], 0
        if self.alpha_at < 0:
            self.alpha_at = now + config.alpha_period_ps // US

    def increase(self, source: int) -> None:
        config = self.config
        self.stages[source] += 1
        low, high = sorted(self.stages)
        if low > config.threshold:
            self.target += config.hyper_bps * (low - config.threshold if config.hyper_grows else 1)
        elif high >= config.threshold:
            self.target += config.additive_bps
        self.target = min(self.target, LINE_BPS)
        self.rate = (self.rate + self.target) / 2


@pytest.mark.parametrize("preset", list(PRESETS))
@pytest.mark.parametrize("mean_gap_us", [3, 40, 400, 3000])
def test_ten_milliseconds_of_random_notifications(preset: str, mean_gap_us: int) -> None:
    numbers = random.Random(f"{preset}/{mean_gap_us}")
    flow, clockwork = Dcqcn(PRESETS[preset], LINE_BPS), Clockwork(PRESETS[preset])
    lowest, increases = LINE_BPS, 0
    for now in range(1, 10_000):
        cnp, sent = numbers.random() < 1 / mean_gap_us, numbers.choice([0, 0, 3000, 30_000])
        clockwork.microsecond(now, cnp, sent)
        if cnp:
            flow.on_cnp(now * US)
        if sent:
            flow.on_bytes_sent(sent, now * US)
        flow.on_timer(now * US)
        assert flow.rate_bps == pytest.approx(clockwork.rate, rel=1e-5), now
        assert flow.target_bps == pytest.approx(clockwork.target, rel=1e-5), now
        lowest, increases = min(lowest, flow.rate_bps), flow.increases
    assert lowest < LINE_BPS * 6 // 10
    assert increases > 0 or mean_gap_us < 400
