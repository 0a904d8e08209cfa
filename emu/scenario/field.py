"""Field types of a scenario: quantities text with units, whole numbers, words; each error says what is allowed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from emu import units
from emu.errors import ScenarioError

MTUS = (256, 512, 1024, 2048, 4096)  # IBTA vol. 1: path MTUs are enumerated, 1 to 5
TEXT_LIMIT = 200  # characters of a name, a quantity or a quoted value: longer ones are a mistake


def refuse(reason: str, *at: str | int) -> PydanticCustomError:
    """The error for a value, or for the part of it that `at` leads to."""
    return PydanticCustomError("refused", "{reason}", {"reason": reason, "at": at})


def show(value: object) -> str:
    """The value as an error quotes it: on one line, cut if long."""
    text = repr(value)
    return text if len(text) <= TEXT_LIMIT else text[:TEXT_LIMIT] + "..."


def nearest(word: str, known: Sequence[str], later: Sequence[str] = ()) -> str:
    """`; did you mean 'x'? known: ...` for a word that is not among the known ones, nor among those to come."""
    close = get_close_matches(word[:TEXT_LIMIT], [*known, *later], n=1, cutoff=0.5)
    not_yet = " (not yet)" if close and close[0] not in known else ""
    hint = f"did you mean {close[0]!r}{not_yet}? " if close else ""
    more = ", ..." if len(known) > 24 else ""
    return f"; {hint}known: {', '.join(known[:24])}{more}"


class Model(BaseModel):
    """Base of the scenario's models: frozen, and a key that is not known is an error naming the nearest one."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    not_yet: ClassVar[tuple[str, ...]] = ()  # keys that are known, but that later work brings

    @classmethod
    def written_keys(cls) -> list[str]:
        """The keys as a file has them."""
        return [field.alias or name for name, field in cls.model_fields.items()]

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, given: Any) -> Any:
        if isinstance(given, cls):
            return given
        known = cls.written_keys()
        if not isinstance(given, Mapping):
            raise refuse(f"{show(given)} is no mapping; its keys are: {', '.join(known)}")
        for key in given:
            if key in cls.not_yet:
                raise refuse(f"not yet: {key!r} comes with a later version; known now: {', '.join(known)}", key)
            if key not in known:
                raise refuse(f"unknown key {show(key)}{nearest(str(key), known, cls.not_yet)}", key)
        return given

    def replace(self, **changes: Any) -> Self:
        """A copy with attributes changed, unchecked: for values that are already right."""
        return self.model_copy(update=changes)


def quantity(parse: Callable[[object], int], unit_names: Mapping[str, int], suffix: str = "") -> Any:
    """Annotations of an integer that is written as text with a unit, `suffix` (such as /m) after it."""
    pattern = rf"^\s*[+-]?[0-9][0-9_]*(\.[0-9]+)?([eE][+-]?[0-9]{{1,3}})?\s*({'|'.join(unit_names)}){suffix}\s*$"
    return (
        BeforeValidator(lambda value: read(parse, value)),
        PlainSerializer(lambda value: exact(value, unit_names) + suffix, return_type=str, when_used="unless-none"),
        WithJsonSchema({"type": "string", "pattern": pattern}),
    )


def exact(value: int, unit_names: Mapping[str, int]) -> str:
    """The integer in the largest unit that divides it: `260ns`; reads back as the same integer."""
    scales = sorted(((scale, unit) for unit, scale in unit_names.items()), reverse=True)
    scale, unit = next(((s, u) for s, u in scales if value and value % s == 0), scales[-1])
    return f"{value // scale}{unit}"


def shortest(value: int, unit_names: Mapping[str, int]) -> str:
    """The integer in the unit that makes the shortest text of it: `3200KB` rather than `3125KiB`."""
    return min((f"{value // scale}{unit}" for unit, scale in unit_names.items() if value % scale == 0), key=len)


def read(parse: Callable[[object], int], value: object) -> int:
    """What `parse` makes of the value; its ScenarioError as a refusal."""
    if len(str(value)) > TEXT_LIMIT:
        raise refuse(f"{show(value)} is too long: at most {TEXT_LIMIT} characters")
    try:
        return parse(value)
    except ScenarioError as error:
        raise refuse(str(error)) from None


def _parse_propagation(value: object) -> int:
    if not isinstance(value, str) or not value.rstrip().endswith("/m"):
        raise ScenarioError(f"{value!r} is no propagation delay: it is written like 5ns/m (ps/m, ns/m, us/m)")
    return units.parse_time_ps(value.rstrip().removesuffix("/m"))


def parse_message_bytes(value: object) -> int:
    """The size of a message. Raises ScenarioError."""
    size_bytes = units.parse_size_bytes(value)
    if size_bytes > 2**31:  # IBTA vol. 1: the longest message of RC
        raise ScenarioError(f"{value!r}: a message has at most 2GiB")
    return size_bytes


def _parse_mtu(value: object) -> int:
    size_bytes = units.parse_size_bytes(value)
    if size_bytes not in MTUS:
        raise ScenarioError(f"{value!r} is no path MTU; allowed: 256B, 512B, 1KiB, 2KiB, 4KiB")
    return size_bytes


SIZES = {unit: scale for unit, scale in units.SIZE_UNITS.items() if unit == "B" or "i" in unit}
SIZE_JSON = WithJsonSchema(quantity(units.parse_size_bytes, units.SIZE_UNITS)[2].json_schema)

Time = Annotated[int, *quantity(units.parse_time_ps, units.TIME_UNITS)]


def parse_duration_ps(value: object) -> int:
    """A time above 0. Raises ScenarioError."""
    time_ps = units.parse_time_ps(value)
    if time_ps == 0:
        raise ScenarioError(f"{value!r} is no time to wait: it is above 0")
    return time_ps


Duration = Annotated[int, *quantity(parse_duration_ps, units.TIME_UNITS)]
Rate = Annotated[int, *quantity(units.parse_rate_bps, units.RATE_UNITS)]
Length = Annotated[int, *quantity(units.parse_length_mm, units.LENGTH_UNITS)]
Size = Annotated[int, *quantity(units.parse_size_bytes, SIZES), SIZE_JSON]
DecimalSize = Annotated[
    int,
    *quantity(units.parse_size_bytes, units.SIZE_UNITS),
    PlainSerializer(lambda value: shortest(value, units.SIZE_UNITS), return_type=str),
]
MessageSize = Annotated[int, *quantity(parse_message_bytes, SIZES), SIZE_JSON]
PathMtu = Annotated[
    int,
    *quantity(_parse_mtu, SIZES),
    WithJsonSchema({"enum": [f"{size}B" for size in MTUS] + ["1KiB", "2KiB", "4KiB"]}),
]
Propagation = Annotated[int, *quantity(_parse_propagation, units.TIME_UNITS, suffix="/m")]


def whole(low: int, high: int, why: str = "") -> Any:
    """Annotations of a whole number from `low` to `high`; `why` explains the limit."""

    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise refuse(f"{show(value)} is no whole number; allowed: {low} to {high}")
        if not low <= value <= high:
            raise refuse(f"{show(value)} is out of range; allowed: {low} to {high}{why and f' ({why})'}")
        return value

    return BeforeValidator(check), WithJsonSchema({"type": "integer", "minimum": low, "maximum": high})


def choice(*allowed: str, later: Sequence[str] = ()) -> Any:
    """Annotations of a word out of a few; those in `later` are known, but not built yet."""

    def check(value: object) -> object:
        if value in later:
            raise refuse(f"not yet: {value!r} comes with a later version; allowed now: {', '.join(allowed)}")
        if value not in allowed:
            raise refuse(f"{show(value)} is not allowed; allowed: {', '.join(allowed)}")
        return value

    return BeforeValidator(check), WithJsonSchema({"enum": list(allowed)})


def _check_flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise refuse(f"{show(value)} is neither true nor false")
    return value


def _check_name(value: object) -> str:
    if not isinstance(value, str):
        raise refuse(f"{show(value)} is no name: write text, in quotes if it looks like a number")
    if not value.strip() or not value.isprintable() or len(value) > TEXT_LIMIT:
        raise refuse(f"{show(value)} is no name: 1 to {TEXT_LIMIT} printable characters are")
    return value


def _check_text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise refuse(f"{show(value)} is no text")
    return value


def _check_empty(value: object) -> tuple[()]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise refuse(f"{show(value)} is no list")
    if value:
        raise refuse("not yet: this comes with a later version; allowed now: an empty list")
    return ()


Flag = Annotated[bool, BeforeValidator(_check_flag)]
Name = Annotated[str, BeforeValidator(_check_name)]
Text = Annotated[str, BeforeValidator(_check_text)]
NotYet = Annotated[tuple[()], BeforeValidator(_check_empty), WithJsonSchema({"type": "array", "maxItems": 0})]


def kinds(known: Sequence[str], later: Sequence[str] = ()) -> BeforeValidator:
    """Checks the `kind` of a mapping before its model is chosen by it."""

    def check(given: Any) -> Any:
        if isinstance(given, BaseModel):
            return given
        if not isinstance(given, Mapping):
            raise refuse(f"{show(given)} is no mapping with a kind; kinds: {', '.join(known)}")
        if "kind" not in given:
            raise refuse(f"kind is missing; kinds: {', '.join(known)}")
        kind = given["kind"]
        if kind in later:
            raise refuse(f"not yet: {kind!r} comes with a later version; allowed now: {', '.join(known)}", "kind")
        if kind not in known:
            raise refuse(f"unknown kind {show(kind)}{nearest(str(kind), known, later)}", "kind")
        return given

    return BeforeValidator(check)
