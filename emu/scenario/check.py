"""From pydantic's errors to one line that names the file, the line and the key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from emu.errors import ScenarioError
from emu.scenario.field import show

M = TypeVar("M", bound=BaseModel)
Place = tuple[str | int, ...]
MESSAGE_LIMIT = 1000  # characters


def validate(model: type[M], given: Any, where: Callable[[Place], str], inside: Place = ()) -> M:
    """The model of what was given. Raises ScenarioError: `where(place)`, the key, and what is allowed.

    `inside` is the place of what was given in the whole.
    """
    try:
        return model.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = (*inside, *_place(given, first["loc"]), *first.get("ctx", {}).get("at", ()))
        raise ScenarioError(one_line(f"{where(place)}: {dotted(place)}{_reason(first)}")) from None


def one_line(text: str) -> str:
    """The text without line breaks, cut if it is very long."""
    line = " ".join(text.split())
    return line if len(line) <= MESSAGE_LIMIT else line[:MESSAGE_LIMIT] + "..."


def dotted(place: Sequence[str | int]) -> str:
    """`fabric.topology.leaves: ` or nothing for the whole."""
    return ".".join(map(str, place)) + ": " if place else ""


def _place(given: Any, location: Sequence[str | int]) -> Place:
    """The location without the tags that pydantic puts in for the kind that was chosen."""
    place: list[str | int] = []
    value = given
    for step in location:
        if _has(value, step):
            value = value[step]
        elif step != location[-1] or not isinstance(value, Mapping) or step == value.get("kind"):
            continue
        place.append(step)
    return tuple(place)


def _has(value: Any, step: str | int) -> bool:
    if isinstance(value, Mapping):
        return step in value
    return isinstance(value, (list, tuple)) and isinstance(step, int) and step < len(value)


def _reason(error: Mapping[str, Any]) -> str:
    match error["type"]:
        case "refused":
            return str(error["ctx"]["reason"])
        case "missing":
            return "is missing"
        case "tuple_type":
            return f"{show(error['input'])} is no list"
        case _:
            return f"{show(error['input'])}: {error['msg']}"
