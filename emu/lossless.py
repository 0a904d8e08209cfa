"""What a scenario's fabric means for the machines of emu/linklayer: their configs, by link where they depend on it.

Sizes: the buffer counts a frame with its FCS, or LRH to VCRC; the wire adds the framing overhead. Raises ScenarioError.
"""

from __future__ import annotations

from emu import opcodes
from emu.errors import ScenarioError
from emu.frame import Envelope, Frame, Framing
from emu.linklayer.arbiter import QueueArbiterConfig, VlArbiterConfig
from emu.linklayer.classes import PRIORITIES, QUEUES, PriorityMap, SlToVl
from emu.linklayer.credits import CreditConfig, blocks_of
from emu.linklayer.ecn import EcnConfig
from emu.linklayer.headroom import PFC_WIRE_BYTES, HeadroomConfig, VendorConfig, response_limit_ps
from emu.linklayer.headroom import headroom_bytes as chosen_headroom_bytes
from emu.linklayer.pause import PauseConfig
from emu.linklayer.pfc import IngressConfig
from emu.linklayer.watchdog import Action, WatchdogConfig
from emu.scenario.fabric import Fabric
from emu.scenario.model import Scenario
from emu.topology import Link, Topology
from emu.units import SECOND

XON_FRAMES = 2  # by default a queue resumes so many largest frames below its limit
VL_WEIGHT = 64  # blocks, of each VL where the scenario has no arbitration table: 4 KiB


def serialization_ps(wire_bytes: int, rate_bps: int) -> int:
    """The time of so many bytes on the wire, rounded up to a whole picosecond."""
    return -(-wire_bytes * 8 * SECOND // rate_bps)


def largest_frame_wire_bytes(framing: Framing, path_mtu_bytes: int) -> int:
    """The largest data frame on the wire: the first of a WRITE, a full payload behind BTH and RETH."""
    envelope = Envelope(framing, source=0, destination=0, source_mac=0, destination_mac=0, destination_qp=0)
    return Frame(envelope, opcodes.WRITE_FIRST, 0, bytes(path_mtu_bytes), reth=(0, 0, 0)).wire_bytes


def largest_frame_bytes(fabric: Fabric, framing: Framing) -> int:
    """The same as a buffer counts it."""
    return largest_frame_wire_bytes(framing, fabric.path_mtu_bytes) - fabric.framing_overhead_bytes


def lossless_priorities(fabric: Fabric) -> tuple[int, ...]:
    """Priorities that are paused and never dropped; none without PFC."""
    return fabric.lossless_priorities() if fabric.flow_control == "pfc" else ()


def headroom_config(fabric: Fabric, link: Link, framing: Framing) -> HeadroomConfig:
    """What the headroom at either end of a link depends on."""
    wire_bytes = largest_frame_wire_bytes(framing, fabric.path_mtu_bytes)
    return HeadroomConfig(
        rate_bps=link.rate_bps,
        propagation_ps=link.propagation_ps,
        frame_bytes=wire_bytes - fabric.framing_overhead_bytes,
        wire_bytes=wire_bytes,
        reverse_wire_bytes=wire_bytes,
        response_ps=fabric.pause.response_ps,
    )


def cable_mm(fabric: Fabric, link: Link) -> int:
    """The length of a link's cable, from its propagation delay; 0 where light takes no time."""
    per_metre_ps = fabric.propagation_ps_per_m
    return link.propagation_ps * 1000 // per_metre_ps if per_metre_ps else 0


def vendor_config(fabric: Fabric, link: Link, framing: Framing) -> VendorConfig:
    """The vendor's formula for this link; never less than ours, for a slow cable and a slow peer are put in as such."""
    wire_bytes = largest_frame_wire_bytes(framing, fabric.path_mtu_bytes)
    response_ps = max(fabric.pause.response_ps, response_limit_ps(link.rate_bps))
    return VendorConfig(
        rate_bps=link.rate_bps,
        # Light in the vendor's cable goes 198,000 km/s, which is 198 mm a nanosecond.
        cable_mm=max(cable_mm(fabric, link), -(-link.propagation_ps * 198 // 1000)),
        mtu_bytes=wire_bytes,
        port_mtu_bytes=wire_bytes,
        response_bytes=-(-response_ps * link.rate_bps // (8 * SECOND)),
    )


def headroom_bytes(fabric: Fabric, link: Link, framing: Framing) -> int:
    """Headroom of one lossless priority where this link enters a switch, as the scenario's `headroom` says."""
    sizes = headroom_config(fabric, link, framing), vendor_config(fabric, link, framing)
    return chosen_headroom_bytes(fabric.headroom, *sizes)


def ingress_config(fabric: Fabric, link: Link, framing: Framing, lossless: bool) -> IngressConfig:
    """The account of one priority where this link enters a switch. A dynamic XOFF is bounded by alpha alone."""
    xoff_bytes = fabric.buffer_bytes if fabric.xoff_bytes is None else fabric.xoff_bytes
    xon_bytes = fabric.xon_bytes
    if xon_bytes is None:
        xon_bytes = max(0, xoff_bytes - XON_FRAMES * largest_frame_bytes(fabric, framing))
    return IngressConfig(
        alpha=fabric.alpha,
        xoff_bytes=xoff_bytes,
        xon_bytes=xon_bytes,
        reserved_bytes=fabric.reserved_bytes,
        headroom_bytes=headroom_bytes(fabric, link, framing) if lossless else 0,
        lossless=lossless,
    )


def set_aside_bytes(fabric: Fabric, link: Link, framing: Framing) -> int:
    """What a switch keeps for one of its ports: reserved memory of every priority, headroom of the lossless ones."""
    headroom = headroom_bytes(fabric, link, framing)
    return PRIORITIES * fabric.reserved_bytes + len(lossless_priorities(fabric)) * headroom


def switch_set_aside_bytes(fabric: Fabric, topology: Topology, framing: Framing) -> dict[str, int]:
    """The same for all ports of each switch, by name."""
    found = dict.fromkeys(topology.switches, 0)
    of_class: dict[tuple[int, int], int] = {}
    for link in topology.links:
        size = of_class.get((link.rate_bps, link.propagation_ps))
        if size is None:
            size = of_class[link.rate_bps, link.propagation_ps] = set_aside_bytes(fabric, link, framing)
        for port in (link.a, link.b):
            if port.node in found:
                found[port.node] += size
    return found


def pause_config(fabric: Fabric, link: Link, framing: Framing) -> PauseConfig:
    """How a port pauses its peer; told again so early that a largest frame on the wire cannot make it too late."""
    frame_bytes = largest_frame_wire_bytes(framing, fabric.path_mtu_bytes)
    guard_ps = sum(serialization_ps(size, link.rate_bps) for size in (frame_bytes, PFC_WIRE_BYTES))
    return PauseConfig(rate_bps=link.rate_bps, quanta=fabric.pause.quanta, guard_ps=guard_ps)


def credit_config(fabric: Fabric, framing: Framing) -> CreditConfig:
    """The buffer of one VL at one port."""
    return CreditConfig(
        capacity_blocks=fabric.credit_blocks,
        threshold_blocks=fabric.credits.threshold_blocks,
        mtu_blocks=blocks_of(largest_frame_bytes(fabric, framing)),
    )


def ecn_config(fabric: Fabric) -> EcnConfig | None:
    """The marking curve of every egress queue; None: nothing is marked."""
    ecn = fabric.ecn
    if ecn is None:
        return None
    return EcnConfig(kmin_bytes=ecn.kmin_bytes, kmax_bytes=ecn.kmax_bytes, pmax=ecn.pmax)


def watchdog_config(fabric: Fabric) -> WatchdogConfig | None:
    """What watches every lossless egress queue; None: nothing does."""
    watchdog = fabric.watchdog
    if watchdog is None:
        return None
    return WatchdogConfig(
        detection_ps=watchdog.detection_ps,
        restoration_ps=watchdog.restoration_ps,
        action=Action(watchdog.action),
    )


def priority_map(fabric: Fabric) -> PriorityMap:
    """DSCP to priority to queue: data's and CNPs' DSCPs lead to their own priorities unless the scenario says else."""
    return PriorityMap(
        dscp_to_priority=dict(enumerate(fabric.priority_of_dscp())),
        priority_to_queue=dict(fabric.priority_to_queue),
        lossless=frozenset(lossless_priorities(fabric)),
    )


def sl_to_vl(fabric: Fabric) -> SlToVl:
    """The VL of each SL, at every port."""
    return SlToVl(vls=fabric.vls, table=dict(fabric.sl_to_vl))


def queue_arbiter_config(fabric: Fabric, framing: Framing) -> QueueArbiterConfig:
    """Weight 1 for each queue unless given; strict for the CNPs', where data does not wait in it too."""
    usual = {fabric.queue_of(fabric.cnp.priority): 0, fabric.queue_of(fabric.priority): 1}
    weights = usual | dict(fabric.queue_weights)
    return QueueArbiterConfig(
        weights=tuple(weights.get(queue, 1) for queue in range(QUEUES)),
        quantum_bytes=largest_frame_wire_bytes(framing, fabric.path_mtu_bytes),
    )


def vl_arbiter_config(fabric: Fabric) -> VlArbiterConfig:
    """The two tables of every port; where the low one is empty, all VLs are in it, with equal weights."""
    tables = fabric.vl_arbitration
    low = tables.low or tuple((vl, VL_WEIGHT) for vl in range(fabric.vls))
    return VlArbiterConfig(high=tables.high, low=low, high_limit=tables.high_limit)


def check(scenario: Scenario, topology: Topology, framing: Framing) -> None:
    """Refuse, naming file, line and key, what only the topology or the framing shows to be a mistake."""
    fabric = scenario.fabric
    if fabric.flow_control == "credits":
        try:
            credit_config(fabric, framing)
        except ScenarioError as error:
            raise scenario.mistake(str(error), "fabric", "credit_blocks") from None
    if fabric.flow_control != "pfc":
        return
    for link in topology.links:
        try:
            pause_config(fabric, link, framing)
        except ScenarioError as error:
            raise scenario.mistake(f"on link {link.name}, {error}", "fabric", "pause", "quanta") from None
    for switch, size_bytes in switch_set_aside_bytes(fabric, topology, framing).items():
        if size_bytes + largest_frame_bytes(fabric, framing) > fabric.buffer_bytes:
            raise scenario.mistake(
                f"{fabric.buffer_bytes}B do not hold what switch {switch} sets aside, {size_bytes}B of headroom and"
                " reserved memory, and one frame more: less headroom, fewer lossless priorities or a larger buffer",
                *("fabric", "buffer"),
            )
