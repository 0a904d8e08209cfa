"""DCQCN's parameters, and the two sets of them that have names.

`adapter`: what ConnectX adapters read back (mlxconfig dumps) and NVIDIA's "DCQCN CC parameters" page say they do.
`paper`: Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015.
"""

from __future__ import annotations

from dataclasses import dataclass

from emu.congestion.alpha import FRACTION_BITS
from emu.errors import ScenarioError
from emu.units import US

MBPS = 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class DcqcnConfig:
    """A reaction point's parameters. Raises ScenarioError for those that make no sense.

    The cut is alpha, read to `alpha_bits` after the point, / 2 ** `gain_divisor_bits`.
    """

    monitor_period_ps: int  # a notification cuts at the end of the period it fell in; 0: at once
    alpha_period_ps: int
    alpha_at_cnp: bool  # alpha is updated by notifications and, without one for a period, by its clock
    alpha_keep_1024: int  # 1 - g, of 1024
    initial_alpha_1024: int
    alpha_bits: int
    gain_divisor_bits: int
    least_factor_percent: int  # one cut leaves at least this much of the rate
    rate_timer_ps: int
    byte_counter_bytes: int
    threshold: int  # F: steps of fast recovery
    additive_bps: int
    hyper_bps: int
    hyper_grows: bool  # the i-th hyper increase is i steps
    min_rate_bps: int
    clamp_target: bool  # every cut sets the target to the rate before it
    clamp_target_after_timer: bool  # else it does so after an increase by the byte counter; by the timer too if set
    rate_on_first_cnp_bps: int  # 0: unchanged

    def __post_init__(self) -> None:
        checks = (
            (self.monitor_period_ps >= 0, "a monitor period is not negative"),
            (self.alpha_period_ps > 0 and self.rate_timer_ps > 0, "the timers are above zero"),
            (0 <= self.alpha_keep_1024 <= 1024, "alpha keeps between 0 and 1024 of 1024"),
            (0 < self.initial_alpha_1024 <= 1024, "the initial alpha is between 1 and 1024 of 1024"),
            (0 < self.alpha_bits <= FRACTION_BITS, f"alpha is read to 1 to {FRACTION_BITS} bits"),
            (self.gain_divisor_bits >= self.alpha_bits, "the gain divisor is no smaller than alpha's one"),
            (0 <= self.least_factor_percent <= 100, "a cut leaves between 0 and 100 %"),
            (self.byte_counter_bytes > 0 and self.threshold > 0, "byte counter and threshold are above zero"),
            (self.additive_bps >= 0 and self.hyper_bps >= 0, "increases are not negative"),
            (self.min_rate_bps > 0 and self.rate_on_first_cnp_bps >= 0, "the least rate is above zero"),
        )
        for holds, rule in checks:
            if not holds:
                raise ScenarioError(f"dcqcn: {rule}: {self}")


PRESETS: dict[str, DcqcnConfig] = {
    "adapter": DcqcnConfig(
        monitor_period_ps=4 * US,  # RATE_REDUCE_MONITOR_PERIOD 4
        alpha_period_ps=1 * US,  # DCE_TCP_RTT 1
        alpha_at_cnp=False,
        alpha_keep_1024=1019,  # DCE_TCP_G 1019
        initial_alpha_1024=1023,  # INITIAL_ALPHA_VALUE 1023
        alpha_bits=10,
        gain_divisor_bits=11,  # RPG_GD 11
        least_factor_percent=50,  # RPG_MIN_DEC_FAC 50
        rate_timer_ps=300 * US,  # RPG_TIME_RESET 300
        byte_counter_bytes=32767 * 64,  # RPG_BYTE_RESET 32767; that it counts 64 B units is unverified
        threshold=1,  # RPG_THRESHOLD 1
        additive_bps=5 * MBPS,  # RPG_AI_RATE 5
        hyper_bps=50 * MBPS,  # RPG_HAI_RATE 50
        hyper_grows=False,
        min_rate_bps=1 * MBPS,  # RPG_MIN_RATE 1
        clamp_target=False,  # CLAMP_TGT_RATE 0
        clamp_target_after_timer=True,  # CLAMP_TGT_RATE_AFTER_TIME_INC 1
        rate_on_first_cnp_bps=0,  # RATE_TO_SET_ON_FIRST_CNP 0
    ),
    "paper": DcqcnConfig(
        monitor_period_ps=0,
        alpha_period_ps=55 * US,
        alpha_at_cnp=True,
        alpha_keep_1024=1020,  # g = 1/256
        initial_alpha_1024=1024,
        alpha_bits=FRACTION_BITS,
        gain_divisor_bits=FRACTION_BITS + 1,  # alpha / 2
        least_factor_percent=50,
        rate_timer_ps=55 * US,
        byte_counter_bytes=10 * 10**6,
        threshold=5,
        additive_bps=40 * MBPS,
        hyper_bps=200 * MBPS,  # not in the paper: the authors' simulator (ns3-rdma) has it
        hyper_grows=True,
        min_rate_bps=10 * MBPS,
        clamp_target=True,
        clamp_target_after_timer=True,
        rate_on_first_cnp_bps=0,
    ),
}
