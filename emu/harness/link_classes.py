"""Directions of links that are alike, and what lossless flow control needs on each: headroom, or a credit window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from emu import lossless
from emu.frame import Framing
from emu.linklayer.credits import WINDOW_BLOCKS, CreditConfig
from emu.linklayer.headroom import PFC_WIRE_BYTES, VENDOR_MAC_PHY_BYTES, mixed_bytes, tight_bytes, vendor_bytes
from emu.linklayer.pause import quanta_ps
from emu.scenario.fabric import Fabric
from emu.topology import Kind, Link, Topology, reverse_name
from emu.units import SECOND, ps_to_ns


class LinkClass(NamedTuple):
    """Directions of links with the same rate and length, into nodes of the same kind; `link` is the first of them."""

    link: Link
    first: str  # the direction's name
    into: Kind
    directions: int


def link_classes(topology: Topology) -> list[LinkClass]:
    """Every direction of every link, those that are alike together, in the links' order."""
    found: dict[tuple[int, int, Kind], LinkClass] = {}
    for link in topology.links:
        for name, end in ((link.name, link.b), (reverse_name(link), link.a)):
            key = link.rate_bps, link.propagation_ps, topology.kind(end.node)
            alike = found.get(key) or LinkClass(link, name, key[-1], 0)
            found[key] = alike._replace(directions=alike.directions + 1)
    return list(found.values())


def _about(fabric: Fabric, alike: LinkClass) -> dict[str, Any]:
    return {
        "first": alike.first,
        "directions": alike.directions,
        "rate_bps": alike.link.rate_bps,
        "cable_m": lossless.cable_mm(fabric, alike.link) / 1000,
        "propagation_ns": ps_to_ns(alike.link.propagation_ps),
    }


def headroom_rows(fabric: Fabric, topology: Topology, framing: Framing) -> Iterator[dict[str, Any]]:
    """What arrives after XOFF, for each class of directions into a switch."""
    for alike in link_classes(topology):
        if alike.into is Kind.SWITCH:
            yield _headroom(fabric, alike, framing)


def _headroom(fabric: Fabric, alike: LinkClass, framing: Framing) -> dict[str, Any]:
    link = alike.link
    config = lossless.headroom_config(fabric, link, framing)
    vendor = lossless.vendor_config(fabric, link, framing)
    ser_ps = config.serialization_ps(config.wire_bytes)
    pause = lossless.pause_config(fabric, link, framing)
    return _about(fabric, alike) | {
        "response_ns": ps_to_ns(config.response_ps),
        "frame_ser_ns": ps_to_ns(ser_ps),
        "reverse_ser_ns": ps_to_ns(config.serialization_ps(config.reverse_wire_bytes)),
        "pfc_ser_ns": ps_to_ns(config.serialization_ps(PFC_WIRE_BYTES)),
        "pipeline_ns": ps_to_ns(config.pipeline_ps),
        "delay_ns": ps_to_ns(config.delay_ps),
        "frames": -(-config.delay_ps // ser_ps),
        "tight_bytes": tight_bytes(config),
        "mixed_bytes": mixed_bytes(config),
        "vendor_bytes": vendor_bytes(vendor),
        "vendor_terms": {
            "mtu_bytes": vendor.mtu_bytes,
            "port_mtu_bytes": vendor.port_mtu_bytes,
            "cable_bytes": float(vendor.cable_bytes),
            "mac_phy_bytes": VENDOR_MAC_PHY_BYTES,
            "response_bytes": vendor.response_bytes,
            "occupancy": float(vendor.occupancy),
        },
        "chosen": fabric.headroom if isinstance(fabric.headroom, str) else "size",
        "chosen_bytes": lossless.headroom_bytes(fabric, link, framing),
        "pause_ns": ps_to_ns(quanta_ps(pause.quanta, link.rate_bps)),
        "refresh_ns": ps_to_ns(pause.refresh_ps),
    }


def credit_rows(fabric: Fabric, topology: Topology, framing: Framing) -> Iterator[dict[str, Any]]:
    """What one VL's credits let through, for each class of directions."""
    config = lossless.credit_config(fabric, framing)
    wire_bytes = lossless.largest_frame_wire_bytes(framing, fabric.path_mtu_bytes)
    for alike in link_classes(topology):
        yield _about(fabric, alike) | {"into": alike.into.value} | _credits(fabric, alike, config, wire_bytes)


def _credits(fabric: Fabric, alike: LinkClass, config: CreditConfig, wire_bytes: int) -> dict[str, Any]:
    rate_bps = alike.link.rate_bps
    ser_ps = lossless.serialization_ps(wire_bytes, rate_bps)
    fcp_ps = lossless.serialization_ps(fabric.credits.fcp_wire_bytes, rate_bps)
    held_ps = _held_ps(fabric, alike.into, ser_ps)
    quiet_ps = 2 * alike.link.propagation_ps + held_ps + fcp_ps
    busy_ps = quiet_ps + ser_ps  # the FCP finds a largest frame on its wire
    most, least = config.window_blocks // config.mtu_blocks, _sure_frames(config, config.window_blocks)
    at_most_bps = min(rate_bps, most * wire_bytes * 8 * SECOND // quiet_ps)
    at_least_bps = min(rate_bps, least * wire_bytes * 8 * SECOND // busy_ps)
    needed = _sure_window(config, -(-busy_ps // ser_ps))
    return {
        "window_blocks": config.window_blocks,
        "threshold_blocks": config.due_blocks,
        "frame_blocks": config.mtu_blocks,
        "held_ns": ps_to_ns(held_ps),
        "frame_ser_ns": ps_to_ns(ser_ps),
        "fcp_ser_ns": ps_to_ns(fcp_ps),
        "round_trip_ns": ps_to_ns(quiet_ps),
        "busy_round_trip_ns": ps_to_ns(busy_ps),
        "needed_blocks": -(-quiet_ps // ser_ps) * config.mtu_blocks,
        "busy_needed_blocks": needed,
        "suffices": "always" if at_least_bps == rate_bps else "at best" if at_most_bps == rate_bps else "no",
        "at_least_bps": at_least_bps,
        "at_most_bps": at_most_bps,
        "grantable": needed <= WINDOW_BLOCKS,
    }


def _held_ps(fabric: Fabric, into: Kind, ser_ps: int) -> int:
    """How long an unhindered frame stays in the buffer, first bit in to last bit out; a NIC takes it in as it comes."""
    if into is Kind.HOST:
        return ser_ps
    stored = fabric.switching == "store_and_forward"
    return fabric.hop_latency_ps + (2 if stored else 1) * ser_ps


def _sure_frames(config: CreditConfig, window_blocks: int) -> int:
    """Frames that go in each round trip even where freed blocks below the threshold are told of last."""
    due = min(config.threshold_blocks, -(-window_blocks // 4))
    return max(1, (window_blocks - due + 1) // config.mtu_blocks)


def _sure_window(config: CreditConfig, frames: int) -> int:
    """The smallest window that lets so many go for sure."""
    window = frames * config.mtu_blocks
    while _sure_frames(config, window) < frames:
        window += 1
    return window
