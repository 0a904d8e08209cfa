"""Values of a fabric that make sense together, and those that do not: refused in one line, the right key blamed."""

from __future__ import annotations

import pytest

from emu.scenario.load import build
from tests.scenario.of_profile import refusal, scenario

GOOD = [
    ("native", ["flow_control=credits"]),
    ("native", ["flow_control=credits", "credit_blocks=65"]),
    ("roce", ["flow_control=pfc"]),
    ("roce", ["flow_control=pfc", "watchdog={detection: 200us, restoration: 200us, action: drop}"]),
    ("roce", ["flow_control=pfc", "headroom=tight"]),
    ("roce", ["flow_control=pfc", "headroom=64MiB"]),
    ("roce", ["flow_control=pfc", "xoff=100KB", "xon=100KB"]),
    ("roce", ["congestion_control=dcqcn"]),
    ("roce", ["congestion_control=dcqcn", "cc_preset=paper"]),
    ("roce", ["lossless=[3, 4]", "priority_to_queue={6: 4}"]),
    ("roce", ["lossless=[]"]),
    ("roce", ["ecn={kmin: 1KB, kmax: 1KB, pmax: 100%}"]),
    ("native", ["vls=2", "sl_to_vl={0: 1}", "vl_arbitration={high: [[1, 1]], low: [[0, 1]]}"]),
    ("native", ["vls=2", "vl_arbitration={high: [[1, 1]], high_limit: 255}"]),
    ("native", ["congestion_control=ib_cca", "ecn={kmin: 1KB, kmax: 2KB, pmax: 1%}"]),
    ("native", ["priority=14"]),
]


@pytest.mark.parametrize(("profile", "settings"), GOOD)
def test_what_makes_sense_is_taken(profile: str, settings: list[str]) -> None:
    one = scenario(profile, *settings)
    assert build(one.resolved()) == one


BAD = [
    ("roce", ["ecn.kmin=4MB"], "fabric.ecn.kmin: 4000000B lies above kmax, 3200000B; allowed: 0B to kmax"),
    ("roce", ["ecn.pmax=101%"], "fabric.ecn.pmax: '101%' is out of range; allowed: 0 to 100%"),
    ("roce", ["ecn.pmax=1.5"], "fabric.ecn.pmax: 1.5 is out of range; allowed: 0 to 100%"),
    ("roce", ["ecn.pmax=-1%"], "fabric.ecn.pmax: '-1%' is no share of 0 or more; write it like 20%"),
    ("roce", ["ecn.pmax=1/0"], "fabric.ecn.pmax: '1/0' is no share"),
    ("roce", ["ecn=some"], "fabric.ecn: 'some' is not allowed; allowed: none, or kmin, kmax and pmax"),
    ("roce", ["ecn="], "fabric.ecn: None is not allowed; allowed: none, or"),
    ("roce", ["ecn.kmid=1KB"], "fabric.ecn.kmid: unknown key 'kmid'; did you mean 'kmin'?"),
    ("roce", ["alpha=0"], "fabric.alpha: 0 is out of range; allowed: above 0 to 1024, like 1/8"),
    ("roce", ["alpha=0/3"], "fabric.alpha: '0/3' is out of range"),
    ("roce", ["alpha=-1/8"], "fabric.alpha: '-1/8' is no share of 0 or more; write it like 1/8"),
    ("roce", ["alpha=[1]"], "fabric.alpha: [1] is no share"),
    ("roce", ["alpha=true"], "fabric.alpha: True is no share"),
    ("roce", ["xoff=100KB", "xon=101KB"], "fabric.xon: 101000B lies above xoff, 100000B; allowed: auto, or 0B to xoff"),
    (
        "roce",
        ["xon=100KB"],
        "fabric.xon: 100000B: with xoff dynamic there is nothing for it to lie below; allowed: auto",
    ),
    (
        "roce",
        ["xoff=3"],
        "fabric.xoff: 3 has no unit: a size is written like 4KiB (B, KB, MB, GB, KiB, MiB, GiB); or the",
    ),
    ("roce", ["headroom=65MiB"], "fabric.headroom: 68157440B is larger than the buffer, 67108864B; allowed: 0B to"),
    (
        "roce",
        ["headroom=loose"],
        "fabric.headroom: 'loose' is not a size; write it like 4KiB; or one of the words tight,",
    ),
    ("roce", ["reserved=65MiB"], "fabric.reserved: 68157440B is larger than the buffer"),
    ("roce", ["buffer=0B"], "fabric.buffer: 0B: a switch without memory"),
    ("roce", ["pause.quanta=65536"], "fabric.pause.quanta: 65536 is out of range; allowed: 1 to 65535"),
    ("roce", ["pause.quanta=0"], "fabric.pause.quanta: 0 is out of range; allowed: 1 to 65535"),
    ("roce", ["dscp=64"], "fabric.dscp: 64 is out of range; allowed: 0 to 63"),
    ("roce", ["cnp.dscp=64"], "fabric.cnp.dscp: 64 is out of range; allowed: 0 to 63"),
    ("roce", ["cnp.priority=8"], "fabric.cnp.priority: 8 is out of range; allowed: 0 to 7"),
    ("roce", ["cnp.dscp=26"], "fabric.cnp.dscp: 26 is the data's DSCP, of priority 3, too; allowed: another"),
    ("roce", ["dscp_to_priority={64: 1}"], "fabric.dscp_to_priority.64: DSCP 64 is out of range; allowed: 0 to 63"),
    ("roce", ["dscp_to_priority={1: 8}"], "fabric.dscp_to_priority.1: priority 8 is out of range; allowed: 0 to 7"),
    ("roce", ["dscp_to_priority={x: 1}"], "fabric.dscp_to_priority.x: 'x' is no DSCP; allowed: 0 to 63"),
    ("roce", ["dscp_to_priority={01: 1, 1: 1}"], "fabric.dscp_to_priority.1: DSCP 1 appears twice"),
    ("roce", ["dscp_to_priority={26: 4}"], "fabric.dscp_to_priority.26: dscp is 26, of priority 3; allowed: 3, or an"),
    ("roce", ["dscp_to_priority={48: 4}"], "fabric.dscp_to_priority.48: cnp.dscp is 48, of priority 6; allowed: 6, or"),
    ("roce", ["dscp_to_priority=[1]"], "fabric.dscp_to_priority: [1] is no mapping from DSCP to priority"),
    (
        "roce",
        ["priority_to_queue={4: 3}", "lossless=[3, 4]"],
        "fabric.lossless: lossless priorities 3 and 4 share queue 3, so that a pause of one would hold up the other;"
        " allowed: a queue for each (priority_to_queue)",
    ),
    ("roce", ["lossless=[3, 8]"], "fabric.lossless.1: priority 8 is out of range; allowed: 0 to 7"),
    ("roce", ["lossless=[3, 3]"], "fabric.lossless.1: priority 3 appears twice"),
    ("roce", ["lossless=3"], "fabric.lossless: 3 is not allowed; allowed: auto, or a list of priorities"),
    ("roce", ["queue_weights={8: 1}"], "fabric.queue_weights.8: queue 8 is out of range; allowed: 0 to 7"),
    ("roce", ["priority=8"], "fabric.priority: 8 is out of range; allowed: 0 to 7 with framing rocev2"),
    ("native", ["priority=15"], "fabric.priority: 15 is out of range; allowed: 0 to 14"),
    (
        "roce",
        ["flow_control=credits"],
        "fabric.flow_control: credits goes with framing native; allowed with framing roce",
    ),
    (
        "native",
        ["flow_control=pfc"],
        "fabric.flow_control: pfc goes with framing rocev2; allowed with framing native: no",
    ),
    (
        "native",
        ["flow_control=credits", "credit_blocks=64"],
        "fabric.credit_blocks: 64 blocks of 64 bytes never let a frame of path_mtu 4096B go, which takes 65; allowed:",
    ),
    ("native", ["credit_blocks=2049"], "fabric.credit_blocks: 2049 is out of range; allowed: 1 to 2048"),
    ("native", ["credits.threshold=0"], "fabric.credits.threshold: 0 is out of range; allowed: 1 to 2048"),
    (
        "native",
        ["credits.refresh=often"],
        "fabric.credits.refresh: 'often' is not a time; write it like 260ns; or the word",
    ),
    (
        "native",
        ["credits=none"],
        "fabric.credits: 'none' is no mapping; its keys are: threshold, refresh, fcp_wire_bytes",
    ),
    ("native", ["vls=16"], "fabric.vls: 16 is out of range; allowed: 1 to 15"),
    ("native", ["sl_to_vl={3: 1}"], "fabric.sl_to_vl.3: VL 1: vls is 1; allowed: 0 to 0"),
    ("native", ["sl_to_vl={16: 0}"], "fabric.sl_to_vl.16: SL 16 is out of range; allowed: 0 to 15"),
    ("native", ["vl_arbitration.high=[[1, 4]]"], "fabric.vl_arbitration.high.0.0: VL 1: vls is 1; allowed: 0 to 0"),
    (
        "native",
        ["vl_arbitration.low=[[0, 256]]"],
        "fabric.vl_arbitration.low.0.1: weight 256 is out of range; allowed: 0",
    ),
    (
        "native",
        ["vl_arbitration.low=[0]"],
        "fabric.vl_arbitration.low.0: 0 is no pair: write [VL, weight], like [0, 64]",
    ),
    (
        "native",
        ["vl_arbitration.low=[[0, 0]]"],
        "fabric.vl_arbitration: neither table names VL 0 with a weight, which SL 0",
    ),
    (
        "native",
        ["vls=2", "vl_arbitration.low=[[1, 9]]"],
        "fabric.vl_arbitration: neither table names VL 0 with a weight",
    ),
    (
        "native",
        ["vl_arbitration.high_limit=256"],
        "fabric.vl_arbitration.high_limit: 256 is out of range; allowed: 0 to 25",
    ),
    (
        "native",
        ["congestion_control=ib_cca"],
        "fabric.congestion_control: ib_cca acts on marked frames, and ecn is none; set ecn, like {kmin:",
    ),
    (
        "roce",
        ["ecn=none", "congestion_control=dcqcn"],
        "fabric.congestion_control: dcqcn acts on marked frames, and ecn is",
    ),
    (
        "roce",
        ["congestion_control=ib_cca", "cc_preset=paper"],
        "fabric.cc_preset: ib_cca has no preset paper, which is dcqcn's; allowed: default",
    ),
    ("roce", ["cc_preset=papr"], "fabric.cc_preset: 'papr' is not allowed; allowed: default, adapter, paper"),
    ("roce", ["congestion_control=swift"], "fabric.congestion_control: not yet: 'swift' comes with a later version"),
    (
        "roce",
        ["multipath=spray"],
        "fabric.multipath: not yet: 'spray' comes with a later version; allowed now: single, ec",
    ),
    ("roce", ["arbiter=lifo"], "fabric.arbiter: 'lifo' is not allowed; allowed: per_port, per_source, fifo"),
    (
        "roce",
        ["flow_control=none", "watchdog={detection: 1us, restoration: 1us, action: drop}"],
        "fabric.watchdog: a watchdog looks after pauses, and flow_control is none; allowed: none",
    ),
    (
        "roce",
        ["watchdog={detection: 1us, restoration: 1us, action: stop}"],
        "fabric.watchdog.action: 'stop' is not allowed",
    ),
    ("roce", ["allow_reordering=true"], "fabric.allow_reordering: not yet"),
]


@pytest.mark.parametrize(("profile", "settings", "said"), BAD)
def test_what_makes_no_sense_is_refused(profile: str, settings: list[str], said: str) -> None:
    line = refusal(profile, *settings)
    assert said in line
    assert line.partition(": fabric.")[0] in {"x.yaml:2", *(f"--set fabric.{each}" for each in settings)}
