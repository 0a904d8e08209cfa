"""The scenario file's schema as JSON Schema, for editors: what `emu run --schema` prints."""

from __future__ import annotations

from typing import Any

from emu.scenario.model import Scenario
from emu.scenario.profile import SECTIONS

GROUPS = (  # a file may give some of their keys
    *("Credits", "VlArbitration", "Pause", "Watchdog", "Ecn", "Cnp"),
    *("Pcie", "Gpu", "Cpu", "Queues"),
)
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """Quantities are strings with patterns; what the profile gives is optional."""
    schema = Scenario.model_json_schema(by_alias=True, mode="validation")
    definitions = schema["$defs"]
    from_profile = {key for model in SECTIONS.values() for key in model.written_keys()}
    for name in ("Fabric", "Nic"):
        required = [key for key in definitions[name].get("required", []) if key not in from_profile]
        definitions[name]["required"] = required
    for name in ("Host", *GROUPS):
        definitions[name]["required"] = []
    host = definitions["Host"]["properties"]
    host["pcie"]["anyOf"].append({"enum": definitions["Pcie"]["properties"]["wire"]["enum"]})  # `pcie: veth`, for short
    schema["required"] = [key for key in schema["required"] if key != "host"]
    for definition in [schema, *definitions.values()]:
        for key, field in definition["properties"].items():
            definition["properties"][key] = _without_unwritten_default(field)
    return {"$schema": DIALECT, "title": "emu scenario", **{key: schema[key] for key in schema if key != "title"}}


def _without_unwritten_default(field: dict[str, Any]) -> dict[str, Any]:
    """A default is said as a file would write it, or not at all: quantities are integers in Python."""
    keep = isinstance(field.get("default"), (str, bool)) or field.get("type") == "integer"
    return field if keep else {key: value for key, value in field.items() if key != "default"}
