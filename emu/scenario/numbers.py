"""Maps and lists of small numbers: `{26: 3}`, `[3, 4]`; each number checked where it stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BeforeValidator, PlainSerializer, PlainValidator, WithJsonSchema

from emu.scenario.field import refuse, show


class NumberMap(Mapping[int, int]):
    """A map from whole numbers to whole numbers, in their order, that can be hashed as scenarios are."""

    __slots__ = ("_numbers",)

    def __init__(self, numbers: Mapping[int, int] | None = None) -> None:
        self._numbers = dict(sorted((numbers or {}).items()))

    def __getitem__(self, key: int) -> int:
        return self._numbers[key]

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __hash__(self) -> int:
        return hash(tuple(self._numbers.items()))

    def __repr__(self) -> str:
        return repr(self._numbers)


def _whole(value: object, what: str, high: int, *at: str | int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise refuse(f"{show(value)} is no {what}; allowed: 0 to {high}", *at)
    if not 0 <= value <= high:
        raise refuse(f"{what} {show(value)} is out of range; allowed: 0 to {high}", *at)
    return value


def number_map(key: str, key_high: int, value: str, value_high: int) -> Any:
    """Annotations of a NumberMap; `key` and `value` say in errors what the numbers are."""

    def number(written: object) -> object:
        text = str(written)
        return (
            int(text) if isinstance(written, str) and text.isascii() and text.isdigit() and len(text) < 9 else written
        )

    def check(given: Any) -> NumberMap:
        if isinstance(given, NumberMap):
            return given
        if not isinstance(given, Mapping):
            raise refuse(f"{show(given)} is no mapping from {key} to {value}: write {{}} or like {{1: 1}}")
        found: dict[int, int] = {}
        for written, target in given.items():
            source = _whole(number(written), key, key_high, written)
            if source in found:
                raise refuse(f"{key} {source} appears twice", written)
            found[source] = _whole(target, value, value_high, written)
        return NumberMap(found)

    schema = {
        "type": "object",
        "propertyNames": {"pattern": "^[0-9]+$"},
        "additionalProperties": {"type": "integer", "minimum": 0, "maximum": value_high},
    }
    return (
        PlainValidator(check),
        PlainSerializer(lambda numbers: {str(source): target for source, target in numbers.items()}, return_type=dict),
        WithJsonSchema(schema),
    )


def number_list(what: str, high: int) -> Any:
    """Annotations of a tuple of different numbers, from a list."""

    def check(given: Any) -> Any:
        if given is None:
            return given
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise refuse(f"{show(given)} is no list: write it like [3]")
        for place, number in enumerate(given):
            _whole(number, what, high, place)
            if number in given[:place]:
                raise refuse(f"{what} {number} appears twice", place)
        return tuple(given)

    items = {"type": "integer", "minimum": 0, "maximum": high}
    return BeforeValidator(check), WithJsonSchema({"type": "array", "items": items})


def number_pairs(first: str, first_high: int, second: str, second_high: int, longest: int) -> Any:
    """Annotations of a tuple of pairs of numbers, from a list of lists of at most `longest`."""

    def check(given: Any) -> Any:
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise refuse(f"{show(given)} is no list: write it like [[0, 64]]")
        if len(given) > longest:
            raise refuse(f"{len(given)} entries; allowed: at most {longest}")
        for place, pair in enumerate(given):
            if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
                raise refuse(f"{show(pair)} is no pair: write [{first}, {second}], like [0, 64]", place)
            _whole(pair[0], first, first_high, place, 0)
            _whole(pair[1], second, second_high, place, 1)
        return tuple(tuple(pair) for pair in given)

    pair = {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "integer", "minimum": 0}}
    return BeforeValidator(check), WithJsonSchema({"type": "array", "maxItems": longest, "items": pair})
