"""DCQCN's reaction point: one flow's rate, cut by notifications, won back by a timer and a byte counter.

Rates are whole bits per second: a cut rounds down, the average of rate and target rounds up (else it would never get
there). What falls on the same instant: the cut first (it restarts the timer), then the timer; a notification that
comes in at the end of a monitor period belongs to the next one.
"""

from __future__ import annotations

from emu.congestion.alpha import FRACTION_BITS, Alpha
from emu.congestion.base import Paced
from emu.congestion.dcqcn_config import DcqcnConfig
from emu.errors import ScenarioError

NEVER_PS = 1 << 80


class Dcqcn(Paced):
    """Zhu et al., SIGCOMM 2015, section 5, or what adapters make of it: see DcqcnConfig."""

    __slots__ = (
        "_alpha",
        "_byte_stage",
        "_bytes_left",
        "_config",
        "_cut_due_ps",
        "_first_cnp_ps",
        "_time_stage",
        "_timer_due_ps",
        "cnps",
        "cuts",
        "increases",
        "target_bps",
    )

    def __init__(self, config: DcqcnConfig, line_rate_bps: int) -> None:
        """Raises ScenarioError if the least rate is above the line's."""
        super().__init__(line_rate_bps)
        if config.min_rate_bps > line_rate_bps:
            raise ScenarioError(f"dcqcn: least rate {config.min_rate_bps} bps is above the line's, {line_rate_bps} bps")
        self._config = config
        self._alpha = Alpha(
            config.initial_alpha_1024 << FRACTION_BITS - 10,
            config.alpha_keep_1024,
            config.alpha_period_ps,
            at_cnp=config.alpha_at_cnp,
        )
        self._first_cnp_ps = -1  # monitor periods are counted from it
        self._cut_due_ps = NEVER_PS
        self._timer_due_ps = NEVER_PS  # NEVER_PS too while rate and target are the line's: nothing to win back
        self._time_stage = 0
        self._byte_stage = 0
        self._bytes_left = config.byte_counter_bytes
        self.target_bps = line_rate_bps
        self.cnps = 0
        self.cuts = 0
        self.increases = 0

    def alpha_at(self, now_ps: int) -> int:
        """The congestion estimate, of emu.congestion.alpha.ONE."""
        return self._alpha.at(now_ps)

    def on_cnp(self, now_ps: int) -> None:
        """A CNP came in: cut now, or at the end of this monitor period."""
        self.on_timer(now_ps)
        config = self._config
        self.cnps += 1
        if self._first_cnp_ps < 0:
            self._first_cnp_ps = now_ps
            if config.rate_on_first_cnp_bps:
                self.rate_bps = self.target_bps = min(self.rate_bps, config.rate_on_first_cnp_bps)
        if config.monitor_period_ps == 0:
            self._cut(now_ps)
        else:
            since_ps = (now_ps - self._first_cnp_ps) % config.monitor_period_ps
            self._cut_due_ps = now_ps - since_ps + config.monitor_period_ps
        self._alpha.on_cnp(now_ps)

    def on_bytes_sent(self, wire_bytes: int, now_ps: int) -> None:
        """Every `byte_counter_bytes` sent since the last cut are an increase."""
        self.on_timer(now_ps)
        if self._timer_due_ps == NEVER_PS:
            return
        self._bytes_left -= wire_bytes
        while self._bytes_left <= 0:
            self._bytes_left += self._config.byte_counter_bytes
            self._byte_stage += 1
            self._increase()

    def on_timer(self, now_ps: int) -> int | None:
        """Work off cuts and timer increases due by now; when the next one is."""
        while True:
            due_ps = min(self._cut_due_ps, self._timer_due_ps)
            if due_ps > now_ps:
                return None if due_ps == NEVER_PS else due_ps
            if due_ps == self._cut_due_ps:
                self._cut(due_ps)
            else:
                self._timer_due_ps += self._config.rate_timer_ps
                self._time_stage += 1
                self._increase()

    def _cut(self, now_ps: int) -> None:
        config = self._config
        if config.clamp_target or self._byte_stage or (config.clamp_target_after_timer and self._time_stage):
            self.target_bps = self.rate_bps
        # Until the first cut alpha is the initial one: its clock starts here.
        alpha = self._alpha.at(now_ps) >> FRACTION_BITS - config.alpha_bits
        self._alpha.start(now_ps)
        rate_bps = self.rate_bps * ((1 << config.gain_divisor_bits) - alpha) >> config.gain_divisor_bits
        least_bps = max(self.rate_bps * config.least_factor_percent // 100, config.min_rate_bps)
        self.rate_bps = max(rate_bps, least_bps)
        self._cut_due_ps = NEVER_PS
        self._timer_due_ps = now_ps + config.rate_timer_ps
        self._time_stage = self._byte_stage = 0
        self._bytes_left = config.byte_counter_bytes
        self.cuts += 1

    def _increase(self) -> None:
        """Fast recovery up to F steps of both sources; then additive; hyper when both are past F."""
        config = self._config
        step = min(self._time_stage, self._byte_stage) - config.threshold
        if step > 0:
            self.target_bps += config.hyper_bps * (step if config.hyper_grows else 1)
        elif max(self._time_stage, self._byte_stage) >= config.threshold:
            self.target_bps += config.additive_bps
        self.target_bps = min(self.target_bps, self.line_rate_bps)
        self.rate_bps = (self.rate_bps + self.target_bps + 1) // 2
        self.increases += 1
        if self.rate_bps == self.line_rate_bps:
            self._timer_due_ps = NEVER_PS
