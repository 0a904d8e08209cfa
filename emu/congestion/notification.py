"""DCQCN's notification point, at the receiver: which marked frames are answered with a CNP."""

from __future__ import annotations

from collections.abc import Hashable

from emu.errors import ScenarioError
from emu.units import US

MIN_TIME_BETWEEN_CNPS_PS = {
    "adapter": 4 * US,  # MIN_TIME_BETWEEN_CNPS 4
    "paper": 50 * US,  # Zhu et al., SIGCOMM 2015, section 5
}


class NotificationPoint:
    """Paces CNPs per flow: one at the first marked frame, then none for `min_interval_ps` after each.

    What a flow is, the caller says: a queue pair by default; adapters can also pace per peer or per port.
    """

    __slots__ = ("_last_ps", "_min_interval_ps", "marked", "sent", "suppressed")

    def __init__(self, min_interval_ps: int) -> None:
        """Raises ScenarioError for a negative time; 0 answers every marked frame."""
        if min_interval_ps < 0:
            raise ScenarioError(f"{min_interval_ps} ps between CNPs: a time is not negative")
        self._min_interval_ps = min_interval_ps
        self._last_ps: dict[Hashable, int] = {}
        self.marked = 0  # frames that came in marked
        self.sent = 0  # CNPs
        self.suppressed = 0  # marked frames not answered

    def on_marked(self, flow: Hashable, now_ps: int) -> bool:
        """A frame of this flow came in with CE or FECN set. Whether to send a CNP now."""
        self.marked += 1
        last_ps = self._last_ps.get(flow)
        if last_ps is not None and now_ps - last_ps < self._min_interval_ps:
            self.suppressed += 1
            return False
        self._last_ps[flow] = now_ps
        self.sent += 1
        return True
