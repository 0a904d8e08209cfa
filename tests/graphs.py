"""Small topologies for tests: `h...` are hosts, everything else a switch."""

from __future__ import annotations

from emu.topology import Kind, Link, Node, PortName, Topology, link_names

RATE_BPS = 400 * 10**9


def graph(links: str, rate_bps: int = RATE_BPS, propagation_ps: int = 25_000) -> Topology:
    """`h0-s0 s0-s1 ...`: ports in the order of the links, hosts from 0, switches from 1."""
    pairs = [(a, b) for a, b in (link.split("-") for link in links.split())]
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    next_port = {name: 0 if name.startswith("h") else 1 for name in names}

    def port(name: str) -> PortName:
        next_port[name] += 1
        return PortName(name, next_port[name] - 1)

    made = [
        Link(name, port(a), port(b), rate_bps, propagation_ps)
        for name, (a, b) in zip(link_names(pairs), pairs, strict=True)
    ]
    kinds = {name: Kind.HOST if name.startswith("h") else Kind.SWITCH for name in names}
    return Topology(tuple(Node(name, kind) for name, kind in kinds.items()), tuple(made))


def leaf_spine(leaves: int, spines: int, hosts_per_leaf: int) -> Topology:
    """Hosts first, then uplinks, as the built-in kind has them."""
    access = [f"h{number}-leaf{number // hosts_per_leaf}" for number in range(leaves * hosts_per_leaf)]
    uplinks = [f"leaf{leaf}-spine{spine}" for leaf in range(leaves) for spine in range(spines)]
    return graph(" ".join(access + uplinks))
