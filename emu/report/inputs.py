"""Which inputs each part of a latency rests on, and what kind of knowledge each input is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from emu.report.table import table

Inputs = Mapping[str, Mapping[str, Mapping[str, str]]]
"""By who uses it (a profile, or a run) and path: value, kind and source."""

# The inputs whose value decides a part, by their place in a scenario.
RESTS_ON: dict[str, tuple[str, ...]] = {
    "nic": ("host.nic.post", "host.nic.receive", "host.nic.delivery"),
    "serialization": ("fabric.rate", "fabric.path_mtu", "fabric.framing_overhead"),
    "propagation": ("fabric.host_cable", "fabric.fabric_cable", "fabric.propagation"),
    "switching": ("fabric.hop_latency", "fabric.switching"),
    "completion": ("host.nic.ack_turnaround", "host.nic.cqe"),
}
# And those that decide how a fabric takes congestion, by what they are used with.
CONGESTION_RESTS_ON: dict[str, tuple[str, ...]] = {
    "link and switch": ("fabric.rate", "fabric.path_mtu", "fabric.hop_latency", "fabric.arbiter", "fabric.multipath"),
    "flow control": ("fabric.flow_control",),
    "credits": ("fabric.credit_blocks", "fabric.credits", "fabric.vls"),
    "pfc": (
        *("fabric.buffer", "fabric.alpha", "fabric.reserved", "fabric.xoff", "fabric.xon"),
        *("fabric.headroom", "fabric.pause", "fabric.watchdog", "fabric.lossless"),
    ),
    "marking": ("fabric.ecn",),
    "congestion control": ("fabric.congestion_control", "fabric.cc_preset", "fabric.cnp"),
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
    return named(RESTS_ON.get(part, ()), inputs)


def named(paths: Sequence[str], inputs: Mapping[str, tuple[str, str]], *, whole: bool = False) -> str:
    """Those inputs with value and kind; `whole`: with the group that they are in, as `gpu.post`."""
    known = [(path.split(".", 1)[1] if whole else path.rpartition(".")[2], path) for path in paths if path in inputs]
    return ", ".join(f"{name} {inputs[path][0]} ({kind_text(inputs[path][1])})" for name, path in known)


def inputs_table(inputs: Inputs, parts: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Each input of each part once for all who share it, and a note on what was fitted to a figure."""
    yield "what the figures rest on"
    lines: list[tuple[str, ...]] = []
    for part, paths in parts.items():
        for path in paths:
            for (value, kind, source), users in _shared(inputs, path).items():
                who = "all" if len(users) == len(inputs) else ", ".join(users)
                lines.append((part, path.rpartition(".")[2], who, value, kind_text(kind), source))
                part = ""
    yield from table(lines, left=range(6))
    for user, fitted in _calibrated(inputs).items():
        yield (
            f"note: {user}: {', '.join(fitted)}; calibrated: the figure that it was fitted to confirms nothing,"
            " only the others are predictions"
        )


def _shared(inputs: Inputs, path: str) -> dict[tuple[str, str, str], list[str]]:
    found: dict[tuple[str, str, str], list[str]] = {}
    for user, entries in inputs.items():
        if path in entries:
            entry = entries[path]
            found.setdefault((entry["value"], entry["kind"], entry["source"]), []).append(user)
    return found


def _calibrated(inputs: Inputs) -> dict[str, list[str]]:
    found = {
        user: [
            f"{path.rpartition('.')[2]} {entry['value']} ({entry['source']})"
            for path, entry in entries.items()
            if entry["kind"] == "calibrated"
        ]
        for user, entries in inputs.items()
    }
    return {user: paths for user, paths in found.items() if paths}
