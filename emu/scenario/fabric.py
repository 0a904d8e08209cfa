"""What a fabric is: the values a profile gives and a scenario may override, and the topology they apply to."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from emu.scenario.consistency import check_fabric
from emu.scenario.fabric_values import FabricValues
from emu.scenario.field import Name
from emu.scenario.topology import AnyTopology

__all__ = ["Fabric", "FabricValues"]


class Fabric(FabricValues):
    """A profile's values, overridden where the scenario says so, and a topology."""

    profile: Name
    topology: AnyTopology

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_fabric(self)
        return self
