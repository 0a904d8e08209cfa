"""The latency table as text: fabric latency by size and profile, who is lower by how much, where the time goes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from emu.report.inputs import RESTS_ON, Inputs, inputs_table
from emu.report.table import count_text, share_text, table, time_text
from emu.units import format_size

Rows = Sequence[Mapping[str, Any]]
BASELINE, SHOWN_BYTES, LIMIT_NS = "native", 4096, 1000
NO_HOP_WOULD_DO = "none would do"
FETCHED = ("read", "fetch_add", "cmp_swp")
NAMES = {
    "write": "RDMA WRITE",
    "write_imm": "RDMA WRITE with immediate",
    "send": "SEND",
    "read": "RDMA READ",
    "fetch_add": "FETCH AND ADD",
    "cmp_swp": "COMPARE AND SWAP",
}
HOST_PATH = "host.gpu.post"  # an input where hosts have a path to their NICs
HOST_SECTIONS = ("host.pcie.", "host.gpu.", "host.cpu.", "host.queues.")
REPLACED_LEGS = ("host.nic.delivery", "host.nic.cqe")
FABRIC_PARTS = ("serialization", "propagation", "switching", "queueing", "flow_control_wait")


def latency_text(found: Mapping[str, Any], claim: Fraction) -> str:
    """The whole report on what the harness found; `claim` is a share by which the baseline is said to be lower."""
    rows: Rows = found["rows"]
    if not rows:
        return "\n".join(["no row is whole", *_missing(found)])
    blocks = [_head(found)]
    for op in dict.fromkeys(row["op"] for row in rows):
        of_op = [row for row in rows if row["op"] == op]
        blocks += [_by_size(of_op), _lower(of_op), _parts(of_op), _verdicts(of_op), _needed(of_op, claim)]
    blocks.append(_inputs(found["inputs"]))
    return "\n\n".join("\n".join(lines) for lines in map(list, blocks) if lines)


def lower_by(row: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """The share by which the first row's fabric latency is below the other's."""
    return 1 - float(row["fabric_latency_ns"]) / float(other["fabric_latency_ns"])


def hop_needed_ns(base: Mapping[str, Any], other: Mapping[str, Any], claim: Fraction) -> float:
    """The hop latency at which `base` would be lower than `other` by `claim`, all else of `other` as it is.

    Exact for an unloaded message: every switch on its way adds its hop latency, once (docs/timing.md).
    """
    ways = 2 if other["op"] in FETCHED else 1  # a request goes there before the data comes back
    rest_ns = float(other["fabric_latency_ns"]) - float(other["breakdown_ns"]["switching"]) / ways
    return (float(base["fabric_latency_ns"]) / float(1 - claim) - rest_ns) / int(other["hops"])


def _at(rows: Rows, size_bytes: int) -> dict[str, Mapping[str, Any]]:
    return {row["profile"]: row for row in rows if row["size_bytes"] == size_bytes}


def _profiles(rows: Rows) -> list[str]:
    return list(dict.fromkeys(row["profile"] for row in rows))


def _sizes(rows: Rows) -> list[int]:
    return list(dict.fromkeys(row["size_bytes"] for row in rows))


def _baseline(rows: Rows) -> str:
    profiles = _profiles(rows)
    return BASELINE if BASELINE in profiles else profiles[0]


def _shown(rows: Rows) -> int:
    """The size that is looked at closely: 4 KiB, or the first."""
    sizes = _sizes(rows)
    return SHOWN_BYTES if SHOWN_BYTES in sizes else sizes[0]


def _head(found: Mapping[str, Any]) -> Iterator[str]:
    row, topology = found["rows"][0], found["topology"]
    shape = ", ".join(f"{key} {value}" for key, value in topology.items() if isinstance(value, (int, str)))
    yield (
        f"{_names(found['rows'])} from {found['pair'][0]} to {found['pair'][1]} over"
        f" {count_text(row['hops'], 'switch', 'switches')}, unloaded; {count_text(found['iters'], 'message')} a row"
    )
    yield f"{shape}; wire {found['wire']}"
    if found["uneven"]:
        rows, spread = ", ".join(found["uneven"]), time_text(found["spread_ns"])
        yield f"note: means of messages that differ by up to {spread} (behind control frames of the links, say): {rows}"
    yield from _missing(found)


def _names(rows: Rows) -> str:
    return ", ".join(dict.fromkeys(NAMES[row["op"]] for row in rows))


def _missing(found: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"MISSING: {each}" for each in found["missing"])


def _inputs(inputs: Inputs) -> Iterator[str]:
    """With a host path two of the NIC's legs are not, and what is in their place `emu doorbell` tells of."""
    with_path = any(HOST_PATH in entries for entries in inputs.values())
    gone = (*REPLACED_LEGS, *HOST_SECTIONS) if with_path else ()
    left = {
        user: {path: entry for path, entry in entries.items() if not path.startswith(gone)}
        for user, entries in inputs.items()
    }
    yield from inputs_table(left, RESTS_ON)
    if with_path:
        yield "note: what the hosts' paths to their NICs rest on, `emu doorbell` says"


def _by_size(rows: Rows) -> Iterator[str]:
    profiles = _profiles(rows)
    what = "" if rows[0]["op"] == "write" else f" of {NAMES[rows[0]['op']]}"
    yield f"fabric latency{what}: first bit out of the source NIC to last bit into the destination NIC"
    lines = [("size", *profiles)]
    for size_bytes in _sizes(rows):
        at = _at(rows, size_bytes)
        cells = (time_text(at[profile]["fabric_latency_ns"]) if profile in at else "-" for profile in profiles)
        lines.append((format_size(size_bytes), *cells))
    yield from table(lines)


def _lower(rows: Rows) -> Iterator[str]:
    base = _baseline(rows)
    others = [profile for profile in _profiles(rows) if profile != base]
    if not others:
        return
    yield f"{base} is lower by (negative: higher)"
    lines = [("size", *(f"than {other}" for other in others))]
    for size_bytes in _sizes(rows):
        at = _at(rows, size_bytes)
        cells = (share_text(lower_by(at[base], at[other])) if {base, other} <= at.keys() else "-" for other in others)
        lines.append((format_size(size_bytes), *cells))
    yield from table(lines)


def _network_ns(parts: Mapping[str, float]) -> float:
    return parts["total"] - parts["nic"] - parts.get("host", 0)


def _parts(rows: Rows) -> Iterator[str]:
    at = _at(rows, _shown(rows))
    yield f"where the time goes at {format_size(_shown(rows))}"
    lines = [("", *at)]
    for part in FABRIC_PARTS:
        values = [row["breakdown_ns"].get(part, 0) for row in at.values()]
        if any(values) or part in FABRIC_PARTS[:3]:
            lines.append((part.replace("_", " "), *map(time_text, values)))
    fetched = rows[0]["op"] in FETCHED
    if fetched:
        both = (_network_ns(row["breakdown_ns"]) for row in at.values())
        lines.append(("= request's and data's way", *map(time_text, both)))
    name = "  of it fabric latency" if fetched else "= fabric latency"
    lines.append((name, *(time_text(row["fabric_latency_ns"]) for row in at.values())))
    hosts = [row["breakdown_ns"].get("host", 0) for row in at.values()]
    if any(hosts):
        lines.append(("hosts' paths", *map(time_text, hosts)))
    lines.append(("NIC legs", *(time_text(row["breakdown_ns"]["nic"]) for row in at.values())))
    lines.append(("= message latency", *(time_text(row["message_latency_ns"]) for row in at.values())))
    lines.append(("completion latency", *(time_text(row["completion_latency_ns"]) for row in at.values())))
    yield from table(lines)
    yield "  message latency: posted to visible at the destination; completion latency: posted to completion seen"


def _verdicts(rows: Rows) -> Iterator[str]:
    shown = _shown(rows)
    for profile, row in _at(rows, shown).items():
        hops = count_text(row["hops"], "hop")
        under = "under" if row["fabric_latency_ns"] < LIMIT_NS else "NOT under"
        yield f"{profile}: {hops} at {format_size(shown)} in {time_text(row['fabric_latency_ns'])}: {under} 1 us"


def _needed(rows: Rows, claim: Fraction) -> Iterator[str]:
    base, shown = _baseline(rows), _shown(rows)
    at = _at(rows, shown)
    if base not in at or len(at) < 2 or at[base]["hops"] == 0:
        return
    needed = ((profile, hop_needed_ns(at[base], row, claim)) for profile, row in at.items() if profile != base)
    texts = (f"{profile} {time_text(value_ns) if value_ns >= 0 else NO_HOP_WOULD_DO}" for profile, value_ns in needed)
    yield f"hop latency at which {base} would be {share_text(float(claim))} lower at {format_size(shown)}:"
    yield f"  {', '.join(texts)}"
