"""The buffer of a fabric that is lossless by PFC, as a person reads it: headroom term by term, what is set aside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from emu.report.table import count_text, size_text, table, time_text
from emu.units import format_rate

Facts = Mapping[str, Any]
FORMULAS = """\
headroom: what a switch keeps, for each port and lossless priority, for what still arrives after it asked for a pause
  D      = ser(largest frame, on the wire back) + ser(PFC frame) + 2 x propagation + response: until the sender stops
  tight  = N x frame, N = ceil(D / ser(frame)): to the byte, where all frames are of the largest size
  mixed  = (D - 1 ps) x rate + frame: enough whatever the frames' sizes
  vendor = frame + (frame + 2 x cable / 198,000 km/s x rate + 800 B MAC and PHY + peer's response) x cells, in whole KiB
           (SONiC's for Mellanox switches; response: the standard's limit; cells: 144 B of memory for a frame of 64)
  ser: time on the wire; response: from the pause frame's last bit in until no frame starts any more""".splitlines()


def headroom_lines(facts: Facts) -> Iterator[str]:
    """The headroom of each class of links, the thresholds, and each switch's memory; nothing without PFC."""
    rows, pfc = facts["headroom"], facts["pfc"]
    if pfc is None or not rows:
        return
    yield from FORMULAS
    yield from _classes(rows)
    for row in rows:
        yield from _terms(row)
    yield from _short(rows)
    yield ""
    yield from _thresholds(pfc)
    yield from _switches(facts)


def _classes(rows: list[Facts]) -> Iterator[str]:
    heads = ("direction", "number", "rate", "cable", "response", "D", "N", "tight", "mixed", "vendor", "chosen")
    yield from table([heads, *map(_class, rows)])


def _class(row: Facts) -> tuple[str, ...]:
    return (
        row["first"],
        f"{row['directions']:,}",
        format_rate(row["rate_bps"]),
        f"{row['cable_m']:g} m",
        time_text(row["response_ns"]),
        time_text(row["delay_ns"]),
        f"{row['frames']:,}",
        *(f"{row[f'{kind}_bytes']:,}" for kind in ("tight", "mixed", "vendor")),
        f"{row['chosen']} {row['chosen_bytes']:,}",
    )


def _terms(row: Facts) -> Iterator[str]:
    vendor, delay = row["vendor_terms"], f"{row['delay_ns']:g}"
    pipeline = f" + {row['pipeline_ns']:g}" if row["pipeline_ns"] else ""
    yield (
        f"  {row['first']}: D = {row['reverse_ser_ns']:g} + {row['pfc_ser_ns']:g} + 2 x {row['propagation_ns']:g}"
        f" + {row['response_ns']:g}{pipeline} = {delay} ns, N = ceil({delay} / {row['frame_ser_ns']:g})"
        f" = {row['frames']}"
    )
    yield (
        f"    vendor: {vendor['mtu_bytes']:,} + ({vendor['port_mtu_bytes']:,} + {vendor['cable_bytes']:.1f}"
        f" + {vendor['mac_phy_bytes']} + {vendor['response_bytes']:,}) x {vendor['occupancy']:g},"
        f" in whole KiB: {row['vendor_bytes']:,} B"
    )
    yield (
        f"    a pause frame pauses for {time_text(row['pause_ns'])}; while XOFF lasts, the next follows after"
        f" {time_text(row['refresh_ns'])}"
    )


def _short(rows: list[Facts]) -> Iterator[str]:
    for row in rows:
        if row["chosen_bytes"] < row["tight_bytes"]:
            missing = row["tight_bytes"] - row["chosen_bytes"]
            yield f"  WARNING: {row['first']}: {missing:,} B less than tight: a lossless frame can be DROPPED"
        elif row["chosen_bytes"] < row["mixed_bytes"]:
            yield f"  note: {row['first']}: less than mixed: frames of several sizes can be more than it holds"


def _thresholds(pfc: Facts) -> Iterator[str]:
    which = " ".join(map(str, pfc["priorities"])) or "none"
    yield f"PFC on priorities: {which}; quanta {pfc['quanta']:,} of 512 bit times"
    reserved = f"{size_text(pfc['reserved_bytes'])} reserved and " if pfc["reserved_bytes"] else ""
    limit = f"{reserved}alpha = {pfc['alpha']} times what is free of the shared memory"
    if pfc["xoff_bytes"] is not None:
        limit += f", at most {size_text(pfc['xoff_bytes'])}"
    yield f"  XOFF where a (port, priority) would hold more than {limit}"
    yield f"  XON where its headroom is empty and it holds {size_text(pfc['resume_below_bytes'])} less than that"


def _switches(facts: Facts) -> Iterator[str]:
    alike: dict[tuple[int, int, int], list[Facts]] = {}
    for node in facts["nodes"]:
        if "set_aside_bytes" in node:
            alike.setdefault((node["ports"], node["set_aside_bytes"], node["xoff_bytes"]), []).append(node)
    cells = [("switches", "ports", "buffer", "set aside", "shared", "XOFF of one alone")]
    for nodes in alike.values():
        one = nodes[0]
        more = f" and {count_text(len(nodes) - 1, 'other')}" if len(nodes) > 1 else ""
        sizes = (f"{one[key]:,}" for key in ("buffer_bytes", "set_aside_bytes", "shared_bytes", "xoff_bytes"))
        cells.append((one["name"] + more, f"{one['ports']:,}", *sizes))
    yield from table(cells)
