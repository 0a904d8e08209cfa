"""What `emu topo` shows of a scenario's fabric, worked out without running anything: `--json` prints it as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from graphlib import TopologicalSorter
from typing import Any

from emu import lossless
from emu.deadlock import find_cycle
from emu.frame import Framing
from emu.harness.link_classes import credit_rows, headroom_rows
from emu.scenario.fabric import Fabric
from emu.scenario.model import Scenario
from emu.subnet import Subnet, Table, single_path
from emu.topology import Kind, PortName, Topology
from emu.units import ps_to_ns

Facts = dict[str, Any]
Tables = Mapping[str, Table]


def describe(scenario: Scenario, topology: Topology, framing: Framing) -> Facts:
    """The fabric: nodes, links, paths, what is set aside and granted, and whether it can deadlock.

    Raises ScenarioError for what flow control makes impossible on these links.
    """
    fabric = scenario.fabric
    lossless.check(scenario, topology, framing)
    tables = _tables(fabric, topology)
    pfc, credits = fabric.flow_control == "pfc", fabric.flow_control == "credits"
    return {
        "name": scenario.name,
        "profile": fabric.profile,
        "kind": fabric.topology.kind,
        "framing": fabric.framing,
        "flow_control": fabric.flow_control,
        "multipath": fabric.multipath,
        "switching": fabric.switching,
        "hop_latency_ns": ps_to_ns(fabric.hop_latency_ps),
        "frame_bytes": lossless.largest_frame_bytes(fabric, framing),
        "wire_bytes": lossless.largest_frame_wire_bytes(framing, fabric.path_mtu_bytes),
        "nodes": list(_nodes(fabric, topology, framing)),
        "links": list(_links(fabric, topology)),
        "paths": _paths(topology, tables, single=fabric.multipath == "single"),
        "pfc": _pfc(fabric, topology, framing) if pfc else None,
        "headroom": list(headroom_rows(fabric, topology, framing)) if pfc else [],
        "vls": fabric.vls if credits else None,
        "credits": list(credit_rows(fabric, topology, framing)) if credits else [],
        "ecn": _ecn(fabric, topology, framing),
        "deadlock": _deadlock(fabric, topology, tables),
    }


def _tables(fabric: Fabric, topology: Topology) -> Tables:
    """The forwarding tables as the switches have them."""
    tables = Subnet(topology).tables()
    if fabric.multipath != "single":
        return tables
    return {name: single_path(table) for name, table in tables.items()}


def _nodes(fabric: Fabric, topology: Topology, framing: Framing) -> Iterator[Facts]:
    ports = dict.fromkeys((node.name for node in topology.nodes), 0)
    for link in topology.links:
        ports[link.a.node] += 1
        ports[link.b.node] += 1
    aside = lossless.switch_set_aside_bytes(fabric, topology, framing) if fabric.flow_control == "pfc" else {}
    for node in topology.nodes:
        facts: Facts = {"name": node.name, "kind": node.kind.value, "ports": ports[node.name]}
        if node.name in aside:
            set_aside = aside[node.name]
            facts |= {
                "buffer_bytes": fabric.buffer_bytes,
                "set_aside_bytes": set_aside,
                "shared_bytes": fabric.buffer_bytes - set_aside,
                "xoff_bytes": _xoff_bytes(fabric, fabric.buffer_bytes - set_aside),
            }
        yield facts


def _xoff_bytes(fabric: Fabric, shared_bytes: int) -> int:
    """What one congested (port, priority) holds when it asks for a pause, nobody else holding shared memory.

    It may hold alpha times what is free, which is what it does not hold: alpha / (1 + alpha) of it all.
    """
    alpha: Fraction = fabric.alpha
    dynamic = int(shared_bytes * alpha / (1 + alpha))
    limit = dynamic if fabric.xoff_bytes is None else min(dynamic, fabric.xoff_bytes)
    return limit + int(fabric.reserved_bytes)


def _links(fabric: Fabric, topology: Topology) -> Iterator[Facts]:
    for link in topology.links:
        yield {
            "name": link.name,
            "from": link.a.node,
            "to": link.b.node,
            "interfaces": [link.a.interface, link.b.interface],
            "rate_bps": link.rate_bps,
            "cable_m": lossless.cable_mm(fabric, link) / 1000,
            "propagation_ns": ps_to_ns(link.propagation_ps),
            "lossless_by": _lossless_by(fabric),
        }


def _lossless_by(fabric: Fabric) -> str:
    if fabric.flow_control == "credits":
        return "credits"
    if fabric.flow_control == "pfc":
        priorities = lossless.lossless_priorities(fabric)
        return "PFC on " + ", ".join(map(str, priorities)) if priorities else "nothing"
    return "no bound"


def _pfc(fabric: Fabric, topology: Topology, framing: Framing) -> Facts:
    ingress = lossless.ingress_config(fabric, topology.links[0], framing, True)
    return {
        "priorities": list(lossless.lossless_priorities(fabric)),
        "buffer_bytes": fabric.buffer_bytes,
        "reserved_bytes": fabric.reserved_bytes,
        "alpha": str(fabric.alpha),
        "xoff_bytes": fabric.xoff_bytes,
        "resume_below_bytes": ingress.xoff_bytes - ingress.xon_bytes,
        "quanta": fabric.pause.quanta,
        "headroom": fabric.headroom,
    }


def _ecn(fabric: Fabric, topology: Topology, framing: Framing) -> Facts | None:
    """The marking curve, and which of PFC and ECN comes first where one port fills a queue."""
    curve = lossless.ecn_config(fabric)
    if curve is None:
        return None
    facts: Facts = {"kmin_bytes": curve.kmin_bytes, "kmax_bytes": curve.kmax_bytes, "pmax": float(curve.pmax)}
    if fabric.flow_control == "pfc" and topology.switches:
        most = max(lossless.switch_set_aside_bytes(fabric, topology, framing).values())
        facts["xoff_bytes"] = xoff_bytes = _xoff_bytes(fabric, fabric.buffer_bytes - most)
        facts["pfc_before_marking"] = curve.kmin_bytes >= xoff_bytes
        facts["pfc_before_kmax"] = curve.kmax_bytes > xoff_bytes
    return facts


def _deadlock(fabric: Fabric, topology: Topology, tables: Tables) -> Facts:
    """Possible where buffers wait for each other in a circle, and waiting is what full buffers make frames do."""
    cycle = find_cycle(topology, tables) or []
    waits = fabric.flow_control == "credits" or bool(lossless.lossless_priorities(fabric))
    return {"possible": bool(cycle) and waits, "cycle": cycle, "nics": "sink"}


def _paths(topology: Topology, tables: Tables, *, single: bool) -> Facts:
    """Ordered pairs of hosts, the shortest paths between them, and over how few and how many switches these lead."""
    ends = {link.a: link.b.node for link in topology.links} | {link.b: link.a.node for link in topology.links}
    hosts: dict[str, list[str]] = {}  # by the switch they are on
    back_to_back = 0
    for port, node in ends.items():
        if topology.kind(port.node) is Kind.HOST:
            if topology.kind(node) is Kind.SWITCH:
                hosts.setdefault(node, []).append(port.node)
            else:
                back_to_back += 1
    paths, switches = back_to_back, {0} if back_to_back else set()
    for destination, there in hosts.items():
        ways = _ways(destination, there[0], tables, ends)
        for source, here in hosts.items():
            pairs = len(here) * (len(there) - (source == destination))
            if pairs:
                count, passed = ways[source]
                paths += pairs * (1 if single else count)
                switches.add(passed)
    total = len(topology.hosts)
    return {
        "pairs": total * (total - 1),
        "paths": paths,
        "min_switches": min(switches, default=0),
        "max_switches": max(switches, default=0),
    }


def _ways(last: str, host: str, tables: Tables, ends: Mapping[PortName, str]) -> dict[str, tuple[int, int]]:
    """For each switch: by how many paths a host on switch `last` is reached, and over how many switches, itself too."""
    onward = {
        switch: [ends[PortName(switch, number)] for number in table.get(host, ())] for switch, table in tables.items()
    }
    onward[last] = []
    found = {last: (1, 1)}
    for switch in TopologicalSorter(onward).static_order():
        if switch != last and onward[switch]:
            steps = [found[node] for node in onward[switch]]
            found[switch] = sum(count for count, _ in steps), 1 + steps[0][1]
    return found
