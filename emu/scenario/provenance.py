"""Where a parameter's value comes from, and how much that is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal["spec", "published", "secondary", "calibrated", "assumed", "scenario"]
PROFILE_KINDS: tuple[str, ...] = tuple(kind for kind in get_args(Kind) if kind != "scenario")


@dataclass(frozen=True, slots=True)
class Provenance:
    """`kind` and `source` as the profile says, or kind `scenario` where the scenario set it; `value` as written."""

    kind: Kind
    source: str
    value: str
