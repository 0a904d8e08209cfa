"""Pausing over time: the timer of a paused priority, and what the pausing port tells its peer and tells it again.

IEEE 802.1Qbb, 802.3 annex 31B: a pause lasts for quanta of 512 bit times of that link and reloads with each frame.
"""

from __future__ import annotations

from dataclasses import dataclass

from emu.errors import InvariantBroken, ScenarioError
from emu.units import SECOND

QUANTUM_BITS = 512
MAX_QUANTA = 0xFFFF
PRIORITIES = 8


def quanta_ps(quanta: int, rate_bps: int) -> int:
    """How long a pause of so many quanta is on a link of that rate, in picoseconds, rounded up."""
    return -(-quanta * QUANTUM_BITS * SECOND // rate_bps)


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseConfig:
    """How long one pause frame pauses, and how long a frame for it may have to wait for the wire."""

    rate_bps: int
    quanta: int = MAX_QUANTA
    guard_ps: int  # the largest frame's serialization and the pause frame's own, at least

    def __post_init__(self) -> None:
        if not 1 <= self.quanta <= MAX_QUANTA:
            raise ScenarioError(f"a pause of {self.quanta} quanta: 1 to {MAX_QUANTA}")
        if self.guard_ps < 0:
            raise ScenarioError(f"a guard of {self.guard_ps} ps: at least 0")
        if self.refresh_ps <= 0:
            raise ScenarioError(
                f"a pause of {self.quanta} quanta is over after {quanta_ps(self.quanta, self.rate_bps)} ps:"
                f" too soon to be refreshed, which may take {self.guard_ps} ps"
            )

    @property
    def refresh_ps(self) -> int:
        """After so long a paused peer must be told again, to be told in time."""
        return quanta_ps(self.quanta, self.rate_bps) - self.guard_ps


class PauseSchedule:
    """What one port tells its peer. A frame names all that is paused, and all that no longer is."""

    __slots__ = ("_quanta", "_refresh_due", "_refresh_ps", "deadline_ps", "frames", "paused", "told")

    def __init__(self, config: PauseConfig) -> None:
        self._quanta = config.quanta
        self._refresh_ps = config.refresh_ps
        self._refresh_due = False
        self.paused = 0  # bit n: priority n should be paused
        self.told = 0  # bit n: the last frame that left paused it
        self.deadline_ps = -1  # when `on_deadline` should be called; -1: never
        self.frames = 0

    @property
    def is_due(self) -> bool:
        """Whether a frame should leave as soon as it can; asked again when the wire is free, as it may not any more."""
        return self.paused != self.told or self._refresh_due

    def want(self, priority: int, paused: bool) -> bool:
        """XOFF or XON for one priority; returns whether a frame should leave as soon as it can."""
        bit = 1 << priority
        self.paused = self.paused | bit if paused else self.paused & ~bit
        return self.is_due

    def on_deadline(self, now_ps: int) -> bool:
        """The peer's pause would soon be over; returns whether a frame should leave. Too early a call does nothing."""
        if 0 <= self.deadline_ps <= now_ps:
            self.deadline_ps = -1
            # Also where XON waits for the wire only: XOFF may be wanted again before it has left.
            self._refresh_due = self.paused | self.told != 0
        return self.is_due

    def frame_out(self, now_ps: int) -> tuple[int, tuple[int, ...]]:
        """The first bit of a frame leaves: the priorities it names (bit n: n), and the quanta of each of the eight."""
        paused, quanta = self.paused, self._quanta
        named = paused | self.told
        if not named:
            raise InvariantBroken("a pause frame leaves that has nothing to say")
        self.told = paused
        self._refresh_due = False
        self.deadline_ps = now_ps + self._refresh_ps if paused else -1
        self.frames += 1
        return named, tuple(quanta if paused >> priority & 1 else 0 for priority in range(PRIORITIES))


class PauseTimer:
    """The paused side, one priority: asked at frame boundaries whether the next frame may start."""

    __slots__ = ("_paused_ps", "_quantum_num", "_rate_bps", "_response_ps", "_resume_ps", "from_ps", "until_ps")

    def __init__(self, rate_bps: int, *, response_ps: int = 0, resume_ps: int = 0) -> None:
        if response_ps < 0 or resume_ps < 0:
            raise ScenarioError(f"a response to pause frames after {min(response_ps, resume_ps)} ps: at least 0")
        self._rate_bps = rate_bps
        self._quantum_num = QUANTUM_BITS * SECOND
        self._response_ps = response_ps  # from an XOFF's last bit in until it is obeyed
        self._resume_ps = resume_ps  # and for an XON
        self._paused_ps = 0  # by pauses that are over
        self.from_ps = 0  # no frame may start from here
        self.until_ps = 0  # to here, this instant not included

    def on_quanta(self, quanta: int, now_ps: int) -> None:
        """The last bit of a frame that names this priority is in: XOFF for so many quanta, or XON with none."""
        if not quanta:
            self._resume(now_ps)
            return
        if now_ps >= self.until_ps:  # else paused, or soon to be, already: only the time is reloaded
            self._settle()
            self.from_ps = now_ps + self._response_ps
        self.until_ps = now_ps - (-quanta * self._quantum_num // self._rate_bps)

    def may_start(self, now_ps: int) -> bool:
        """Whether a frame may start now."""
        return not self.from_ps <= now_ps < self.until_ps

    def is_pending(self, now_ps: int) -> bool:
        """Whether a pause is in force, or will be once the response time is over."""
        return now_ps < self.until_ps

    def paused_ps(self, now_ps: int) -> int:
        """For how long no frame was allowed to start, up to now."""
        return self._paused_ps + max(0, min(now_ps, self.until_ps) - self.from_ps)

    def _resume(self, now_ps: int) -> None:
        if now_ps >= self.until_ps:
            return
        if now_ps < self.from_ps:
            self.until_ps = now_ps  # the XOFF was not obeyed yet: it never will be
        else:
            self.until_ps = min(self.until_ps, now_ps + self._resume_ps)

    def _settle(self) -> None:
        self._paused_ps += max(0, self.until_ps - self.from_ps)
