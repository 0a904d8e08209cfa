"""Exact shares and factors: `20%`, `0.2` or `1/5`."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from emu.scenario.field import TEXT_LIMIT, refuse, show

_RATIO = re.compile(r"\s*([0-9]{1,9})\s*/\s*([0-9]{1,9})\s*")
_NUMBER = re.compile(r"\s*[0-9]{1,9}(\.[0-9]{1,9})?\s*%?\s*")
_BARE = re.compile(r"\s*[0-9.]+\s*")
_RATIO_JSON = {"type": "string", "pattern": r"^\s*[0-9]{1,9}\s*/\s*[1-9][0-9]{0,8}\s*$"}
_JSON = WithJsonSchema(
    {
        "anyOf": [
            {"type": "number", "minimum": 0},
            {"type": "string", "pattern": r"^\s*[0-9]{1,9}(\.[0-9]{1,9})?\s*%?\s*$"},
            _RATIO_JSON,
        ]
    }
)
_RATE_JSON = WithJsonSchema(
    {
        "anyOf": [
            {"const": 0},
            {"type": "string", "pattern": r"^\s*[0-9]{1,9}(\.[0-9]{1,9})?\s*%\s*$"},
            _RATIO_JSON,
        ]
    }
)


def _read(value: object, example: str) -> Fraction:
    if isinstance(value, Fraction):
        return value
    text = "" if isinstance(value, bool) else str(value)
    ratio = _RATIO.fullmatch(text) if len(text) <= TEXT_LIMIT else None
    if ratio and int(ratio[2]):
        return Fraction(int(ratio[1]), int(ratio[2]))
    if ratio or not isinstance(value, (str, int, float)) or len(text) > TEXT_LIMIT:
        raise refuse(f"{show(value)} is no share; write it like {example}")
    if not _NUMBER.fullmatch(text):
        raise refuse(f"{show(value)} is no share of 0 or more; write it like {example}")
    return Fraction(text.strip().rstrip("% ")) / (100 if "%" in text else 1)


def fraction(least: str, high: int, example: str) -> Any:
    """Annotations of a Fraction: above 0 (`least` "above 0"), or from 0 (`least` "0"), to `high`."""

    def check(value: object) -> Fraction:
        share = _read(value, example)
        if share > high or (share == 0 and least != "0"):
            raise refuse(f"{show(value)} is out of range; allowed: {least} to {high}, like {example}")
        return share

    return PlainValidator(check), PlainSerializer(_write, return_type=str), _JSON


def percentage(least: str, example: str) -> Any:
    """Annotations of a Fraction up to 100 %."""

    def check(value: object) -> Fraction:
        share = _read(value, example)
        if share > 1 or (share == 0 and least != "0"):
            raise refuse(f"{show(value)} is out of range; allowed: {least} to 100%, like {example}")
        return share

    return PlainValidator(check), PlainSerializer(_write_percent, return_type=str), _JSON


def _write(value: Fraction) -> str:
    return str(value)


def _write_percent(value: Fraction) -> str:
    """As a percentage where that ends, else as a ratio; reads back as the same share."""
    percent = value * 100
    text = f"{float(percent):.9f}".rstrip("0").rstrip(".")
    return f"{text}%" if Fraction(text) == percent else str(value)


def rate(value: object) -> Fraction:
    """A share that says whether it is one in a hundred: `0.5` might mean half or half a percent."""
    share = _read(value, "1%")
    if share > 1 or (share and _BARE.fullmatch(str(value))):
        problem = "is out of range" if share > 1 else "has no unit"
        raise refuse(f"{show(value)} {problem}; allowed: 0 to 100%, like 1%, 0.5% or 1/3")
    return share


Factor = Annotated[Fraction, *fraction("above 0", 1024, "1/8")]
Probability = Annotated[Fraction, *percentage("0", "20%")]
Rate = Annotated[Fraction, PlainValidator(rate), PlainSerializer(_write_percent, return_type=str), _RATE_JSON]
Load = Annotated[Fraction, *percentage("above 0%", "70%")]
