"""The doorbell report as text: one message's life by each path, where its time goes, rates and what bounds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from emu.report.host_inputs import Way, bound_rests_on, inputs_lines, kinds_text, parts_of
from emu.report.sequence import LEGEND, diagram
from emu.report.table import share_text, table, time_text
from emu.units import format_size

Row = Mapping[str, Any]
REACHED, BEYOND = 0.95, 1.01  # of the lowest bound: what is not between them is pointed out
PROXY = "proxy threads"


def doorbell_text(found: Mapping[str, Any], *, with_diagrams: bool) -> str:
    """The whole report on what the harness found."""
    rows: Sequence[Row] = found["rows"]
    if not rows:
        return "\n".join(["no row is whole", *found["missing"]])
    inputs = found["inputs"]
    ways = list(dict.fromkeys(_way(row, inputs) for row in rows))
    bounds = list(dict.fromkeys(row["bound_by"] for row in rows))
    blocks: list[Iterator[str]] = []
    if with_diagrams:
        blocks += [iter([LEGEND]), *map(_life, _one_a_path(rows))]
    blocks += [_parts(rows, inputs), _rates(rows, inputs), _compared(rows), inputs_lines(ways, bounds, inputs)]
    return "\n\n".join("\n".join(lines) for lines in map(list, blocks) if lines)


def _way(row: Row, inputs: Mapping[str, Mapping[str, str]]) -> Way:
    return Way.of(row["path"], row["gpu_direct"], inputs)


def _one_a_path(rows: Sequence[Row]) -> list[Row]:
    """The first row of each path, with and without GPU-direct: what is told of one message alone, told once."""
    first: dict[tuple[str, bool], Row] = {}
    for row in rows:
        first.setdefault((row["path"], row["gpu_direct"]), row)
    return list(first.values())


def _label(row: Row) -> str:
    cores = f", {row['cores']} core{'s' if row['cores'] > 1 else ''}" if row["cores"] else ""
    return f"{row['path']}{'' if row['gpu_direct'] else ', no GPU-direct'}{cores}"


def _life(row: Row) -> Iterator[str]:
    size = format_size(row["size_bytes"])
    done = time_text(row["completion_latency_ns"])
    yield f"one RDMA WRITE of {size} by {_label(row)}: visible after {time_text(row['latency_ns'])}, done after {done}"
    yield from diagram(row["steps"])


def _parts(rows: Sequence[Row], inputs: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Where one message's latency goes: its host's parts, then the NICs and the network."""
    chosen = _one_a_path(rows)
    names = [name for name in chosen[0]["breakdown_ns"] if any(row["breakdown_ns"][name] for row in chosen)]
    size = format_size(chosen[0]["size_bytes"])
    lines = [(f"one message of {size}, alone", *map(_label, chosen), "rests on inputs that are")]
    values = [[row["breakdown_ns"][name] for row in chosen] for name in names]
    values += [[row["nic_ns"] for row in chosen], [row["network_ns"] for row in chosen]]
    for name, each in zip([*names, "NIC", "network"], values, strict=True):
        paths = [path for row in chosen for path in parts_of(_way(row, inputs)).get(name, ())]
        lines.append((name.replace("_", " "), *map(time_text, each), kinds_text(paths, inputs)))
    lines.append(("= visible at the far GPU after", *(time_text(row["latency_ns"]) for row in chosen), ""))
    lines.append(
        ("poster knows that it is done after", *(time_text(row["completion_latency_ns"]) for row in chosen), "")
    )
    yield from table(lines, left=(0, len(chosen) + 1))


def _rate_text(per_second: float) -> str:
    return f"{per_second / 1e6:.2f} M/s" if per_second >= 1e5 else f"{per_second / 1e3:.2f} K/s"


def _rates(rows: Sequence[Row], inputs: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    lines = [
        ("many messages", "size", "warps", "QPs", "one alone", "rate", "lowest bound", "of it", "bound by", "which is")
    ]
    for row in rows:
        paths = bound_rests_on(row["bound_by"], _way(row, inputs))
        lines.append(
            (
                _label(row),
                format_size(row["size_bytes"]),
                f"{row['warps']:,}",
                f"{row['qps']:,}",
                time_text(row["latency_ns"]),
                _rate_text(row["messages_per_s"]),
                _rate_text(row["limit_per_s"]),
                share_text(row["messages_per_s"] / row["limit_per_s"]),
                row["bound_by"],
                kinds_text(paths, inputs),
            )
        )
    yield from table(lines, left=(0, 8, 9))
    if any(row["messages_per_s"] < REACHED * row["limit_per_s"] for row in rows):
        yield "  a rate well below its bound: several bounds are near each other, or there are too few --messages"
    if any(row["messages_per_s"] > BEYOND * row["limit_per_s"] for row in rows):
        yield "  a rate beyond its bound is not a steady one: too few --messages, and the first go out together"


def _compared(rows: Sequence[Row]) -> Iterator[str]:
    """How many times a proxy's rate the GPU reaches by itself, and where that ends."""
    best: dict[tuple[str, int], Row] = {}
    for row in rows:
        key = (row["path"], row["size_bytes"])
        if row["gpu_direct"] and (key not in best or row["messages_per_s"] > best[key]["messages_per_s"]):
            best[key] = row
    pairs = [
        (size_bytes, best["ibgda", size_bytes], best["cpu_proxy", size_bytes])
        for size_bytes in sorted({row["size_bytes"] for row in rows})
        if ("ibgda", size_bytes) in best and ("cpu_proxy", size_bytes) in best
    ]
    for size_bytes, own, proxy in pairs:
        ratio = own["messages_per_s"] / proxy["messages_per_s"]
        yield f"{format_size(size_bytes)}: ibgda sends {ratio:.1f} times as many messages a second as cpu_proxy"
    if pairs and PROXY in pairs[0][2]["limits_per_s"]:  # a thread that takes no time is no bound
        own, proxy = pairs[0][1:]
        meeting_bytes = own["link_bps"] / 8 / proxy["limits_per_s"][PROXY]
        yield f"they meet at about {meeting_bytes / 1000:.1f} KB: from there on the proxy's rate fills the link, too"
