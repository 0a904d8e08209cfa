"""Parameters of each kind of topology, by kind; the Mininet classes that build them are in `topologies`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from emu.addresses import HOST_LIMIT
from emu.scenario.field import Model, Rate, kinds, whole
from emu.scenario.graph import SWITCH_LIMIT, WHY_HOSTS, WHY_SWITCHES, Graph, check_size

SwitchCount = Annotated[int, *whole(1, SWITCH_LIMIT, WHY_SWITCHES)]
HostCount = Annotated[int, *whole(1, HOST_LIMIT, WHY_HOSTS)]


class LeafSpine(Model):
    """Every leaf joined to every spine, `hosts_per_leaf` hosts on each leaf: leaf0 .. spine0 .. h0 .."""

    kind: Literal["leaf_spine"]
    leaves: SwitchCount
    spines: SwitchCount
    hosts_per_leaf: HostCount
    host_rate_bps: Rate | None = Field(default=None, alias="host_rate")  # the profile's rate unless given
    fabric_rate_bps: Rate | None = Field(default=None, alias="fabric_rate")

    @model_validator(mode="after")
    def _check(self) -> Self:
        hosts = self.leaves * self.hosts_per_leaf
        check_size(hosts, self.leaves + self.spines, hosts + self.leaves * self.spines)
        return self

    def host_names(self) -> Sequence[str]:
        """The hosts, in order."""
        return [f"h{number}" for number in range(self.leaves * self.hosts_per_leaf)]

    def link_ends(self) -> Iterator[tuple[str, str]]:
        """The two nodes of each link, in order."""
        for host in range(self.leaves * self.hosts_per_leaf):
            yield f"leaf{host // self.hosts_per_leaf}", f"h{host}"
        yield from ((f"leaf{leaf}", f"spine{spine}") for leaf in range(self.leaves) for spine in range(self.spines))


class Line(Model):
    """Hosts h0 and h1 with `switches` switches in a row between them: h0 s0 s1 .. h1; none is back to back."""

    kind: Literal["line"]
    switches: Annotated[int, *whole(0, SWITCH_LIMIT, WHY_SWITCHES)]
    host_rate_bps: Rate | None = Field(default=None, alias="host_rate")
    fabric_rate_bps: Rate | None = Field(default=None, alias="fabric_rate")

    def host_names(self) -> Sequence[str]:
        """The hosts, in order."""
        return ["h0", "h1"]

    def link_ends(self) -> Iterator[tuple[str, str]]:
        """The two nodes of each link, in order."""
        return pairwise(["h0", *(f"s{number}" for number in range(self.switches)), "h1"])


TOPOLOGIES: dict[str, type[LeafSpine] | type[Line] | type[Graph]] = {
    "leaf_spine": LeafSpine,
    "line": Line,
    "graph": Graph,
}
LATER_TOPOLOGIES = ("rail", "multi_plane", "fat_tree")

AnyTopology = Annotated[
    LeafSpine | Line | Graph, Field(discriminator="kind"), kinds(list(TOPOLOGIES), LATER_TOPOLOGIES)
]
