"""YAML text to plain values, and the lines they were written on: YAML 1.2 words; no tags, aliases or duplicates."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from emu.errors import ScenarioError
from emu.scenario.check import Place
from emu.scenario.field import TEXT_LIMIT, show

FILE_LIMIT_BYTES = 2**20  # PyYAML takes about ten seconds for it
DEPTH_LIMIT = 32

# YAML 1.2, core schema (10.3.2): `on`, `off`, `yes`, `no`, dates and 1:30 are words.
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_WORDS = {"": None, "~": None, "null": None, "Null": None, "NULL": None} | {
    word: word[0] in "tT" for word in ("true", "True", "TRUE", "false", "False", "FALSE")
}


@dataclass(frozen=True)
class Document:
    """A file's value, and where each part of it was written (by the keys that lead there)."""

    name: str
    value: Any
    lines: Mapping[Place, int] = field(default_factory=dict)

    def where(self, place: Sequence[str | int]) -> str:
        """`incast.yaml:4`: the line of that part, or of the nearest part around it."""
        for length in range(len(place), -1, -1):
            line = self.lines.get(tuple(place[:length]))
            if line is not None:
                return f"{self.name}:{line}"
        return self.name


class _NotTakenError(Exception):
    """Something in the text that is not taken, at a line (from 0)."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.line = line


class _Loader(yaml.SafeLoader):
    """PyYAML's composer, which stops at anything but plain mappings, lists and scalars."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        line = event.start_mark.line
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise _NotTakenError("anchors and aliases (& and *) are not taken: write the value out", line)
        if getattr(event, "tag", None) is not None:
            raise _NotTakenError(f"tags are not taken: {show(event.tag)}", line)
        if self.depth >= DEPTH_LIMIT:
            raise _NotTakenError(f"nested too deep: at most {DEPTH_LIMIT} levels", line)
        self.depth += 1
        try:
            node: yaml.Node | None = super().compose_node(parent, index)
        finally:
            self.depth -= 1
        return node


def read_file(path: Path) -> str:
    """A text file's content. Raises ScenarioError if it cannot be read, is too big, or is not UTF-8."""
    try:
        with path.open("rb") as file:
            data = file.read(FILE_LIMIT_BYTES + 1)
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror or error}") from None
    except ValueError:  # a NUL in the name
        raise ScenarioError(f"{show(str(path))} is no file name") from None
    if len(data) > FILE_LIMIT_BYTES:
        raise ScenarioError(f"{path}: too big: at most {FILE_LIMIT_BYTES // 2**20} MiB are read")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ScenarioError(
            f"{path}:{line}: byte 0x{data[error.start]:02x} is not UTF-8: save the file as UTF-8"
        ) from None


def parse_document(text: str, name: str) -> Document:
    """Read one YAML document. Raises ScenarioError that names the line."""
    if len(text) > FILE_LIMIT_BYTES:
        raise ScenarioError(f"{name}: too big: at most {FILE_LIMIT_BYTES // 2**20} MiB are read")
    loader = None
    try:
        loader = _Loader(text.removeprefix("\ufeff"))
        node = loader.get_single_node()
        lines: dict[Place, int] = {}
        value = None if node is None else _value(node, (), lines)
    except _NotTakenError as error:
        raise ScenarioError(f"{name}:{error.line + 1}: {error}") from None
    except yaml.YAMLError as error:
        raise ScenarioError(_yaml_message(error, name, text)) from None
    finally:
        if loader is not None:
            loader.dispose()
    return Document(name, value, lines)


def parse_value(text: str) -> Any:
    """A value on its own, as after `--set path=`. Raises ScenarioError."""
    return parse_document(text, "value").value


def _yaml_message(error: yaml.YAMLError, name: str, text: str) -> str:
    if isinstance(error, yaml.reader.ReaderError):
        number = text.count("\n", 0, error.position) + 1
        return f"{name}:{number}: character {error.character!r:.20} is not allowed in YAML"
    mark = getattr(error, "problem_mark", None)
    line = "" if mark is None else f":{mark.line + 1}"
    problem = getattr(error, "problem", None) or str(error)
    if "expected a single document" in str(getattr(error, "context", "")):
        problem = "a second document begins here; a file holds one"
    return f"{name}{line}: not YAML: {' '.join(problem.split())[:TEXT_LIMIT]}"


def _value(node: yaml.Node, place: Place, lines: dict[Place, int]) -> Any:
    lines.setdefault(place, node.start_mark.line + 1)
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return [_value(child, (*place, number), lines) for number, child in enumerate(node.value)]
    mapping: dict[str, Any] = {}
    for key_node, child in node.value:
        key = _key(key_node)
        line = key_node.start_mark.line
        if key in mapping:
            raise _NotTakenError(f"key {show(key)} appears twice (first on line {lines[*place, key]})", line)
        lines[*place, key] = line + 1
        mapping[key] = _value(child, (*place, key), lines)
    return mapping


def _key(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise _NotTakenError("a key is a word, not a list or a mapping", node.start_mark.line)
    return str(node.value)


def _scalar(node: yaml.ScalarNode) -> Any:
    text: str = node.value
    if node.style is not None:  # quoted, or a block: text
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _NOT_FINITE.fullmatch(text):
        raise _NotTakenError(f"{text} is no value here: write a finite number", node.start_mark.line)
    if len(text) > TEXT_LIMIT and (_INT.fullmatch(text) or _FLOAT.fullmatch(text)):
        raise _NotTakenError(f"a number of {len(text)} characters: at most {TEXT_LIMIT}", node.start_mark.line)
    if _INT.fullmatch(text):
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        if not math.isfinite(number):
            raise _NotTakenError(f"{text} is too big a number", node.start_mark.line)
        return number
    return text
