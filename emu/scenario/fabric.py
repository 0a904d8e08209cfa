"""What a fabric is: the values a profile gives and a scenario may override, and the topology they apply to."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from emu.scenario.field import Length, Model, Name, PathMtu, Propagation, Rate, Size, Time, choice, refuse, whole
from emu.scenario.topology import AnyTopology
from emu.topology import LinkDefaults

ETHERNET_OVERHEAD_BYTES = 20  # IEEE 802.3: preamble and SFD 8, inter-packet gap 12

Switching = Annotated[Literal["cut_through", "store_and_forward"], *choice("cut_through", "store_and_forward")]


class FabricValues(Model):
    """The fabric's values, as a profile gives them (docs/scenarios.md)."""

    not_yet: ClassVar[tuple[str, ...]] = (
        "credit_blocks",
        "credits",
        "buffer",
        "alpha",
        "xoff",
        "xon",
        "headroom",
        "ecn",
        "arbiter",
        "allow_reordering",
    )

    rate_bps: Rate = Field(alias="rate")
    host_cable_mm: Length = Field(alias="host_cable")
    fabric_cable_mm: Length = Field(alias="fabric_cable")
    propagation_ps_per_m: Propagation = Field(alias="propagation")
    hop_latency_ps: Time = Field(alias="hop_latency")  # first bit in to first bit out, PHY and FEC included
    switching: Switching
    slow_to_fast: Switching = "cut_through"  # where a frame leaves faster than it came
    path_mtu_bytes: PathMtu = Field(alias="path_mtu")
    framing: Annotated[Literal["native", "rocev2"], *choice("native", "rocev2")]
    framing_overhead_bytes: Size = Field(alias="framing_overhead")  # wire time besides LRH..VCRC, or frame and FCS
    flow_control: Annotated[Literal["none"], *choice("none", later=("credits", "pfc"))] = "none"
    congestion_control: Annotated[Literal["none"], *choice("none", later=("dcqcn", "ib_cca", "swift", "hpcc"))] = "none"
    multipath: Annotated[Literal["single", "ecmp"], *choice("single", "ecmp", later=("adaptive", "spray"))]
    priority: Annotated[int, *whole(0, 7)]  # 802.1p priority, or SL, of data and of its ACKs
    dscp: Annotated[int, *whole(0, 63)]  # of data in IP; a native fabric has none

    @property
    def link_defaults(self) -> LinkDefaults:
        """What a link is where the topology does not say."""
        return LinkDefaults(
            rate_bps=self.rate_bps,
            host_cable_mm=self.host_cable_mm,
            fabric_cable_mm=self.fabric_cable_mm,
            propagation_ps_per_m=self.propagation_ps_per_m,
        )


class Fabric(FabricValues):
    """A profile's values, overridden where the scenario says so, and a topology."""

    profile: Name
    topology: AnyTopology

    @model_validator(mode="after")
    def _check_overhead(self) -> Self:
        if self.framing == "rocev2" and self.framing_overhead_bytes < ETHERNET_OVERHEAD_BYTES:
            raise refuse(
                f"{self.framing_overhead_bytes}B: a rocev2 frame has preamble and gap around it,"
                f" at least {ETHERNET_OVERHEAD_BYTES}B",
                "framing_overhead",
            )
        return self
