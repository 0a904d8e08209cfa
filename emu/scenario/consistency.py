"""What no single value of a fabric can be blamed for: values that contradict each other."""

from __future__ import annotations

from emu.scenario.congestion import DEFAULT_PRESET, PRESETS_OF
from emu.scenario.fabric_values import FabricValues
from emu.scenario.field import refuse
from emu.scenario.flow_control import BLOCK_BYTES, MAX_PRIORITY, WINDOW_BLOCKS

ETHERNET_OVERHEAD_BYTES = 20  # IEEE 802.3: preamble and SFD 8, inter-packet gap 12
NATIVE_FIRST_FRAME_BYTES = 8 + 12 + 16 + 4 + 2  # LRH, BTH, RETH, ICRC, VCRC around a message's first payload
GOES_WITH = {"credits": "native", "pfc": "rocev2"}


def check_fabric(fabric: FabricValues) -> None:
    """Refuse what cannot be built as it is asked for."""
    _check_framing(fabric)
    _check_credits(fabric)
    _check_lanes(fabric)
    _check_thresholds(fabric)
    _check_classes(fabric)
    _check_control(fabric)


def _check_framing(fabric: FabricValues) -> None:
    framing, control = fabric.framing, fabric.flow_control
    if framing == "rocev2" and fabric.framing_overhead_bytes < ETHERNET_OVERHEAD_BYTES:
        raise refuse(
            f"{fabric.framing_overhead_bytes}B: a rocev2 frame has preamble and gap around it,"
            f" at least {ETHERNET_OVERHEAD_BYTES}B",
            "framing_overhead",
        )
    if GOES_WITH.get(control, framing) != framing:
        allowed = ", ".join(["none", *(name for name, other in GOES_WITH.items() if other == framing)])
        raise refuse(
            f"{control} goes with framing {GOES_WITH[control]}; allowed with framing {framing}: {allowed}",
            "flow_control",
        )
    if framing == "rocev2" and fabric.priority > MAX_PRIORITY:
        raise refuse(f"{fabric.priority} is out of range; allowed: 0 to {MAX_PRIORITY} with framing rocev2", "priority")
    if fabric.watchdog is not None and control != "pfc":
        raise refuse(f"a watchdog looks after pauses, and flow_control is {control}; allowed: none", "watchdog")


def _check_credits(fabric: FabricValues) -> None:
    needed = -(-(fabric.path_mtu_bytes + NATIVE_FIRST_FRAME_BYTES) // BLOCK_BYTES)
    if fabric.flow_control == "credits" and fabric.credit_blocks < needed:
        raise refuse(
            f"{fabric.credit_blocks} blocks of {BLOCK_BYTES} bytes never let a frame of path_mtu"
            f" {fabric.path_mtu_bytes}B go, which takes {needed}; allowed: {needed} to {WINDOW_BLOCKS}",
            "credit_blocks",
        )


def _check_lanes(fabric: FabricValues) -> None:
    vls, tables = fabric.vls, fabric.vl_arbitration
    for level, vl in fabric.sl_to_vl.items():
        if vl >= vls:
            raise refuse(f"VL {vl}: vls is {vls}; allowed: 0 to {vls - 1}", "sl_to_vl", str(level))
    for name, table in (("high", tables.high), ("low", tables.low)):
        for place, (vl, _) in enumerate(table):
            if vl >= vls:
                raise refuse(f"VL {vl}: vls is {vls}; allowed: 0 to {vls - 1}", "vl_arbitration", name, place, 0)
    if fabric.framing == "native" and not has_turn(fabric, fabric.priority):
        raise refuse(
            f"neither table names VL {fabric.vl_of(fabric.priority)} with a weight, which SL {fabric.priority} travels"
            " on: nothing would ever leave it",
            "vl_arbitration",
        )


def has_turn(fabric: FabricValues, level: int) -> bool:
    """Whether the VL of a service level ever gets a turn; without a low table each does."""
    tables = fabric.vl_arbitration
    return not tables.low or any(vl == fabric.vl_of(level) and weight for vl, weight in (*tables.high, *tables.low))


def _check_thresholds(fabric: FabricValues) -> None:
    buffer_bytes, xoff_bytes, xon_bytes = fabric.buffer_bytes, fabric.xoff_bytes, fabric.xon_bytes
    if buffer_bytes == 0:
        raise refuse("0B: a switch without memory holds no frame; allowed: 1B or more", "buffer")
    if xon_bytes is not None and xoff_bytes is None:
        raise refuse(f"{xon_bytes}B: with xoff dynamic there is nothing for it to lie below; allowed: auto", "xon")
    if xon_bytes is not None and xoff_bytes is not None and xon_bytes > xoff_bytes:
        raise refuse(f"{xon_bytes}B lies above xoff, {xoff_bytes}B; allowed: auto, or 0B to xoff", "xon")
    for key, size_bytes in (("headroom", fabric.headroom), ("reserved", fabric.reserved_bytes)):
        if isinstance(size_bytes, int) and size_bytes > buffer_bytes:
            raise refuse(f"{size_bytes}B is larger than the buffer, {buffer_bytes}B; allowed: 0B to buffer", key)


def _check_classes(fabric: FabricValues) -> None:
    owners: dict[int, int] = {}
    for priority in fabric.lossless_priorities() if fabric.framing == "rocev2" else ():
        queue = fabric.queue_of(priority)
        other = owners.setdefault(queue, priority)
        if other != priority:
            raise refuse(
                f"lossless priorities {other} and {priority} share queue {queue}, so that a pause of one would hold up"
                " the other; allowed: a queue for each (priority_to_queue)",
                "lossless",
            )
    if fabric.framing != "rocev2":
        return
    if fabric.dscp == fabric.cnp.dscp and fabric.priority != fabric.cnp.priority:
        raise refuse(
            f"{fabric.dscp} is the data's DSCP, of priority {fabric.priority}, too; allowed: another", "cnp", "dscp"
        )
    for name, dscp, priority in (
        ("dscp", fabric.dscp, fabric.priority),
        ("cnp.dscp", fabric.cnp.dscp, fabric.cnp.priority),
    ):
        if fabric.dscp_to_priority.get(dscp, priority) != priority:
            reason = f"{name} is {dscp}, of priority {priority}; allowed: {priority}, or another DSCP"
            raise refuse(reason, "dscp_to_priority", str(dscp))


def _check_control(fabric: FabricValues) -> None:
    control, preset = fabric.congestion_control, fabric.cc_preset
    presets = PRESETS_OF[control]
    if preset not in (DEFAULT_PRESET, *presets):
        allowed = ", ".join((DEFAULT_PRESET, *presets))
        raise refuse(f"{control} has no preset {preset}, which is dcqcn's; allowed: {allowed}", "cc_preset")
    if control != "none" and fabric.ecn is None:
        raise refuse(
            f"{control} acts on marked frames, and ecn is none; set ecn, like {{kmin: 800KB, kmax: 3200KB, pmax: 20%}},"
            " or this to none",
            "congestion_control",
        )
