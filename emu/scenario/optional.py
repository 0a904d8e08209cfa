"""Values for which a word may stand: `none`, `auto`, `never` in a file, None in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, BeforeValidator, GetJsonSchemaHandler, SerializerFunctionWrapHandler, WrapSerializer
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from emu.errors import ScenarioError
from emu.scenario.field import TEXT_LIMIT, refuse, show


class _WordInSchema:
    """Puts the word where JSON Schema would have null."""

    def __init__(self, word: str) -> None:
        self._word = word

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        choices = [{"const": self._word} if each == {"type": "null"} else each for each in schema["anyOf"]]
        return {**schema, "anyOf": choices}


def or_word(word: str, parse: Callable[[object], object] | None = None, wanted: str = "a mapping") -> Any:
    """Annotations of a value or None, which is written as `word`.

    `parse` reads a quantity, so that its errors name the word as well; `wanted`: what a mapping or list holds.
    """

    def check(value: Any) -> Any:
        if isinstance(value, str) and value == word:
            return None
        if parse is None:
            if not isinstance(value, (Mapping, list, tuple, BaseModel)):
                raise refuse(f"{show(value)} is not allowed; allowed: {word}, or {wanted}")
        elif len(str(value)) <= TEXT_LIMIT:
            try:
                parse(value)
            except ScenarioError as error:
                raise refuse(f"{error}; or the word {word}") from None
        return value

    def write(value: Any, handler: SerializerFunctionWrapHandler) -> Any:
        return word if value is None else handler(value)

    return BeforeValidator(check), WrapSerializer(write), _WordInSchema(word)
