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
        case "integer" | "number" as kind:
            numbers = (int,) if kind == "integer" else (int, float)
            return isinstance(value, numbers) and schema.get("minimum", value) <= value <= schema.get("maximum", value)
        case "null":
            return value is None
        case "array":
            return (
                isinstance(value, list)
                and schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value))
                and all(fits(part, schema.get("items", {})) for part in value)
                and all(fits(part, each) for part, each in zip(value, schema.get("prefixItems", []), strict=False))
            )
        case "object" if "properties" not in schema:  # numbers to numbers
            return isinstance(value, dict) and all(
                re.search(schema["propertyNames"]["pattern"], key) and fits(part, schema["additionalProperties"])
                for key, part in value.items()
            )
        case "object":
            known = schema["properties"]
            return (
                isinstance(value, dict)
                and set(schema.get("required", [])) <= set(value)
                and all(key in known and fits(part, known[key]) for key, part in value.items())
            )
    return True


@pytest.mark.parametrize(
    ("host", "does"),
    [
        ({"path": "ibgda"}, True),
        ({"path": "ibgda", "pcie": "veth"}, True),
        ({"path": "ibgda", "pcie": {"wire": "veth", "mps": "512B"}, "gpu": {"warps": 1}}, True),
        ({"path": "ibgda", "queues": {"num_requests_in_batch": 1}, "cpu": {"poll": "1us"}}, True),
        ({"path": "ibgda", "pcie": "wlan"}, False),
        ({"path": "ibgda", "gpu": {"wraps": 1}}, False),
    ],
)
def test_some_values_of_a_host_path_may_be_given(host: dict[str, Any], *, does: bool) -> None:
    given = parse_document(builtin.text("hello"), "hello").value
    assert fits({**given, "host": host}, SCHEMA) == does


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


TAKEN = [
    "flow_control: pfc",
    "ecn: none",
    "ecn: {kmin: 1KB}",
    "ecn: {kmin: 1KB, kmax: 2KB, pmax: 0.5}",
    "alpha: 1/8",
    "alpha: 2",
    "xoff: dynamic",
    "xoff: 1MB",
    "headroom: tight",
    "headroom: 1MB",
    "credits: {refresh: never}",
    "credits: {refresh: 5us, threshold: 3}",
    "lossless: auto",
    "lossless: [3, 4]",
    "dscp_to_priority: {26: 3}",
    "vl_arbitration: {low: [[0, 64], [1, 1]]}",
    "watchdog: none",
    "watchdog: {detection: 1ms, restoration: 1ms, action: forward}",
]
REFUSED = [
    "flow_control: pcf",
    "ecn: some",
    "ecn: {kmid: 1KB}",
    "ecn: {kmin: 1}",
    "alpha: 1/x",
    "xoff: sometimes",
    "headroom: loose",
    "credits: {refresh: always}",
    "lossless: [8]",
    "dscp_to_priority: {x: 3}",
    "dscp_to_priority: {1: 8}",
    "vl_arbitration: {low: [0]}",
    "vl_arbitration: {low: [[0, 1, 2]]}",
    "watchdog: {action: stop}",
    "vls: 16",
    "pause: {quanta: 65536}",
]
TRAFFIC_TAKEN = [
    "{kind: incast, senders: 15, receiver: h0, size: 1MiB, stagger: 1us}",
    "{kind: incast, senders: [h1, h2], receiver: h0, size: 1MiB}",
    "{kind: permutation, size: 1MiB, priority: 3}",
    "{kind: poisson, pairs: [[h0, h1]], size: 1KiB, load: 70%}",
    "{kind: victim, size: 1KiB}",
    "{kind: victim, size: 1KiB, pair: [h0, h1]}",
    "{kind: pause_storm, host: h0, duration: 1ms}",
]
TRAFFIC_REFUSED = [
    "{kind: incast, senders: 0, receiver: h0, size: 1MiB}",
    "{kind: incast, senders: 1, size: 1MiB}",
    "{kind: permutation, size: 1MiB, priority: 16}",
    "{kind: poisson, pairs: [[h0, h1]], size: 1KiB}",
    "{kind: victim, size: 1KiB, pair: [h0, 1]}",
    "{kind: pause_storm, host: h0}",
]


@pytest.mark.parametrize(("lines", "good"), [(TAKEN, True), (REFUSED, False)])
def test_the_fabrics_values(lines: list[str], good: bool) -> None:
    for line in lines:
        text = builtin.text("hello").replace("profile: native", f"profile: native\n  {line}")
        assert line in text
        assert fits(parse_document(text, "s").value, SCHEMA) == good, line


@pytest.mark.parametrize(("lines", "good"), [(TRAFFIC_TAKEN, True), (TRAFFIC_REFUSED, False)])
def test_every_kind_of_traffic(lines: list[str], good: bool) -> None:
    fabric = "{profile: native, topology: {kind: line, switches: 1}}"
    for line in lines:
        given = parse_document(f"name: x\nfabric: {fabric}\ntraffic: [{line}]", "s").value
        assert fits(given, SCHEMA) == good, line


def test_it_is_json_and_says_what_must_be_given() -> None:
    schema = json.loads(json.dumps(SCHEMA))
    assert schema["required"] == ["name", "fabric", "traffic"]
    assert set(schema["$defs"]["Fabric"]["required"]) == {"profile", "topology"}
    assert schema["$defs"]["Write"]["properties"]["size"]["type"] == "string"
    assert "default" not in schema["$defs"]["Write"]["properties"]["start"]
