"""InfiniBand congestion control at a channel adapter: BECN in, a delay between frames out of a table.

IBTA vol. 1, annex A10. Every BECN moves an index (CCTI) up the congestion control table (CCT), a timer moves it down
one by one; the entry there says how long to wait after a frame, in times of that frame.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from emu.congestion.base import Paced, gap_ps
from emu.errors import ScenarioError
from emu.units import NS

TIMER_UNIT_PS = 1024 * NS  # CCTI_Timer counts 1.024 us
MULTIPLIER_MASK = 0x3FFF  # a CCT entry: two bits of shift above fourteen of multiplier
SHIFT_POSITION = 14
ENTRY_MASK = 0xFFFF


def linear_table(entries: int, shift: int = 0) -> tuple[int, ...]:
    """Entry i delays by i / 2 ** `shift` frame times: at shift 0 the rate is the line's / (1 + i)."""
    return tuple(shift << SHIFT_POSITION | multiplier for multiplier in range(entries))


@dataclass(frozen=True, slots=True, kw_only=True)
class IbCcaConfig:
    """A channel adapter's congestion setting (CACongestionEntry) and table. Raises ScenarioError.

    The defaults are assumed, in the manner of Gran et al., First Experiences with Congestion Control in InfiniBand
    Hardware, IPDPS 2010; steps of a quarter of a frame time, down to 1/32 of the line.
    """

    ccti_increase: int = 1
    ccti_timer: int = 150  # units of 1.024 us
    ccti_min: int = 0
    trigger_threshold: int = 1  # events are counted from this index on; 0: none are
    table: tuple[int, ...] = field(default_factory=lambda: linear_table(128, shift=2))  # its last index is CCTI_Limit

    def __post_init__(self) -> None:
        checks = (
            (bool(self.table), "the table has at least one entry"),
            (all(0 <= entry <= ENTRY_MASK for entry in self.table), "a table entry has 16 bits"),
            (0 <= self.ccti_min < len(self.table), "CCTI_Min is an index of the table"),
            (0 < self.ccti_increase <= 0xFF, "CCTI_Increase is between 1 and 255"),
            (0 < self.ccti_timer <= 0xFFFF, "CCTI_Timer is between 1 and 65535"),
            (0 <= self.trigger_threshold <= 0xFF, "Trigger_Threshold is between 0 and 255"),
        )
        for holds, rule in checks:
            if not holds:
                raise ScenarioError(f"ib_cca: {rule}")


class IbCca(Paced):
    """One flow's (queue pair's or service level's) place in the table."""

    __slots__ = ("_config", "_due_ps", "ccti", "cnps", "events")

    def __init__(self, config: IbCcaConfig, line_rate_bps: int) -> None:
        super().__init__(line_rate_bps)
        self._config = config
        self._due_ps = -1  # when the timer expires; -1: it does not run
        self.cnps = 0
        self.events = 0  # notifications at or above the trigger threshold: the congestion log's threshold events
        self._move_to(config.ccti_min)

    def on_cnp(self, now_ps: int) -> None:
        """A BECN came in: up by CCTI_Increase, at most to the table's end; a timer that runs runs on."""
        self.on_timer(now_ps)
        config = self._config
        self.cnps += 1
        self._move_to(min(self.ccti + config.ccti_increase, len(config.table) - 1))
        if self._due_ps < 0 and self.ccti > config.ccti_min:
            self._due_ps = now_ps + config.ccti_timer * TIMER_UNIT_PS
        if config.trigger_threshold and self.ccti >= config.trigger_threshold:
            self.events += 1

    def on_timer(self, now_ps: int) -> int | None:
        """Down by one at each expiry, until CCTI_Min; when the next one is."""
        while 0 <= self._due_ps <= now_ps:
            self._move_to(self.ccti - 1)
            runs_on = self.ccti > self._config.ccti_min
            self._due_ps = self._due_ps + self._config.ccti_timer * TIMER_UNIT_PS if runs_on else -1
        return None if self._due_ps < 0 else self._due_ps

    def _move_to(self, ccti: int) -> None:
        self.ccti = ccti
        multiplier, shift = self._delay()
        self.rate_bps = max(1, (self.line_rate_bps << shift) // ((1 << shift) + multiplier))

    def _delay(self) -> tuple[int, int]:
        entry = self._config.table[self.ccti]
        return entry & MULTIPLIER_MASK, entry >> SHIFT_POSITION

    def _gap_ps(self, wire_bytes: int) -> int:
        """The frame's own time, then its injection rate delay: (time x multiplier) / 2 ** shift, rounded up."""
        multiplier, shift = self._delay()
        own_ps = gap_ps(wire_bytes, self.line_rate_bps)
        return own_ps + -(-own_ps * multiplier >> shift)
