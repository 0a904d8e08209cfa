"""Expectations: lines `PATH OP QUANTITY` that a run's result is held against."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from emu import units
from emu.errors import ScenarioError
from emu.scenario.field import TEXT_LIMIT, show
from emu.scenario.path import Path

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_LINE = re.compile(r"(.+?)\s*(==|!=|<=|>=|<|>)\s*(.+)")
_SELECTIONS = re.compile(r"\[[^\[\]]*\]")
_NUMBER = re.compile(r"([+-]?[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?)(\s*%)?")
_UNIT = re.compile(r"(?<!per)(?:^|_)(ps|ns|us|ms|s|bytes|mb|mm|bps)(?=$|_total$)")

Parse = Callable[[object], int]
# What a key's suffix says: how the quantity is read, and how many of its smallest units make one of the key's.
_SCALES: dict[str, tuple[Parse, int]] = {
    "ps": (units.parse_time_ps, units.PS),
    "ns": (units.parse_time_ps, units.NS),
    "us": (units.parse_time_ps, units.US),
    "ms": (units.parse_time_ps, units.MS),
    "s": (units.parse_time_ps, units.SECOND),
    "bytes": (units.parse_size_bytes, 1),
    "mb": (units.parse_size_bytes, 10**6),
    "mm": (units.parse_length_mm, 1),
    "bps": (units.parse_rate_bps, 1),
}


@dataclass(frozen=True, slots=True)
class Expectation:
    """One line, read: the number a path must lead to, in the unit its key names."""

    text: str
    path: Path
    operator: str
    wanted: Fraction | bool

    @classmethod
    def parse(cls, text: str) -> Expectation:
        """Read `messages.latency_ns.p99 < 400us`. Raises ScenarioError, saying how it is written."""
        if len(text) > TEXT_LIMIT:
            raise ScenarioError(f"{show(text)} is too long for an expectation: at most {TEXT_LIMIT} characters")
        # A selection has an = of its own: blanked out, it cannot be taken for the operator.
        match = _LINE.fullmatch(_SELECTIONS.sub(lambda found: "_" * len(found[0]), text.strip()))
        if match is None:
            raise ScenarioError(f"{show(text)} is no expectation: write PATH OP QUANTITY, like drops.lossless == 0")
        line = text.strip()
        path = Path.parse(line[: match.end(1)])
        return cls(text, path, match[2], _read(line[match.start(3) :], path, match[2]))

    def evaluate(self, result: Mapping[str, Any]) -> tuple[bool, Any]:
        """Whether it holds, and the value found. Raises ScenarioError if the path leads nowhere, or to no number."""
        value = self.path.find(result)
        if value is None:  # not measured: no expectation holds of it
            return False, None
        if isinstance(self.wanted, bool):
            if not isinstance(value, bool):
                raise ScenarioError(f"{self.text}: {show(value)} is neither true nor false")
            return OPERATORS[self.operator](value, self.wanted), value
        if isinstance(value, (list, tuple)):
            raise ScenarioError(f"{self.text}: the path leads to a list; use max(), min(), sum() or count()")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ScenarioError(f"{self.text}: {show(value)} is no number")
        # Results are the nearest floats to exact values, so that is what an exact quantity is compared as.
        wanted = float(self.wanted) if isinstance(value, float) else self.wanted
        return OPERATORS[self.operator](value, wanted), value


def _unit(path: Path) -> str | None:
    if path.function == "count":
        return None
    for key in path.keys:
        match = _UNIT.search(key)
        if match is not None:
            return match[1]
    return None


def _read(text: str, path: Path, compare: str) -> Fraction | bool:
    if text in ("true", "false"):
        if compare not in ("==", "!="):
            raise ScenarioError(f"{text} is compared with == or != only, not with {compare}")
        return text == "true"
    unit = _unit(path)
    number = _NUMBER.fullmatch(text)
    if unit is None:
        if number is None:
            raise ScenarioError(
                f"{show(text)} is no plain number, and {path.keys[0]!r} carries no unit: write one like 0 or 90%"
            )
        return Fraction(number[1].replace("_", "")) / (100 if number[2] else 1)
    parse, scale = _SCALES[unit]
    if number is not None and not number[2] and Fraction(number[1].replace("_", "")) == 0:
        return Fraction(0)
    return Fraction(parse(text), scale)
