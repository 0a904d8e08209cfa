"""Which inputs each part of a latency rests on, and what kind of knowledge each input is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# The inputs whose value decides a part, by their place in a scenario.
RESTS_ON: dict[str, tuple[str, ...]] = {
    "nic": ("host.nic.post", "host.nic.receive", "host.nic.delivery"),
    "serialization": ("fabric.rate", "fabric.path_mtu", "fabric.framing_overhead"),
    "propagation": ("fabric.host_cable", "fabric.fabric_cable", "fabric.propagation"),
    "switching": ("fabric.hop_latency", "fabric.switching"),
    "completion": ("host.nic.ack_turnaround", "host.nic.cqe"),
}


def by_path(provenance: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, str]]:
    """From a result's `provenance` (kind to `path = value` lines): path to value and kind."""
    found: dict[str, tuple[str, str]] = {}
    for kind, lines in provenance.items():
        for line in lines:
            path, _, value = line.partition(" = ")
            found[path] = (value, kind)
    return found


def kind_text(kind: str) -> str:
    """The kind, loud where a figure was fitted to what it is compared with."""
    return kind.upper() if kind == "calibrated" else kind


def rests_on(part: str, inputs: Mapping[str, tuple[str, str]]) -> str:
    """`hop_latency 260ns (published), switching cut_through (assumed)`, or nothing."""
    known = [(path.rpartition(".")[2], *inputs[path]) for path in RESTS_ON.get(part, ()) if path in inputs]
    return ", ".join(f"{name} {value} ({kind_text(kind)})" for name, value, kind in known)
