"""Traffic held against its fabric: hosts that exist, priorities that lead somewhere, storms that act."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from emu.errors import ScenarioError
from emu.scenario.consistency import has_turn
from emu.scenario.fabric import Fabric
from emu.scenario.fabric_values import MAX_DATA_SL
from emu.scenario.field import nearest, refuse, show
from emu.scenario.flow_control import MAX_PRIORITY
from emu.scenario.posting import ATOMIC_BYTES, ATOMIC_OPS
from emu.scenario.replay import Replay
from emu.scenario.traffic import AnyKind, Incast, PauseStorm, Permutation, Poisson, Victim, Write

Step = str | int


def check_traffic(fabric: Fabric, traffic: Sequence[AnyKind]) -> None:
    """Refuse traffic that this fabric cannot have; places begin with `traffic`."""
    hosts = tuple(fabric.topology.host_names())
    known = set(hosts)
    for place, each in enumerate(traffic):
        for host, *at in _named(each):
            if host not in known:
                raise refuse(f"unknown host {show(host)}{nearest(str(host), hosts)}", "traffic", place, *at)
        if isinstance(each, Incast):
            _check_incast(each, hosts, place)
        if isinstance(each, Permutation) and len(hosts) < 2:
            raise refuse("a permutation needs two hosts at least, and there is one", "traffic", place)
        if not isinstance(each, (PauseStorm, Replay)) and each.op in ATOMIC_OPS and each.size_bytes != ATOMIC_BYTES:
            reason = f"{each.size_bytes}B: {each.op} acts on {ATOMIC_BYTES}B; allowed: {ATOMIC_BYTES}B"
            raise refuse(reason, "traffic", place, "size")
        if each.priority is not None:
            _check_priority(fabric, each.priority, place)
        if isinstance(each, PauseStorm):
            _check_storm(fabric, each, place)


def _named(traffic: AnyKind) -> Iterator[tuple[Step, ...]]:
    """Every host it names, each with where."""
    match traffic:
        case Write() | Poisson():
            for number, pair in enumerate(traffic.pairs):
                yield from ((host, "pairs", number, side) for side, host in enumerate(pair))
        case Incast():
            names = traffic.senders if isinstance(traffic.senders, tuple) else ()
            yield from ((host, "senders", number) for number, host in enumerate(names))
            yield traffic.receiver, "receiver"
        case Victim():
            yield from ((host, "pair", side) for side, host in enumerate(traffic.pair or ()))
        case PauseStorm():
            yield traffic.host, "host"
        case Replay():
            yield from ((host, "map", end) for end, host in traffic.map)


def _check_incast(incast: Incast, hosts: Sequence[str], place: int) -> None:
    others = len(hosts) - 1
    if isinstance(incast.senders, tuple):
        if incast.receiver in incast.senders:
            at = incast.senders.index(incast.receiver)
            raise refuse(
                f"{show(incast.receiver)} is the receiver; allowed: other hosts", "traffic", place, "senders", at
            )
    elif incast.senders > others:
        raise refuse(
            f"{incast.senders} senders; hosts besides the receiver: {others}; allowed: 1 to {others}"
            if others
            else "there is no host besides the receiver",
            "traffic",
            place,
            "senders",
        )


def _check_priority(fabric: Fabric, priority: int, place: int) -> None:
    highest, what = (MAX_DATA_SL, "an SL") if fabric.framing == "native" else (MAX_PRIORITY, "an 802.1p priority")
    at = ("traffic", place, "priority")
    if priority > highest:
        raise refuse(
            f"{priority} is out of range; allowed: 0 to {highest} ({what}, with framing {fabric.framing})", *at
        )
    if fabric.framing == "native" and not has_turn(fabric, priority):
        raise refuse(
            f"SL {priority} travels on VL {fabric.vl_of(priority)}, which vl_arbitration names nowhere with a weight:"
            " nothing would ever leave it",
            *at,
        )
    if fabric.framing == "rocev2":
        try:
            fabric.dscp_of(priority)
        except ScenarioError as error:
            raise refuse(str(error), *at) from None


def _check_storm(fabric: Fabric, storm: PauseStorm, place: int) -> None:
    if fabric.flow_control != "pfc":
        reason = f"a pause_storm takes pause frames, and flow_control is {fabric.flow_control}; allowed with: pfc"
        raise refuse(reason, "traffic", place, "kind")
    lossless = fabric.lossless_priorities()
    priority = fabric.priority if storm.priority is None else storm.priority
    if priority not in lossless:
        allowed = ", ".join(map(str, lossless)) or "none"
        raise refuse(
            f"priority {priority} is not lossless, so that no switch heeds its pauses; allowed: {allowed}",
            "traffic",
            place,
            *(("priority",) if storm.priority is not None else ()),
        )
