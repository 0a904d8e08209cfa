"""Which inputs each part of a message's way through a host rests on, and each bound of its rate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from emu.report.inputs import kind_text
from emu.report.table import table

Inputs = Mapping[str, Mapping[str, str]]
"""By path in a scenario, `host.` included: value, kind and source."""
Parts = dict[str, tuple[str, ...]]
"""The paths that each part rests on, without `host.`; a network's with `fabric.`."""

ORDER = (
    *("copy", "ask", "post", "ring", "fetch", "gather", "stall", "land", "copy_out", "NIC", "network", "completion"),
)
KINDS = ("calibrated", "assumed", "secondary", "scenario", "published", "spec")  # the least certain first
NETWORK = (
    *("fabric.rate", "fabric.path_mtu", "fabric.framing_overhead"),
    *("fabric.host_cable", "fabric.propagation", "fabric.hop_latency"),
)


class Way(NamedTuple):
    """What a host does to send a message: as its scenario says it."""

    path: str
    gpu_direct: bool
    attach: str = "switch"
    nic_handler: str = "gpu"
    nic_buf_memtype: str = "gpumem"
    blueflame: bool = True

    @classmethod
    def of(cls, path: str, gpu_direct: bool, inputs: Inputs) -> Way:
        """Of a path, with the other values as the inputs have them."""
        return cls(
            path,
            gpu_direct,
            inputs["host.pcie.attach"]["value"],
            inputs["host.queues.nic_handler"]["value"],
            inputs["host.queues.nic_buf_memtype"]["value"],
            inputs["host.cpu.blueflame"]["value"] == "true",
        )

    @property
    def hop(self) -> tuple[str, ...]:
        """What crossing the PCIe tree rests on."""
        middle = "pcie.switch" if self.attach == "switch" else "pcie.root_complex"
        return ("pcie.attach", "pcie.link", middle, "pcie.generation", "pcie.width", "pcie.mps")


def parts_of(way: Way) -> Parts:
    """Of one message alone."""
    hop, is_gpu, is_sync = way.hop, way.path == "ibgda", way.path == "cpu_sync"
    by_cpu = is_gpu and way.nic_handler == "cpu"
    wqe_memory = "gpu.read" if is_gpu and way.nic_buf_memtype == "gpumem" else "cpu.read"
    posts = ("gpu.post",) if is_gpu else ("cpu.synchronize", "cpu.post") if is_sync else ("cpu.poll", "cpu.request")
    rings = ("gpu.ring",) if is_gpu else ()
    fetches = (wqe_memory,) if is_gpu or not way.blueflame else ()  # else it comes with its doorbell
    parts = {
        "copy": () if way.gpu_direct else ("gpu.copy", *hop),
        "ask": ("gpu.request", *hop) if way.path == "cpu_proxy" else (),
        "post": posts,
        "ring": (*rings, *(("cpu.poll", "cpu.post") if by_cpu else ()), *hop),
        "fetch": (*fetches, "cpu.read", "nic.context_cache", *hop),  # the queue pair's context first, if it is not here
        "gather": ("gpu.read" if way.gpu_direct else "cpu.read", "pcie.mrrs", "pcie.tags", *hop),
        "stall": ("pcie.mrrs", "pcie.tags", *hop),
        "land": hop,
        "copy_out": () if way.gpu_direct else ("gpu.copy", *hop),
        "NIC": ("nic.post", "nic.receive"),
        "network": NETWORK,
        "completion": ("nic.ack_turnaround", "gpu.poll" if is_gpu else "cpu.poll"),
    }
    if way.path == "cpu_proxy":
        parts["completion"] += ("gpu.poll",)
    return {part: paths for part, paths in parts.items() if paths}


def bound_rests_on(bound: str, way: Way) -> tuple[str, ...]:
    """What a bound of `emu.host.limits`, or the send queues', rests on."""
    hop = way.hop
    reads_gpu = "gpu.read" if way.gpu_direct else "cpu.read"
    known: Parts = {
        "NIC message rate": ("nic.message_rate",),
        "queue pairs": ("nic.qp_message_rate", "queues.num_rc_per_pe"),
        "network": ("fabric.rate", "fabric.framing_overhead", "fabric.path_mtu"),
        "read tags": ("pcie.tags", "pcie.mrrs", reads_gpu, *hop),
        "GPU warps": ("gpu.post", "gpu.ring", "queues.num_requests_in_batch"),
        "proxy threads": ("cpu.request", "cpu.poll", "cpu.batch", "cpu.cores"),
        "synchronisation with the host": ("cpu.synchronize", "cpu.post"),
        "send queues": ("queues.qp_depth", "queues.num_rc_per_pe"),
    }
    return known.get(bound, ("pcie.generation", "pcie.width", "pcie.mps", "pcie.mrrs"))


def kinds_text(paths: Sequence[str], inputs: Inputs) -> str:
    """The kinds of those inputs, the least certain first: `CALIBRATED, assumed`."""
    found = {entry["kind"] for entry in map(inputs.get, map(_whole, paths)) if entry is not None}
    return ", ".join(kind_text(kind) for kind in KINDS if kind in found)


def inputs_lines(ways: Sequence[Way], bounds: Sequence[str], inputs: Inputs) -> Iterator[str]:
    """Every input once, under the first part that rests on it; and what was fitted to a figure."""
    yield "what the figures rest on (how much each input is worth: docs/scenarios.md)"
    lines, seen = [], set[str]()
    for part, paths in _grouped(ways, bounds):
        name = part
        for path in paths:
            entry = inputs.get(_whole(path))
            if entry is not None and path not in seen:
                seen.add(path)
                lines.append((name, path, entry["value"], kind_text(entry["kind"]), entry["source"]))
                name = ""
    yield from table(lines, left=range(5))
    for path in sorted(seen):
        entry = inputs[_whole(path)]
        if entry["kind"] == "calibrated":
            yield (f"note: {path} is calibrated {entry['source']}: that confirms nothing; the others are predictions")


def _grouped(ways: Sequence[Way], bounds: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "each PCIe crossing", tuple(path for way in ways for path in way.hop)
    for part in ORDER:
        yield part, tuple(path for way in ways for path in parts_of(way).get(part, ()))
    for bound in bounds:
        yield f"rate: {bound}", tuple(path for way in ways for path in bound_rests_on(bound, way))


def _whole(path: str) -> str:
    return path if path.startswith("fabric.") else f"host.{path}"
