"""What a congestion control is: notifications and bytes in, a rate out. Machines without I/O, one a flow."""

from __future__ import annotations

from typing import Protocol

from emu.units import SECOND


class RateControl(Protocol):
    """The rate of one flow. `now_ps` never goes back; events due by then are worked off first, in their order."""

    @property
    def rate_bps(self) -> int:
        """The rate as of the last call, in bits per second of wire bytes; never zero, never above the line's."""

    def on_cnp(self, now_ps: int) -> None:
        """A congestion notification (CNP or BECN) for this flow came in. Call `on_timer` after it."""

    def on_bytes_sent(self, wire_bytes: int, now_ps: int) -> None:
        """That many bytes of this flow were put on the wire."""

    def on_timer(self, now_ps: int) -> int | None:
        """Work off what is due, and say when to call again: None while nothing but a call can change the rate.

        Calling early or once more does no harm.
        """

    def pace(self, wire_bytes: int, now_ps: int) -> int:
        """A frame of the flow starts now: the earliest start of the next one, in picoseconds, at the rate of now."""

    def next_start_ps(self, now_ps: int) -> int:
        """The same for the last frame paced, at the rate of now: ask again when the rate has changed meanwhile."""


def gap_ps(wire_bytes: int, rate_bps: int) -> int:
    """From one frame's start to the next one's at this rate, rounded up to a whole picosecond."""
    return -(-8 * SECOND * wire_bytes // rate_bps)


class Paced:
    """Pacing by the rate: no credit is saved up while the flow is idle. Algorithms derive from it."""

    __slots__ = ("_bytes", "_start_ps", "line_rate_bps", "rate_bps")

    def __init__(self, line_rate_bps: int) -> None:
        self.line_rate_bps = line_rate_bps
        self.rate_bps = line_rate_bps
        self._start_ps = 0  # of the last frame paced
        self._bytes = 0

    def on_cnp(self, now_ps: int) -> None:
        """A notification came in."""

    def on_bytes_sent(self, wire_bytes: int, now_ps: int) -> None:
        """Bytes went out."""

    def on_timer(self, now_ps: int) -> int | None:
        """Work off what is due by now; when to call again."""
        return None

    def pace(self, wire_bytes: int, now_ps: int) -> int:
        """A frame starts now; when the next one may."""
        self._start_ps, self._bytes = now_ps, wire_bytes
        return self.next_start_ps(now_ps)

    def next_start_ps(self, now_ps: int) -> int:
        """When the frame after the last one paced may start."""
        self.on_timer(now_ps)
        return self._start_ps + self._gap_ps(self._bytes)

    def _gap_ps(self, wire_bytes: int) -> int:
        return gap_ps(wire_bytes, self.rate_bps)
