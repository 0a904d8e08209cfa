"""The values a profile gives of a fabric, and what follows from them alone: lossless classes, DSCP and priority."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from emu import units
from emu.errors import ScenarioError
from emu.scenario.congestion import DEFAULT_PRESET, MAX_DSCP, Cnp, Control, Dscp, Dscps, Ecn, Preset
from emu.scenario.field import Length, Model, PathMtu, Propagation, Rate, Size, Time, choice, whole
from emu.scenario.flow_control import (
    MAX_PRIORITY,
    Blocks,
    Credits,
    HeadroomText,
    Pause,
    Queues,
    SlToVl,
    VlArbitration,
    Vls,
    Watchdog,
    Weights,
)
from emu.scenario.numbers import number_list
from emu.scenario.optional import or_word
from emu.scenario.share import Factor
from emu.topology import LinkDefaults

MAX_DATA_SL = 14  # SL 15, as VL 15, is management's
Switching = Annotated[Literal["cut_through", "store_and_forward"], *choice("cut_through", "store_and_forward")]
FlowControl = Annotated[Literal["none", "credits", "pfc"], *choice("none", "credits", "pfc")]
Multipath = Annotated[
    Literal["single", "ecmp", "balanced"], *choice("single", "ecmp", "balanced", later=("adaptive", "spray"))
]
Arbiter = Annotated[Literal["per_port", "per_source", "fifo"], *choice("per_port", "per_source", "fifo")]
Lossless = Annotated[tuple[int, ...], *number_list("priority", MAX_PRIORITY)]


class FabricValues(Model):
    """The fabric's values, as a profile gives them (docs/scenarios.md)."""

    not_yet: ClassVar[tuple[str, ...]] = ("allow_reordering",)

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
    multipath: Multipath
    arbiter: Arbiter  # between frames of one queue
    priority: Annotated[int, *whole(0, MAX_DATA_SL)]  # 802.1p priority, or SL, of data and of its ACKs
    dscp: Dscp  # of data in IP; a native fabric has none

    flow_control: FlowControl = "none"
    credit_blocks: Blocks  # of a VL at a port
    credits: Credits
    vls: Vls
    sl_to_vl: SlToVl  # exceptions to SL modulo vls
    vl_arbitration: VlArbitration

    buffer_bytes: Size = Field(alias="buffer")  # of a switch
    alpha: Factor  # share of the free buffer that one ingress queue may take
    reserved_bytes: Size = Field(alias="reserved")
    xoff_bytes: Annotated[Size | None, *or_word("dynamic", units.parse_size_bytes)] = Field(alias="xoff")
    xon_bytes: Annotated[Size | None, *or_word("auto", units.parse_size_bytes)] = Field(alias="xon")
    headroom: HeadroomText  # bytes, or how they are reckoned
    pause: Pause
    watchdog: Annotated[Watchdog | None, *or_word("none", wanted="detection, restoration and action")]
    lossless: Annotated[Lossless | None, *or_word("auto", wanted="a list of priorities")]  # auto: just `priority`
    dscp_to_priority: Dscps  # exceptions to DSCP / 8, and to dscp and cnp.dscp
    priority_to_queue: Queues  # exceptions to queue n for priority n
    queue_weights: Weights  # exceptions to 1; 0 is strict

    ecn: Annotated[Ecn | None, *or_word("none", wanted="kmin, kmax and pmax")]
    congestion_control: Control = "none"
    cc_preset: Preset = DEFAULT_PRESET
    cnp: Cnp

    @property
    def link_defaults(self) -> LinkDefaults:
        """What a link is where the topology does not say."""
        return LinkDefaults(
            rate_bps=self.rate_bps,
            host_cable_mm=self.host_cable_mm,
            fabric_cable_mm=self.fabric_cable_mm,
            propagation_ps_per_m=self.propagation_ps_per_m,
        )

    def lossless_priorities(self) -> tuple[int, ...]:
        """The 802.1p priorities that are paused rather than dropped."""
        return (self.priority,) if self.lossless is None else self.lossless

    def priority_of_dscp(self) -> tuple[int, ...]:
        """The 802.1p priority of each of the 64 DSCPs."""
        own = {self.dscp: self.priority, self.cnp.dscp: self.cnp.priority, **self.dscp_to_priority}
        return tuple(own.get(dscp, dscp >> 3) for dscp in range(MAX_DSCP + 1))

    def dscp_of(self, priority: int) -> int:
        """The DSCP that data of a priority carries. Raises ScenarioError if none leads there."""
        if priority == self.priority:
            return self.dscp
        for dscp, its in enumerate(self.priority_of_dscp()):
            if its == priority:
                return dscp
        raise ScenarioError(f"no DSCP leads to priority {priority}: dscp_to_priority says which does")

    def vl_of(self, level: int) -> int:
        """The VL that a service level travels on."""
        return self.sl_to_vl.get(level, level % self.vls)

    def queue_of(self, priority: int) -> int:
        """The egress queue of an 802.1p priority."""
        return self.priority_to_queue.get(priority, priority)
