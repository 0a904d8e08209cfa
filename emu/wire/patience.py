"""How long a frame that is due may be late before it counts as lost: the less, the more waiting has been in vain."""

from __future__ import annotations

PATIENCE_S = 1.0  # while frames come out
SHORT_PATIENCE_S = 0.01  # while nothing has come out since the last one that was waited for in vain
IN_A_ROW = 16  # after so many waited for in vain, nothing having come out since, only a look
IN_VAIN_S = 10.0  # after so much waiting in vain, only a look until one comes late


class Patience:
    """Of one direction of a link. What eats its frames in silence costs seconds of wall time, however many they are.

    `delivered` is how many frames have come out so far.
    """

    __slots__ = ("_delivered_at_miss", "_in_a_row", "_in_vain_s")

    def __init__(self) -> None:
        self._delivered_at_miss = -1
        self._in_a_row = 0
        self._in_vain_s = 0.0

    def is_hopeful(self, delivered: int) -> bool:
        """Whether anything has come out since the last frame that was waited for in vain."""
        return delivered != self._delivered_at_miss

    def seconds(self, delivered: int) -> float:
        """How long to wait now; 0: not at all."""
        if self._in_vain_s >= IN_VAIN_S:
            return 0.0
        if self.is_hopeful(delivered):
            self._in_a_row = 0
            return PATIENCE_S
        return SHORT_PATIENCE_S if self._in_a_row < IN_A_ROW else 0.0

    def was_in_vain(self, delivered: int, seconds: float) -> None:
        """A frame was waited for so long, and is lost."""
        self._delivered_at_miss = delivered
        self._in_a_row += 1
        self._in_vain_s += seconds

    def paid(self) -> None:
        """A frame came late: waiting is worth while again."""
        self._delivered_at_miss = -1
        self._in_a_row = 0
        self._in_vain_s = 0.0
