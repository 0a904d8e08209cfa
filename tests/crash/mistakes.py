"""A good scenario file, and the ways to spoil it: what is changed into what, where the error says it is, what else."""

from __future__ import annotations

GOOD = """\
name: good
fabric:
  profile: ./mine.yaml
  hop_latency: 300ns
  topology:
    kind: graph
    hosts: [h0, h1]
    switches: [s0]
    links:
      - {a: h0, b: 's0:1'}
      - {a: h1, b: 's0:2'}
traffic:
  - {kind: write, pairs: [[h0, h1]], size: 4KiB}
"""
PROFILE = """\
name: mine
description: mine
extends: native
fabric:
  rate: {value: 200Gbps, source: a test, kind: assumed}
"""
LEAF_SPINE = "topology: {kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 1}"
TOPOLOGY = GOOD[GOOD.index("topology:") : GOOD.index("traffic:")].rstrip()
BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
# What is asked: what is changed in GOOD into what, where the line says it is, and what else it says.
CASES = {
    "unknown key": ("hop_latency:", "hop_latenci:", ":4: fabric.hop_latenci: ", "did you mean 'hop_latency'?"),
    "unknown profile": ("./mine.yaml", "nativ", ":3: fabric.profile: unknown profile 'nativ'", "mean 'native'?"),
    "no profile file": ("./mine.yaml", "./none.yaml", ":3: fabric.profile: ", "No such file"),
    "bare number": ("300ns", "300", ":4: fabric.hop_latency: 300 has no unit", "260ns (ps, ns, us, ms, s"),
    "key twice": ("300ns", "1ns\n  hop_latency: 2ns", ":5: ", "'hop_latency' appears twice (first on line 4)"),
    "self-link": ("b: 's0:2'", "b: 'h1:2'", ":11: fabric.topology.links.1: both ends are on 'h1'", ""),
    "endpoint twice": ("'s0:2'", "'s0:1'", ":11: fabric.topology.links.1.b: 's0:1' is used twice", ""),
    "unknown node": ("'s0:2'", "'s9:2'", ":11: fabric.topology.links.1.b: unknown node 's9'", "mean 's0'?"),
    "unknown host": ("[[h0, h1]]", "[[h0, h9]]", ":13: traffic.0.pairs.0.1: unknown host 'h9'", "known: h0, h1"),
    "unreachable": (
        "[s0]\n    links:\n      - {a: h0, b: 's0:1'}",
        "[s0, s1]\n    links:\n      - {a: h0, b: s1}",
        ":7: fabric.topology.hosts.1: host 'h1' cannot reach host 'h0'",
        "",
    ),
    "no link": ("hosts: [h0, h1]", "hosts: [h0, h1, h2]", ":7: fabric.topology.hosts.2: host 'h2' has no link", ""),
    "long name": ("[s0]", "[s0, a_long_switch]", ":8: fabric.topology.switches.1: ", "15"),
    "long with its interface": (
        "[s0]\n    links:\n      - {a: h0, b: 's0:1'}\n      - {a: h1, b: 's0:2'}",
        "[switch00001]\n    links:\n      - {a: h0, b: 'switch00001:1'}\n      - {a: h1, b: 'switch00001:2'}",
        ":8: fabric.topology.switches.0: node name 'switch00001' is too long",
        "15 characters",
    ),
    "slash": ("[s0]", "[s0, a/b]", ":8: fabric.topology.switches.1: node name 'a/b'", ""),
    "space": ("[s0]", "[s0, 'a b']", ":8: fabric.topology.switches.1: node name 'a b'", ""),
    "leading dash": ("[s0]", "[s0, -a]", ":8: fabric.topology.switches.1: node name '-a'", ""),
    "no hosts": ("hosts: [h0, h1]", "hosts: []", ":7: fabric.topology.hosts: no hosts", ""),
    "zero hosts": (TOPOLOGY, LEAF_SPINE.replace("leaf: 1", "leaf: 0"), ":5: fabric.topology.hosts_per_leaf: ", "1 to"),
    "a million hosts": (
        TOPOLOGY,
        LEAF_SPINE.replace("leaf: 1", "leaf: 1000000"),
        ":5: fabric.topology.hosts_per_leaf: ",
        "49151 (each needs a unicast LID",
    ),
    "a million in all": (
        TOPOLOGY,
        LEAF_SPINE.replace("leaves: 2", "leaves: 1000").replace("leaf: 1", "leaf: 1000"),
        ":5: fabric.topology",
        "49151 (each needs a unicast LID",
    ),
    "rate 0": ("hop_latency: 300ns", "rate: 0Gbps", ":4: fabric.rate: ", "rate of zero"),
    "NaN": ("300ns", ".nan", ":4: ", "finite"),
    "NaN in words": ("300ns", "nan ns", ":4: fabric.hop_latency: ", "260ns"),
    "infinity": ("300ns", "-.inf", ":4: ", "finite"),
    "infinity in words": ("300ns", "infs", ":4: fabric.hop_latency: ", "260ns"),
    "beyond infinity": ("300ns", "1e999", ":4: ", "too big"),
    "9e99 GiB": ("4KiB", "9e99GiB", ":13: traffic.0.size: ", "between 0 and"),
    "negative": ("300ns", "-3ns", ":4: fabric.hop_latency: ", "between 0 and"),
    "path MTU": ("hop_latency: 300ns", "path_mtu: 9000B", ":4: fabric.path_mtu: ", "256B, 512B, 1KiB, 2KiB, 4KiB"),
    "path MTU 8 KiB": ("hop_latency: 300ns", "path_mtu: 8KiB", ":4: fabric.path_mtu: ", "2KiB, 4KiB"),
    "path MTU 0": ("hop_latency: 300ns", "path_mtu: 0B", ":4: fabric.path_mtu: ", "256B, 512B"),
    "tag": ("300ns", "!!python/object/apply:os.system ['touch x']", ":4: tags are not taken", ""),
    "alias bomb": (GOOD, BOMB, ":1: anchors and aliases", ""),
    "list": (GOOD, "- a\n- b\n", ":1: ", "a list at top level"),
    "empty": (GOOD, "", ": ", "empty"),
    "comments only": (GOOD, "# nothing\n", ": ", "empty"),
    "nested lists": (GOOD, "- " * 10_000 + "a", ":1: ", "nested too deep"),
    "nested braces": (GOOD, "a: " + "{b: " * 10_000, ":1: ", "nested too deep"),
    "nested in a value": ("300ns", "[" * 200 + "]" * 200, ":4: ", "nested too deep"),
    "huge": (GOOD, "a: b\n" * 300_000, ": ", "too big"),
    "two documents": (GOOD, f"{GOOD}---\n{GOOD}", ":14: ", "a file holds one"),
    "words": (GOOD, "just words", ":1: ", "at top level"),
    "half a file": (GOOD, GOOD[:-20], ":13: not YAML", ""),
}
HOP = "hop_latency: 300ns"
ROCE = "framing: rocev2\n  framing_overhead: 20B\n"
CASES |= {
    "Kmin > Kmax": (
        HOP,
        "ecn: {kmin: 2KB, kmax: 1KB, pmax: 1%}",
        ":4: fabric.ecn.kmin: 2000B lies above kmax",
        "1000B",
    ),
    "Pmax": (HOP, "ecn: {kmin: 1KB, kmax: 2KB, pmax: 101%}", ":4: fabric.ecn.pmax: '101%' is out of", "0 to 100%"),
    "alpha 0": (HOP, "alpha: 0", ":4: fabric.alpha: 0 is out of range", "above 0"),
    "refresh 0": (HOP, "credits: {refresh: 0ns}", ":4: fabric.credits.refresh: ", "above 0; or the word never"),
    "watchdog 0": (
        HOP,
        f"{ROCE}  flow_control: pfc\n  watchdog: {{detection: 0us, restoration: 1us, action: drop}}",
        ":7: fabric.watchdog.detection: ",
        "above 0",
    ),
    "alpha below 0": (HOP, "alpha: -1/8", ":4: fabric.alpha: '-1/8' is no share of 0 or more", "1/8"),
    "XON > XOFF": (HOP, "xoff: 1KB\n  xon: 2KB", ":5: fabric.xon: 2000B lies above xoff, 1000B", "0B to xoff"),
    "headroom": (
        HOP,
        "buffer: 1MB\n  headroom: 2MB",
        ":5: fabric.headroom: 2000000B is larger than the buffer",
        "1000000B",
    ),
    "one queue": (
        HOP,
        f"{ROCE}  flow_control: pfc\n  lossless: [3, 4]\n  priority_to_queue: {{4: 3}}",
        ":7: fabric.lossless: lossless priorities 3 and 4 share queue 3",
        "a queue for each",
    ),
    "DSCP 64": (HOP, "dscp: 64", ":4: fabric.dscp: 64 is out of range", "0 to 63"),
    "CNP's DSCP 64": (HOP, "cnp: {dscp: 64}", ":4: fabric.cnp.dscp: 64 is out of range", "0 to 63"),
    "DSCP 64 in the map": (HOP, "dscp_to_priority: {64: 3}", ":4: fabric.dscp_to_priority.64: DSCP 64", "0 to 63"),
    "quanta 65536": (HOP, "pause: {quanta: 65536}", ":4: fabric.pause.quanta: 65536 is out of range", "1 to 65535"),
    "window below a frame": (
        HOP,
        "flow_control: credits\n  credit_blocks: 64",
        ":5: fabric.credit_blocks: 64 blocks of 64 bytes never let a frame",
        "65 to 2048",
    ),
    "PFC on InfiniBand": (
        HOP,
        "flow_control: pfc",
        ":4: fabric.flow_control: pfc goes with framing rocev2",
        "none, credits",
    ),
    "credits on Ethernet": (
        HOP,
        f"{ROCE}  flow_control: credits",
        ":6: fabric.flow_control: credits goes with framing native",
        "none, pfc",
    ),
    "control without marks": (
        HOP,
        "congestion_control: ib_cca",
        ":4: fabric.congestion_control: ib_cca acts on",
        "set ecn",
    ),
    "storm without PFC": (
        "{kind: write, pairs: [[h0, h1]], size: 4KiB}",
        "{kind: pause_storm, host: h0, duration: 1ms}",
        ":13: traffic.0.kind: a pause_storm takes pause frames",
        "pfc",
    ),
    "too many senders": (
        "{kind: write, pairs: [[h0, h1]], size: 4KiB}",
        "{kind: incast, senders: 2, receiver: h0, size: 1B}",
        ":13: traffic.0.senders: 2 senders; hosts besides the receiver: 1",
        "1 to 1",
    ),
    "no incast": (
        "{kind: write, pairs: [[h0, h1]], size: 4KiB}",
        "{kind: victim, size: 1B}",
        ":13: traffic.0: there is no incast to be a victim of",
        "give the pair",
    ),
}
