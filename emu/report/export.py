"""A fabric for other tools: Graphviz (DOT), and containerlab's YAML."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from emu.units import format_rate

Facts = Mapping[str, Any]
IMAGE = "alpine:latest"  # containerlab wants one for each node; any with a shell does
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
_INTERFACE = re.compile(r".*-eth([0-9]+)")


def dot(facts: Facts) -> str:
    """The fabric as an undirected graph: `emu topo SCENARIO --dot | dot -Tsvg`."""
    lines = [f"graph {_dot_text(facts['name'])} {{", "  node [fontname=sans];", "  edge [fontname=sans, fontsize=8];"]
    for node in facts["nodes"]:
        shape = "box" if node["kind"] == "switch" else "ellipse"
        lines.append(f"  {_dot_text(node['name'])} [shape={shape}];")
    for link in facts["links"]:
        label = _dot_text(f"{format_rate(link['rate_bps'])} {link['cable_m']:g}m")
        lines.append(f"  {_dot_text(link['from'])} -- {_dot_text(link['to'])} [label={label}];")
    return "\n".join([*lines, "}"])


def _dot_text(text: str) -> str:
    """A quoted string of the DOT language, in which `\\"` is the only escape that means itself."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def containerlab(facts: Facts) -> str:
    """A containerlab topology, plain Linux containers joined alike: no rates, no flow control.

    There eth0 is the management interface, so hosts' ports, which count from 0 here, count from 1.
    """
    hosts = {node["name"] for node in facts["nodes"] if node["kind"] == "host"}
    lines = [f"name: {json.dumps(_NOT_IN_A_NAME.sub('-', facts['name']).strip('-.') or 'fabric')}", "topology:"]
    lines.append("  nodes:")
    for node in facts["nodes"]:
        lines.append(f"    {json.dumps(node['name'])}:")
        lines += ["      kind: linux", f"      image: {json.dumps(IMAGE)}", f"      group: {node['kind']}"]
    lines.append("  links:" if facts["links"] else "  links: []")
    for link in facts["links"]:
        ends = zip((link["from"], link["to"]), link["interfaces"], strict=True)
        endpoints = [f"{node}:eth{_number(interface) + (node in hosts)}" for node, interface in ends]
        lines.append(f"    - endpoints: {json.dumps(endpoints)}")
    return "\n".join(lines)


def _number(interface: str) -> int:
    found = _INTERFACE.fullmatch(interface)
    assert found is not None  # named so by emu.topology
    return int(found[1])
