"""A curve in one line of ASCII: the higher, the darker."""

from __future__ import annotations

from collections.abc import Sequence

SHADES = " .:-=+*#%@"
WIDTH = 64


def sparkline(values: Sequence[int], width: int = WIDTH) -> str:
    """At most `width` characters: each the largest value of its share of them, against the largest of all.

    Blank is nothing: what is above 0 shows, however small it is.
    """
    columns = min(width, len(values))
    top = max(values, default=0)
    bounds = [len(values) * column // columns for column in range(columns + 1)] if columns else []
    highest = [max(values[low:high]) for low, high in zip(bounds, bounds[1:], strict=False)]
    return "".join(SHADES[-(-value * (len(SHADES) - 1) // top)] if value else SHADES[0] for value in highest)
