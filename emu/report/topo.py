"""A fabric as a person reads it: nodes, links, what keeps it lossless and how much of it is needed, deadlock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from emu.linklayer.credits import BLOCK_BYTES, WINDOW_BLOCKS
from emu.report.headroom import headroom_lines
from emu.report.table import count_text, share_text, size_text, table, time_text
from emu.units import format_rate

Facts = Mapping[str, Any]
LINKS = 40  # shown; more are in --json
KEPT_BY = {
    "none": "no flow control: queues have no bound, so no frame is lost, paused or kept waiting for room",
    "credits": "lossless by credits of each VL (InfiniBand): a frame leaves only when the far end has granted room",
    "pfc": "lossless by PFC (Ethernet): a switch that runs full pauses its peers; headroom holds what still arrives",
}


def topo_text(facts: Facts) -> str:
    """What `emu topo` found, as text."""
    blocks = (_head, _links, headroom_lines, _credits, _ecn, _deadlock)
    return "\n\n".join("\n".join(lines) for lines in (list(block(facts)) for block in blocks) if lines)


def _head(facts: Facts) -> Iterator[str]:
    yield f"{facts['name']}: {facts['kind']}, profile {facts['profile']}"
    for kind, plural in (("host", "hosts"), ("switch", "switches")):
        names = [node["name"] for node in facts["nodes"] if node["kind"] == kind]
        if names:
            yield f"  {count_text(len(names), kind, plural)}: {_some(names)}"
    switching = facts["switching"].replace("_", "-")
    yield f"  switches: {switching}, {time_text(facts['hop_latency_ns'])} from first bit in to first bit out"
    yield f"  frames: {facts['framing']}, at most {facts['frame_bytes']:,} B, {facts['wire_bytes']:,} B on the wire"
    yield f"  {KEPT_BY[facts['flow_control']]}"
    paths = facts["paths"]
    if paths["pairs"]:
        least, most = paths["min_switches"], paths["max_switches"]
        passed = f"{least} to {most} switches" if least != most else count_text(least, "switch", "switches")
        yield (
            f"  {count_text(paths['pairs'], 'pair')} of source and destination, {passed} apart,"
            f" {count_text(paths['paths'], 'path')} in use (multipath {facts['multipath']})"
        )


def _some(names: Sequence[str]) -> str:
    return " ".join(names if len(names) <= 8 else [*names[:4], "...", *names[-2:]])


def _links(facts: Facts) -> Iterator[str]:
    links = facts["links"]
    rows = [("links", "rate", "cable", "propagation", "lossless by")]
    for link in links[:LINKS]:
        times = f"{link['cable_m']:g} m", f"{link['propagation_ns']:g} ns"
        rows.append((link["name"], format_rate(link["rate_bps"]), *times, link["lossless_by"]))
    yield from table(rows, left=(0, 4))
    if len(links) > LINKS:
        yield f"  and {count_text(len(links) - LINKS, 'link')} more: --json lists all"


def _credits(facts: Facts) -> Iterator[str]:
    rows = facts["credits"]
    if not rows:
        return
    one = rows[0]
    yield f"credits: of each VL (there {'is' if facts['vls'] == 1 else 'are'} {facts['vls']}), in each direction"
    yield (
        f"  window {one['window_blocks']:,} blocks of {BLOCK_BYTES} B; the largest frame costs"
        f" {one['frame_blocks']}; {one['threshold_blocks']} freed blocks are worth granting anew"
    )
    yield "  round trip of a credit = 2 x propagation + time in the buffer + ser(FCP); an FCP is the packet that grants"
    yield "  time in the buffer: ser(frame), and in a switch hop latency as well; ser: time on the wire"
    yield "  needed: blocks for line rate; busy: where every FCP first waits for a largest frame on its wire"
    heads = ("direction", "number", "rate", "cable", "round trip", "needed", "busy", "needed", "line rate")
    yield from table([heads, *map(_credit_row, rows)])
    for row in rows:
        yield from _limit(row)


def _credit_row(row: Facts) -> tuple[str, ...]:
    return (
        f"{row['first']} (into a {row['into']})",
        f"{row['directions']:,}",
        format_rate(row["rate_bps"]),
        f"{row['cable_m']:g} m",
        time_text(row["round_trip_ns"]),
        f"{row['needed_blocks']:,}",
        time_text(row["busy_round_trip_ns"]),
        f"{row['busy_needed_blocks']:,}",
        row["suffices"],
    )


def _limit(row: Facts) -> Iterator[str]:
    if row["suffices"] != "always":
        bounds = (row["at_least_bps"], row["at_most_bps"])
        rates = " to ".join(f"{format_rate(bps)} ({share_text(bps / row['rate_bps'])})" for bps in bounds)
        yield f"  {row['first']}: min(line, frames of a window / round trip) = {rates}"
    if not row["grantable"]:
        yield f"  {row['first']}: no window does, as at most {WINDOW_BLOCKS:,} blocks can be granted: use several VLs"


def _ecn(facts: Facts) -> Iterator[str]:
    ecn = facts["ecn"]
    if ecn is None:
        return
    kmin, kmax = size_text(ecn["kmin_bytes"]), size_text(ecn["kmax_bytes"])
    yield f"ECN: a frame is marked never while its queue is at most {kmin} (Kmin), always above {kmax} (Kmax),"
    yield f"  and in between with a probability that rises to {share_text(ecn['pmax'])} (Pmax)"
    if "xoff_bytes" not in ecn:
        return
    xoff = size_text(ecn["xoff_bytes"])
    if ecn["pfc_before_marking"]:
        yield f"  note: Kmin is not below XOFF, {xoff} where one port fills a queue: PFC fires before ECN marks"
    elif ecn["pfc_before_kmax"]:
        yield f"  note: Kmax lies above XOFF, {xoff} where one port fills a queue: PFC fires before ECN marks all"
    else:
        yield f"  Kmax lies below XOFF, {xoff} where one port fills a queue: ECN marks before PFC fires"


def _deadlock(facts: Facts) -> Iterator[str]:
    deadlock = facts["deadlock"]
    cycle = deadlock["cycle"]
    if not cycle:
        yield "no cyclic buffer dependency: cannot deadlock (NICs take in what arrives, whatever they send)"
        return
    chain = ", which waits for ".join([*cycle, cycle[0]]).replace(", which waits for ", " waits for ", 1)
    if deadlock["possible"]:
        yield f"DEADLOCK POSSIBLE: {chain}"
        yield "  each a buffer that frames on it fill while they wait for room in the next; NICs take in what arrives"
        yield "  remedy: routes without such a cycle, or more VLs or priorities than one along them"
    else:
        yield "cannot deadlock: nothing waits for room here. With credits or PFC it could:"
        yield f"  {chain}"
