"""The architecture as a test: imports point down, siblings make no circle, third parties stay where they belong."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.tree import PACKAGES, import_graph, sources

ROOF = 11
FLOORS: dict[int, str] = {
    ROOF: "emu emu.cli emu.start emu.__main__",
    10: "emu.commands",
    9: "emu.harness emu.lab.live emu.course",
    8: "emu.run",
    7: "emu.fabric traffic.workloads emu.report",
    6: "emu.verbs emu.measure emu.lab emu.attachment emu.host",
    5: "emu.devices",
    4: "emu.devices.ingress emu.devices.lane emu.devices.line emu.devices.passage emu.devices.port emu.devices.egress"
    " emu.subnet emu.deadlock emu.lossless topologies",
    3: "emu.transport emu.wire emu.capture",
    2: "emu.linklayer emu.congestion emu.framing emu.scenario emu.pcie emu.mlx5",
    1: "emu.engine emu.background emu.taps traffic.layers",
    0: "emu.units emu.errors emu.parts emu.crc emu.opcodes emu.topology emu.frame emu.addresses traffic",
}
# Where each package from outside, and the standard library's sockets, may be imported.
OUTSIDE: dict[str, str] = {
    "scapy": "traffic.layers emu.framing emu.capture",
    "mininet": "topologies emu.lab",
    "pyroute2": "topologies emu.lab",
    "socket": "emu.wire emu.lab",
    "anycrc": "emu.crc",
    "pydantic": "emu.scenario",
    "pydantic_core": "emu.scenario",
    "yaml": "emu.scenario",
    "tqdm": "emu.report",
}
FLOOR_OF = {name: floor for floor, names in FLOORS.items() for name in names.split()}
SPREAD = {"emu", "traffic"}  # a floor for the package's own file says nothing about the modules in it


def inside(module: str, places: str) -> bool:
    return any(f"{module}.".startswith(f"{place}.") for place in places.split())


def floor(module: str) -> int | None:
    """The floor of a module: of the longest entry that it lies in, or None."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        entry = ".".join(parts[:length])
        if entry in FLOOR_OF and (entry == module or entry not in SPREAD):
            return FLOOR_OF[entry]
    return None


def family(module: str) -> str:
    """The package whose modules are siblings: `emu.wire` for `emu.wire.veth`, `emu` for `emu.units`."""
    return ".".join(module.split(".")[:2]) if module.count(".") > 1 else module.partition(".")[0]


def may_import(module: str, target: str) -> bool:
    own, below = floor(module), floor(target)
    if own is None or below is None:
        return False
    same_package = family(module) == family(target) or family(module) == target or family(target) == module
    return below < own or (below == own and same_package)


def violations(texts: Mapping[str, str]) -> list[str]:
    """One line for each import that does not point down, and for each module without a floor."""
    found = [f"{module}: on no floor; add it to FLOORS" for module in texts if floor(module) is None]
    for module, targets in import_graph(texts).items():
        for target, line in targets.items():
            top = target.partition(".")[0]
            if top in PACKAGES:
                if not may_import(module, target):
                    found.append(f"{module}:{line}: floor {floor(module)} imports {target}, floor {floor(target)}")
            elif (top in OUTSIDE or top not in sys.stdlib_module_names) and not inside(module, OUTSIDE.get(top, "")):
                found.append(f"{module}:{line}: may not import {top}; where: {OUTSIDE.get(top, 'nowhere')}")
    return found


def circle(texts: Mapping[str, str]) -> list[str]:
    """A circle of imports, or nothing."""
    graph = {module: [name for name in targets if name in texts] for module, targets in import_graph(texts).items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_imports_point_down() -> None:
    assert violations(sources()) == []


def test_siblings_import_each_other_without_circles() -> None:
    assert circle(sources()) == []


ALLOWED = {
    "emu.run": "import emu.fabric, json\nfrom emu import units",
    "emu.wire.veth": "import socket\nfrom emu.wire.base import Wire\nfrom . import base",
    "emu.devices.switch": "from emu.devices.port import Port",
    "emu.lab.live": "from emu.lab.net import Net\nfrom mininet.cli import CLI",
    "emu.topology": "from emu.errors import ScenarioError",
    "topologies.rail": "from mininet.topo import Topo\nfrom topologies.base import X",
    "traffic.workloads.write": "from emu.verbs import QP",
}
FORBIDDEN = {
    "emu.units": "from emu import run",
    "emu.wire.memory": "from ..devices.port import Port",
    "emu.devices.port": "from emu.devices.switch import Switch",
    "emu.transport.qp": "from emu.wire.base import Wire",
    "emu.lab.net": "def later():\n    import emu.lab.live",
    "emu.engine": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from emu.fabric import Fabric",
    "emu.devices.nic": "import scapy.all",
    "emu.subnet": "import networkx",
    "emu.framing.roce": "import socket",
    "emu.brand_new": "",
}
STUBS = {
    name: "" for name in ("emu.run", "emu.lab.live", "emu.units", "emu.wire.base", "emu.fabric", "emu.devices.port")
}


@pytest.mark.parametrize("module", ALLOWED)
def test_what_points_down_passes(module: str) -> None:
    assert violations(STUBS | {module: ALLOWED[module]}) == []


@pytest.mark.parametrize("module", FORBIDDEN)
def test_what_does_not_point_down_is_found(module: str) -> None:
    assert len(violations(STUBS | {module: FORBIDDEN[module]})) == 1


def test_a_circle_is_found() -> None:
    around = {"emu.lab.a": "from emu.lab import b", "emu.lab.b": "import emu.lab.c", "emu.lab.c": "from . import a"}
    assert set(circle(around)) == set(around)
    assert circle(around | {"emu.lab.c": ""}) == []
