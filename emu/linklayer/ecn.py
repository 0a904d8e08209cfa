"""Explicit congestion notification at an egress queue: never below Kmin, always above Kmax, by chance between."""

from __future__ import annotations

import random
from dataclasses import dataclass
from fractions import Fraction

from emu.errors import ScenarioError


@dataclass(frozen=True, slots=True, kw_only=True)
class EcnConfig:
    """The marking curve: 0 up to Kmin, rising to Pmax at Kmax, 1 beyond (DCQCN's, after RED)."""

    kmin_bytes: int
    kmax_bytes: int
    pmax: Fraction

    def __post_init__(self) -> None:
        if self.kmin_bytes < 0:
            raise ScenarioError(f"Kmin is {self.kmin_bytes} bytes: at least 0")
        if self.kmin_bytes > self.kmax_bytes:
            raise ScenarioError(f"Kmin, {self.kmin_bytes} bytes, lies above Kmax, {self.kmax_bytes}")
        if not 0 <= self.pmax <= 1:
            raise ScenarioError(f"Pmax is {self.pmax}: a probability lies between 0 and 1")

    def probability(self, queue_bytes: int) -> Fraction:
        """With which probability a frame that finds so long a queue is marked."""
        if queue_bytes <= self.kmin_bytes:
            return Fraction(0)
        if queue_bytes > self.kmax_bytes:
            return Fraction(1)
        return self.pmax * (queue_bytes - self.kmin_bytes) / (self.kmax_bytes - self.kmin_bytes)


class Marker:
    """Decides for one egress queue, with random numbers of its own: exact, and the same in every run."""

    __slots__ = ("_den", "_draw", "_kmax", "_kmin", "_num", "marked")

    def __init__(self, config: EcnConfig, numbers: random.Random) -> None:
        self._kmin = config.kmin_bytes
        self._kmax = config.kmax_bytes
        self._num, pmax_den = config.pmax.as_integer_ratio()
        self._den = pmax_den * (config.kmax_bytes - config.kmin_bytes)
        self._draw = numbers.randrange
        self.marked = 0

    def marks(self, queue_bytes: int) -> bool:
        """Whether to mark the frame that makes the queue so long; a number is drawn only between Kmin and Kmax."""
        if queue_bytes <= self._kmin:
            return False
        if queue_bytes <= self._kmax and self._draw(self._den) >= self._num * (queue_bytes - self._kmin):
            return False
        self.marked += 1
        return True
