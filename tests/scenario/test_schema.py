"""The JSON Schema for editors agrees with what is loaded: keys, what must be given, and how quantities look."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from emu.scenario import builtin
from emu.scenario.document import parse_document
from emu.scenario.schema import json_schema

SCHEMA = json_schema()


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """Whether the value fits, by the few keywords that the schema uses."""
    if "$ref" in schema:
        return fits(value, SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]])
    for choices in (schema.get("anyOf"), schema.get("oneOf")):
        if choices is not None and not any(fits(value, choice) for choice in choices):
            return False
    if "enum" in schema or "const" in schema:
        return value in schema.get("enum", [schema.get("const")])
    match schema.get("type"):
        case "string":
            return isinstance(value, str) and re.search(schema.get("pattern", ""), value) is not None
        case "integer":
            return isinstance(value, int) and schema.get("minimum", value) <= value <= schema.get("maximum", value)
        case "array":
            return isinstance(value, list) and all(fits(part, schema.get("items", {})) for part in value)
        case "object":
            known = schema["properties"]
            return (
                isinstance(value, dict)
                and set(schema.get("required", [])) <= set(value)
                and all(key in known and fits(part, known[key]) for key, part in value.items())
            )
    return True


@pytest.mark.parametrize("name", builtin.names())
def test_built_in_scenarios_fit(name: str) -> None:
    assert fits(parse_document(builtin.text(name), name).value, SCHEMA)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("size: 4KiB", "size: 4"),
        ("size: 4KiB", "size: 4ns"),
        ("size: 4KiB", "siz: 4KiB"),
        ("kind: write", "kind: wriet"),
        ("leaves: 2", "leaves: 0"),
        ("  profile: native\n", ""),
        ("profile: native", "profile: native\n  hop_latency: 260"),
        ("profile: native", "profile: native\n  path_mtu: 9000B"),
    ],
)
def test_mistakes_do_not_fit(old: str, new: str) -> None:
    text = builtin.text("hello")
    assert old in text
    assert not fits(parse_document(text.replace(old, new), "bad").value, SCHEMA)


def test_it_is_json_and_says_what_must_be_given() -> None:
    schema = json.loads(json.dumps(SCHEMA))
    assert schema["required"] == ["name", "fabric", "traffic"]
    assert set(schema["$defs"]["Fabric"]["required"]) == {"profile", "topology"}
    assert schema["$defs"]["Write"]["properties"]["size"]["type"] == "string"
    assert "default" not in schema["$defs"]["Write"]["properties"]["start"]
