"""The doorbell report as text: a sequence diagram of one message by each path, rates and what bounds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from emu.report.inputs import kind_text
from emu.report.table import share_text, table, time_text
from emu.units import format_size

Row = Mapping[str, Any]
COLUMN = 9  # characters between two lifelines
ACTORS = ("gpu", "cpu", "nic", "network", "far nic", "far gpu")
NEAR, FAR = "h0", "h1"


def doorbell_text(found: Mapping[str, Any], *, with_diagrams: bool) -> str:
    """The whole report on what the harness found."""
    rows: Sequence[Row] = found["rows"]
    if not rows:
        return "\n".join(["no row is whole", *found["missing"]])
    blocks: list[Iterator[str]] = []
    if with_diagrams:
        blocks += [_diagram(row) for row in _one_a_path(rows)]
    blocks += [_rates(rows), _compared(rows), _parts(rows), _inputs(found["inputs"])]
    return "\n\n".join("\n".join(lines) for lines in map(list, blocks) if lines)


def _one_a_path(rows: Sequence[Row]) -> Iterator[Row]:
    """The first row of each path, with and without GPU-direct: one message alone is the same by any number of warps."""
    seen = set()
    for row in rows:
        key = (row["path"], row["gpu_direct"])
        if key not in seen:
            seen.add(key)
            yield row


def _label(row: Row) -> str:
    return f"{row['path']}{'' if row['gpu_direct'] else ', no GPU-direct'}"


def _diagram(row: Row) -> Iterator[str]:
    """Time runs down; an arrow is a packet, a star what a part does by itself."""
    size = format_size(row["size_bytes"])
    yield f"one RDMA WRITE of {size} by {_label(row)}: visible after {time_text(row['latency_ns'])}"
    yield f"{'ns':>9}  " + "".join(actor.center(COLUMN) for actor in ACTORS)
    for step in row["steps"]:
        here, there = _actor(step["who"]), _actor(step["where"])
        yield f"{step['at_ns']:>9.1f}  {_lane(here, there)}  {step['what']}".rstrip()


def _actor(name: str) -> int | None:
    """Which lifeline; None: none of them."""
    host, _, part = name.partition(".")
    if name == "network":
        return ACTORS.index("network")
    if host == FAR:
        return {"nic": 4, "gpu": 5, "cpu": 5}.get(part)
    return ACTORS.index(part) if host == NEAR and part in ACTORS else None


def _lane(here: int | None, there: int | None) -> str:
    cells = [" "] * (COLUMN * len(ACTORS))
    middles = [COLUMN * place + COLUMN // 2 for place in range(len(ACTORS))]
    for middle in middles:
        cells[middle] = "|"
    if here is not None and (there is None or there == here):
        cells[middles[here]] = "*"
    elif here is not None and there is not None:
        start, end = sorted((middles[here], middles[there]))
        for place in range(start + 1, end):
            cells[place] = "-"
        cells[middles[there] + (-1 if there > here else 1)] = ">" if there > here else "<"
    return "".join(cells)


def _rate_text(per_second: float) -> str:
    return f"{per_second / 1e6:.2f} M/s" if per_second >= 1e5 else f"{per_second / 1e3:.2f} K/s"


def _rates(rows: Sequence[Row]) -> Iterator[str]:
    lines = [("path", "size", "warps", "queue pairs", "messages", "limit", "of it", "latency", "bound by")]
    lines += [
        (
            _label(row),
            format_size(row["size_bytes"]),
            f"{row['warps']:,}",
            str(row["qps"]),
            _rate_text(row["messages_per_s"]),
            _rate_text(row["limit_per_s"]),
            share_text(row["messages_per_s"] / row["limit_per_s"]),
            time_text(row["latency_ns"]),
            row["bound_by"],
        )
        for row in rows
    ]
    yield from table(lines, left=(0, 8))


def _compared(rows: Sequence[Row]) -> Iterator[str]:
    """How many times a proxy's rate the GPU reaches by itself, and where that ends."""
    best: dict[tuple[str, int], Row] = {}
    for row in rows:
        key = (row["path"], row["size_bytes"])
        if row["gpu_direct"] and (key not in best or row["messages_per_s"] > best[key]["messages_per_s"]):
            best[key] = row
    for size_bytes in sorted({row["size_bytes"] for row in rows}):
        own, proxy = best.get(("ibgda", size_bytes)), best.get(("cpu_proxy", size_bytes))
        if own is not None and proxy is not None:
            ratio = own["messages_per_s"] / proxy["messages_per_s"]
            yield f"{format_size(size_bytes)}: ibgda sends {ratio:.1f} times what cpu_proxy does"
            meeting_bytes = own["link_bps"] / 8 / proxy["messages_per_s"]
            if size_bytes < meeting_bytes and proxy["bound_by"] != own["bound_by"]:
                yield f"  at the proxy's rate the link is full from {meeting_bytes / 1000:.1f} KB on, where they meet"


def _parts(rows: Sequence[Row]) -> Iterator[str]:
    """Where the host's share of one message's latency goes."""
    chosen = list(_one_a_path(rows))
    names = [name for name in chosen[0]["breakdown_ns"] if any(row["breakdown_ns"].get(name) for row in chosen)]
    lines = [("host part of one message", *(_label(row) for row in chosen))]
    lines += [(name, *(time_text(row["breakdown_ns"].get(name, 0)) for row in chosen)) for name in names]
    lines.append(("rest", *(time_text(row["latency_ns"] - sum(row["breakdown_ns"].values())) for row in chosen)))
    yield from table(lines)


def _inputs(inputs: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    yield "what the figures rest on"
    yield from table(
        [
            (path.removeprefix("host."), each["value"], kind_text(each["kind"]), each["source"])
            for path, each in inputs.items()
        ],
        left=range(4),
    )
