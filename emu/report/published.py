"""Published figures beside ours, as text: what was predicted, by how much it misses, and what was fitted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from emu.report.host_inputs import Way, inputs_lines
from emu.report.table import share_text, table


def published_text(found: Mapping[str, Any]) -> str:
    """The whole report."""
    rows, inputs = found["rows"], found["inputs"]
    ways = list(dict.fromkeys(Way.of(row["path"], row["gpu_direct"], inputs) for row in rows))
    bounds = list(dict.fromkeys(row["bound_by"] for row in rows))
    blocks = [_figures(found["published"]), _sources(found["published"])]
    if rows:
        blocks.append(inputs_lines(ways, bounds, inputs))
    return "\n\n".join("\n".join(lines) for lines in map(list, blocks) if lines)


def _figures(figures: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "published figures, and what the model says with its inputs as they are"
    sources = _numbers(figures)
    lines = [("figure", "published", "ours", "off by", "source", "published value is", "")]
    for figure in figures:
        off = "FITTED" if figure["fitted"] else f"{'+' if figure['off'] > 0 else ''}{share_text(figure['off'])}"
        number = f"[{sources[figure['source']]}]"
        values = (_value(figure["published"], figure["unit"]), _value(figure["ours"], figure["unit"]))
        lines.append((figure["name"], *values, off, number, figure["worth"], figure["note"]))
    yield from table(lines, left=(0, 4, 5, 6))
    yield "FITTED: an input was chosen so that it comes out, so it confirms nothing. Nothing was fitted to the others."


def _value(value: float, unit: str) -> str:
    return f"{value:.3g} {unit}" if value < 1000 else f"{value:,.0f} {unit}"


def _numbers(figures: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    names = dict.fromkeys(figure["source"] for figure in figures)
    return {source: number for number, source in enumerate(names, 1)}


def _sources(figures: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "sources, and what stands for their systems (secondary: as others quote it; unverified: not even that)"
    settings = {figure["source"]: figure["settings"] for figure in figures}
    for source, number in _numbers(figures).items():
        yield f"  [{number}] {source}; {', '.join(settings[source])}"
