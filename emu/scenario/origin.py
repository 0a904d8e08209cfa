"""Where each part of a scenario was written: a line of its file, or an option."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from emu.errors import ScenarioError
from emu.scenario.check import Place, dotted, one_line
from emu.scenario.document import Document
from emu.scenario.field import show


@dataclass(frozen=True)
class Origin:
    """The file, and the options that changed or added a part. All are equal: a scenario is what it says, not where."""

    document: Document = field(default=Document("scenario", None), compare=False)
    options: Mapping[Place, str] = field(default_factory=dict, compare=False)

    def where(self, place: Place) -> str:
        """`incast.yaml:4`, or `--set run.seed=x`: where that part, or the nearest part around it, was written."""
        for length in range(len(place), -1, -1):
            if place[:length] in self.options:
                return show(self.options[place[:length]])[1:-1]
        return self.document.where(place)

    def mistake(self, reason: str, place: Place) -> ScenarioError:
        """The error for what is wrong with a part: one line, with file and line or option, and key."""
        return ScenarioError(one_line(f"{self.where(place)}: {dotted(place)}{reason}"))
