"""What marks frames, and what senders do about marks: ECN's curve, the notification packet, the controls by name."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from emu.scenario.field import DecimalSize, Model, choice, refuse, whole
from emu.scenario.flow_control import MAX_PRIORITY
from emu.scenario.numbers import NumberMap, number_map
from emu.scenario.share import Probability

MAX_DSCP = 63
DEFAULT_PRESET: Literal["default"] = "default"
# Which presets each control has, besides `default`, its first.
PRESETS_OF: dict[str, tuple[str, ...]] = {"none": ("adapter", "paper"), "dcqcn": ("adapter", "paper"), "ib_cca": ()}
LATER_CONTROLS = ("swift", "hpcc")

Control = Annotated[Literal["none", "dcqcn", "ib_cca"], *choice("none", "dcqcn", "ib_cca", later=LATER_CONTROLS)]
Preset = Annotated[Literal["default", "adapter", "paper"], *choice(DEFAULT_PRESET, "adapter", "paper")]
Dscp = Annotated[int, *whole(0, MAX_DSCP, "a 6-bit field")]
Dscps = Annotated[NumberMap, *number_map("DSCP", MAX_DSCP, "priority", MAX_PRIORITY)]


class Ecn(Model):
    """How likely an egress queue marks: not up to `kmin`, rising to `pmax` at `kmax`, always beyond."""

    kmin_bytes: DecimalSize = Field(alias="kmin")
    kmax_bytes: DecimalSize = Field(alias="kmax")
    pmax: Probability

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.kmin_bytes > self.kmax_bytes:
            raise refuse(f"{self.kmin_bytes}B lies above kmax, {self.kmax_bytes}B; allowed: 0B to kmax", "kmin")
        return self


class Cnp(Model):
    """How congestion notification packets are marked and queued."""

    dscp: Dscp
    priority: Annotated[int, *whole(0, MAX_PRIORITY)]
