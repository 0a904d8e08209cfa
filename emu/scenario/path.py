"""Paths into a result: `.key`, `[name=leaf0-h0]`, and max() min() sum() count() over lists; read without eval."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from emu.errors import ScenarioError
from emu.scenario.field import nearest, show

_FUNCTION = re.compile(r"([A-Za-z_]+)\s*\((.*)\)")
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SELECT = re.compile(r"\[\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*([^\[\]=]+?)\s*\]")
FUNCTIONS: dict[str, Callable[[Sequence[Any]], Any]] = {"max": max, "min": min, "sum": sum, "count": len}


@dataclass(frozen=True, slots=True)
class Key:
    """`.name` of a mapping, or of every mapping in a list."""

    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """`[key=value]`: those mappings of a list whose `key` reads as `value`."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class Path:
    """The steps into a result, and the function over what they lead to, if any."""

    steps: tuple[Key | Select, ...]
    function: str | None = None

    @classmethod
    def parse(cls, text: str) -> Path:
        """Read `max(links.max_queue_bytes)`. Raises ScenarioError."""
        text = text.strip()
        call = _FUNCTION.fullmatch(text)
        if call is None:
            return cls(_parse_steps(text))
        if call[1] not in FUNCTIONS:
            raise ScenarioError(f"unknown function {show(call[1])}{nearest(call[1], list(FUNCTIONS))}")
        return cls(_parse_steps(call[2].strip()), call[1])

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys on the way, the last one first."""
        return tuple(step.name for step in reversed(self.steps) if isinstance(step, Key))

    def find(self, result: Mapping[str, Any]) -> Any:
        """What the path leads to. Raises ScenarioError, naming the nearest keys, if it leads nowhere."""
        value: Any = result
        so_far = ""
        for step in self.steps:
            value = _get(value, step, so_far or "the result") if isinstance(step, Key) else _select(value, step, so_far)
            part = step.name if isinstance(step, Key) else f"[{step.key}={step.value}]"
            so_far += f".{part}" if so_far and isinstance(step, Key) else part
        return value if self.function is None else _apply(self.function, value, so_far)


def _parse_steps(text: str) -> tuple[Key | Select, ...]:
    steps: list[Key | Select] = []
    at, expects_key = 0, True
    while at < len(text):
        match = (_KEY if expects_key else _SELECT).match(text, at)
        if match is not None:
            steps.append(Key(match[0]) if expects_key else Select(match[1], match[2]))
            at, expects_key = match.end(), False
        elif text[at] == "." and not expects_key:
            at, expects_key = at + 1, True
        else:
            break
    if at < len(text) or expects_key:
        raise ScenarioError(
            f"{show(text)} is no path: it is written like drops.lossless or links[name=leaf0-h0].tx_bytes"
        )
    return tuple(steps)


def _get(value: Any, step: Key, so_far: str) -> Any:
    if isinstance(value, (list, tuple)):
        return [_get(element, step, so_far) for element in value]
    if not isinstance(value, Mapping):
        raise ScenarioError(f"{so_far} is {show(value)}, which has no key {step.name!r}")
    if step.name not in value and isinstance(value, Counter):
        return 0  # a count of what there was by name: of anything else there was none
    if step.name not in value:
        raise ScenarioError(f"{so_far} has no key {step.name!r}{nearest(step.name, list(value))}")
    return value[step.name]


def _select(value: Any, step: Select, so_far: str) -> Any:
    if not isinstance(value, (list, tuple)):
        raise ScenarioError(f"{so_far} is no list to select from with [{step.key}={step.value}]")
    words = [str(_get(element, Key(step.key), so_far)) for element in value]
    chosen = [element for element, word in zip(value, words, strict=True) if word == step.value]
    if not chosen and step.key == "name":  # a link's two names are the same link
        chosen = [element for element in value if isinstance(element, Mapping) and _other_name(element) == step.value]
    if not chosen:
        raise ScenarioError(f"{so_far} has none with {step.key}={step.value}{nearest(step.value, sorted(set(words)))}")
    return chosen[0] if len(chosen) == 1 else chosen


def _other_name(link: Mapping[str, Any]) -> str | None:
    """`h0-leaf0#2` of the link `leaf0-h0#2`."""
    near, far, name = link.get("from"), link.get("to"), str(link.get("name"))
    if near is None or far is None:
        return None
    _, mark, number = name.rpartition("#")
    return f"{far}-{near}{mark}{number if mark else ''}"


def _apply(function: str, value: Any, so_far: str) -> Any:
    values = value if isinstance(value, (list, tuple)) else [value]
    if function == "count":
        return len(values)
    if not values and function != "sum":
        raise ScenarioError(f"{function}({so_far}): the list is empty")
    for element in values:
        if isinstance(element, bool) or not isinstance(element, (int, float)):
            raise ScenarioError(f"{function}({so_far}): {show(element)} is no number")
    return FUNCTIONS[function](values)
