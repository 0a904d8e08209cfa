"""Plain text tables: columns as wide as they need, figures to the right."""

from __future__ import annotations

from collections.abc import Collection, Sequence

GAP = "  "


def table(rows: Sequence[Sequence[str]], *, left: Collection[int] = (0,), indent: int = 2) -> list[str]:
    """Lines of the rows, the header among them if there is one; columns in `left` begin at the left."""
    columns = max((len(row) for row in rows), default=0)
    widths = [max((len(row[place]) for row in rows if place < len(row)), default=0) for place in range(columns)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(widths[place]) if place in left else cell.rjust(widths[place]) for place, cell in enumerate(row)
        ]
        lines.append((" " * indent + GAP.join(cells)).rstrip())
    return lines


def time_text(value_ns: float) -> str:
    """Four digits that matter, in a readable unit: `942.9 ns`, `1.964 us`."""
    value, unit = value_ns, "ns"
    for unit in ("ns", "us", "ms", "s"):  # noqa: B007 - the last one stays
        if abs(value) < 999.95 or unit == "s":
            break
        value /= 1000
    decimals = 1 if abs(value) >= 99.995 else 2 if abs(value) >= 9.9995 else 3
    return f"{value:.{decimals}f} {unit}" if value else "0 ns"


def size_text(value_bytes: int) -> str:
    """Four digits that matter, in a binary unit: `96KiB`, `312.5MiB`."""
    value = float(value_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.4g}{unit}"
        value /= 1024
    return f"{value:.4g}TiB"


def share_text(share: float) -> str:
    """`52.0 %` of 0.52."""
    return f"{share * 100:.1f} %"


def count_text(count: int, one: str, more: str = "") -> str:
    """`1 message`, `1,024 messages`."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"
