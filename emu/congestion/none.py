"""No congestion control: line rate, whatever the notifications say."""

from __future__ import annotations

from emu.congestion.base import Paced


class NoControl(Paced):
    """Counts notifications and heeds none."""

    __slots__ = ("cnps",)

    def __init__(self, line_rate_bps: int) -> None:
        super().__init__(line_rate_bps)
        self.cnps = 0

    def on_cnp(self, now_ps: int) -> None:
        """Count it."""
        self.cnps += 1
