"""Quantities: picoseconds, bytes, bits per second, millimetres; read from text with units, exactly."""

from __future__ import annotations

import re
from fractions import Fraction

from emu.errors import ScenarioError

PS = 1
NS = 10**3
US = 10**6
MS = 10**9
SECOND = 10**12

TIME_UNITS = {"ps": PS, "ns": NS, "us": US, "ms": MS, "s": SECOND}
SIZE_UNITS = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}
RATE_UNITS = {"bps": 1, "Kbps": 10**3, "Mbps": 10**6, "Gbps": 10**9, "Tbps": 10**12}
MESSAGE_RATE_UNITS = {"/s": 1, "K/s": 10**3, "M/s": 10**6}
LENGTH_UNITS = {"mm": 1, "cm": 10, "m": 10**3, "km": 10**6}

TIME_LIMIT_PS = 1_000_000 * SECOND  # eleven days: past any run, and far inside 64 bits
SIZE_LIMIT_BYTES = 2**40
RATE_LIMIT_BPS = 10**14
LENGTH_LIMIT_MM = 10**10
MESSAGE_RATE_LIMIT = 10**12
TEXT_LIMIT = 100  # characters of a quantity

_NUMBER = re.compile(r"([+-]?[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?)\s*([A-Za-z%/]*)")


def parse_time_ps(text: object) -> int:
    """Whole picoseconds of `260ns`. Raises ScenarioError without a unit, if negative, or finer than 1 ps."""
    return _parse(text, TIME_UNITS, "a time", "260ns", TIME_LIMIT_PS)


def parse_size_bytes(text: object) -> int:
    """Bytes of `4KiB` (1024) or `4KB` (1000). Raises ScenarioError."""
    return _parse(text, SIZE_UNITS, "a size", "4KiB", SIZE_LIMIT_BYTES)


def parse_rate_bps(text: object) -> int:
    """Bits per second of `400Gbps`; never zero. Raises ScenarioError."""
    rate_bps = _parse(text, RATE_UNITS, "a rate", "400Gbps", RATE_LIMIT_BPS)
    if rate_bps == 0:
        raise ScenarioError(f"{text!r}: a rate of zero carries nothing; write one above zero, like 400Gbps")
    return rate_bps


def parse_message_rate(text: object) -> int:
    """Messages a second of `215M/s`; never zero. Raises ScenarioError."""
    rate = _parse(text, MESSAGE_RATE_UNITS, "a message rate", "215M/s", MESSAGE_RATE_LIMIT)
    if rate == 0:
        raise ScenarioError(f"{text!r}: a rate of zero sends nothing; write one above zero, like 215M/s")
    return rate


def parse_length_mm(text: object) -> int:
    """Millimetres of `3m`. Raises ScenarioError."""
    return _parse(text, LENGTH_UNITS, "a length", "3m", LENGTH_LIMIT_MM)


def parse_fraction(text: object) -> Fraction:
    """The share that `20%` or `0.2` is, between 0 and 1. Raises ScenarioError."""
    number, unit = _split(text, "a share", "20%")
    if unit not in ("", "%"):
        raise ScenarioError(f"{text!r}: {unit!r} is no unit of a share; write 20% or 0.2")
    share = number / 100 if unit == "%" else number
    if not 0 <= share <= 1:
        raise ScenarioError(f"{text!r}: a share lies between 0 and 100%")
    return share


def _parse(text: object, units: dict[str, int], what: str, example: str, limit: int) -> int:
    number, unit = _split(text, what, example)
    if not unit:
        raise ScenarioError(f"{text!r} has no unit: {what} is written like {example} ({', '.join(units)})")
    if unit not in units:
        raise ScenarioError(f"{text!r}: {unit!r} is no unit of {what}; known: {', '.join(units)}")
    value = number * units[unit]
    if value.denominator != 1:
        raise ScenarioError(f"{text!r} is no whole number of {next(iter(units))}")
    if not 0 <= value <= limit:
        raise ScenarioError(f"{text!r}: {what} lies between 0 and {limit} {next(iter(units))}")
    return int(value)


def _split(text: object, what: str, example: str) -> tuple[Fraction, str]:
    if isinstance(text, bool) or not isinstance(text, (str, int, float)):
        raise ScenarioError(f"{text!r} is not {what}; write it like {example}")
    match = _NUMBER.fullmatch(str(text).strip()) if len(str(text)) <= TEXT_LIMIT else None
    if match is None:
        raise ScenarioError(f"{text!r} is not {what}; write it like {example}")
    return Fraction(match[1].replace("_", "")), match[2]


def ps_to_ns(value_ps: int) -> float:
    """Nanoseconds as results show them."""
    return value_ps / NS


def format_time(value_ps: int) -> str:
    """A time in the largest unit that leaves a number of at least one: `942.92 ns`."""
    unit, scale = next(
        ((unit, scale) for unit, scale in reversed(TIME_UNITS.items()) if abs(value_ps) >= scale), ("ps", 1)
    )
    return f"{value_ps / scale:.6g} {unit}"


def format_size(value_bytes: int) -> str:
    """A size in the largest binary unit that divides it: `4KiB`."""
    for unit in ("GiB", "MiB", "KiB"):
        if value_bytes and value_bytes % SIZE_UNITS[unit] == 0:
            return f"{value_bytes // SIZE_UNITS[unit]}{unit}"
    return f"{value_bytes}B"


def format_rate(rate_bps: int) -> str:
    """A rate in the largest decimal unit: `400Gbps`."""
    for unit, scale in reversed(RATE_UNITS.items()):
        if rate_bps >= scale:
            return f"{rate_bps / scale:.6g}{unit}"
    return f"{rate_bps}bps"


def format_length(length_mm: int) -> str:
    """A length in the largest unit that divides it: `5m`."""
    for unit, scale in reversed(LENGTH_UNITS.items()):
        if length_mm and length_mm % scale == 0:
            return f"{length_mm // scale}{unit}"
    return f"{length_mm}mm"
