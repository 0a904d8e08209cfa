"""One measured figure beside the bound it is held to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """`value` may be at most `limit`; `detail` says what it was made of."""

    name: str
    value: float
    limit: float
    detail: str

    @property
    def holds(self) -> bool:
        """Whether the bound is kept."""
        return self.value <= self.limit

    def line(self) -> str:
        """As the table shows it."""
        verdict = "holds" if self.holds else "FAILS"
        return f"{self.name:<52} {self.value:>8.3f}  <= {self.limit:<6g} {verdict}   {self.detail}"
