"""Which two hosts a victim flow goes between, where the scenario leaves it to us: from topology and incast alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from emu.errors import ScenarioError
from emu.scenario.topology import AnyTopology
from emu.scenario.traffic import Incast


def choose_pair(topology: AnyTopology, incasts: Iterable[Incast]) -> tuple[str, str]:
    """From the switch of a sender that is not the receiver's, to another host at the receiver's switch.

    Hosts that are no senders themselves come first; of equal ones the first in order. Raises ScenarioError, saying why.
    """
    incast = next(iter(incasts), None)
    if incast is None:
        raise ScenarioError("there is no incast to be a victim of: add one, or give the pair")
    hosts = tuple(topology.host_names())
    switch_of = edge_switches(hosts, topology.link_ends())
    senders = incast.sender_names(hosts)
    there = switch_of[incast.receiver]
    away = {switch_of[sender] for sender in senders} - {there}
    if not away:
        raise ScenarioError(
            f"every sender of the incast is at {there}, as its receiver {incast.receiver} is, so no link between"
            " switches is held up: give the pair, or other senders"
        )
    source = _first([host for host in hosts if switch_of[host] in away], senders)
    beside = [host for host in hosts if switch_of[host] == there and host != incast.receiver]
    if not beside:
        raise ScenarioError(
            f"no host but the incast's receiver {incast.receiver} is at {there}, so there is nobody to send to: give"
            " the pair, or a topology with more hosts on a switch"
        )
    return source, _first(beside, senders)


def edge_switches(hosts: Sequence[str], link_ends: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The node at the far end of each host's link."""
    known = set(hosts)
    found: dict[str, str] = {}
    for one, other in link_ends:
        if one in known:
            found.setdefault(one, other)
        if other in known:
            found.setdefault(other, one)
    return found


def _first(hosts: Sequence[str], senders: Sequence[str]) -> str:
    """The first that is no sender, or the first."""
    return next((host for host in hosts if host not in senders), hosts[0])
