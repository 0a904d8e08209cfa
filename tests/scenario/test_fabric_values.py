"""Flow control, buffers, classes and congestion control in a scenario: what is taken, filled in, and refused."""

from __future__ import annotations

from fractions import Fraction

import pytest
import yaml

from emu import opcodes
from emu.addresses import address_of
from emu.errors import ScenarioError
from emu.frame import Frame
from emu.framing.native import NativeFraming
from emu.linklayer.classes import PriorityMap, SlToVl
from emu.linklayer.credits import CreditConfig, blocks_of
from emu.scenario.load import build, parse
from emu.scenario.model import Scenario

TEXT = """\
name: x
fabric:
  profile: {profile}
  topology: {{kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 2}}
{more}traffic:
  - {{kind: write, pairs: [[h0, h3]], size: 4KiB}}
"""


def scenario(profile: str, *settings: str, more: str = "") -> Scenario:
    """A scenario of that profile with these settings of its fabric."""
    return parse(TEXT.format(profile=profile, more=more), "x.yaml", [f"fabric.{each}" for each in settings])


def refusal(profile: str, *settings: str) -> str:
    """What is wrong with them: one line, which the last setting is blamed for."""
    with pytest.raises(ScenarioError) as caught:
        scenario(profile, *settings)
    line = str(caught.value)
    assert "\n" not in line
    return line


@pytest.mark.parametrize("profile", ["native", "roce"])
def test_every_profile_has_every_value_and_loads_again(profile: str) -> None:
    one = scenario(profile, "sl_to_vl={1: 0}", "lossless=[3, 4]", "xoff=1MiB", "xon=1000KB", "credits.refresh=never")
    for again in (build(one.resolved()), parse(yaml.safe_dump(one.resolved()))):
        assert again == one
        assert hash(again) == hash(one)
        assert again.provenance == one.provenance


def test_attributes_have_units_and_none_where_a_word_stands() -> None:
    fabric = scenario("roce").fabric
    assert (fabric.buffer_bytes, fabric.alpha, fabric.reserved_bytes) == (64 << 20, Fraction(1, 8), 0)
    assert (fabric.xoff_bytes, fabric.xon_bytes, fabric.headroom) == (None, None, "vendor")
    assert (fabric.watchdog, fabric.lossless) == (None, None)
    assert fabric.ecn is not None
    assert (fabric.ecn.kmin_bytes, fabric.ecn.kmax_bytes, fabric.ecn.pmax) == (800_000, 3_200_000, Fraction(1, 5))
    assert (fabric.pause.quanta, fabric.pause.response_ps, fabric.pause.resume_ps) == (65_535, 0, 0)
    assert (fabric.cnp.dscp, fabric.cnp.priority, fabric.cc_preset) == (48, 6, "adapter")
    native = scenario("native").fabric
    assert (native.credit_blocks, native.vls, dict(native.sl_to_vl)) == (1024, 1, {})
    assert (native.credits.threshold_blocks, native.credits.fcp_wire_bytes) == (256, 14)
    assert native.ecn is None


def test_the_refresh_is_65536_symbols_of_a_lane_of_100g() -> None:
    symbols, bits_of_a_symbol, lane_bps = 65_536, 8, 100 * 10**9
    exact_ps = Fraction(symbols * bits_of_a_symbol * 10**12, lane_bps)
    refresh_ps = scenario("native").fabric.credits.refresh_ps
    assert refresh_ps is not None
    assert abs(refresh_ps - exact_ps) < 1000  # to the nanosecond
    assert scenario("native", "credits.refresh=never").fabric.credits.refresh_ps is None


@pytest.mark.parametrize(
    ("text", "value"),
    [("1/8", "1/8"), ("12.5%", "1/8"), ("0.125", "1/8"), ("0.2", "1/5"), ("2", "2"), ("16", "16"), ("1/3", "1/3")],
)
def test_alpha_is_exact(text: str, value: str) -> None:
    one = scenario("roce", f"alpha={text}")
    assert one.fabric.alpha == Fraction(value)
    assert one.resolved()["fabric"]["alpha"] == value
    again = build(one.resolved())
    assert again.fabric.alpha == one.fabric.alpha


@pytest.mark.parametrize(
    ("text", "shown"), [("20%", "20%"), ("0.015", "1.5%"), ("1/3", "1/3"), ("0", "0%"), (1, "100%")]
)
def test_a_probability_is_shown_in_percent(text: str, shown: str) -> None:
    assert scenario("roce", f"ecn.pmax={text}").resolved()["fabric"]["ecn"]["pmax"] == shown


def test_one_key_of_a_group_leaves_the_profiles_others() -> None:
    by_setting = scenario("roce", "ecn.kmin=10KB")
    by_file = scenario("roce", more="  ecn: {kmin: 10KB}\n")
    assert by_setting == by_file
    assert by_setting.fabric.ecn is not None
    assert (by_setting.fabric.ecn.kmin_bytes, by_setting.fabric.ecn.kmax_bytes) == (10_000, 3_200_000)
    origin = by_setting.provenance["fabric.ecn"]
    assert (origin.kind, origin.value) == ("scenario", "{kmin: 10KB, kmax: 3200KB, pmax: 20%}")
    assert origin.source == "kmin set by the scenario"
    untouched = scenario("roce").provenance["fabric.ecn"]
    assert (untouched.kind, untouched.value) == ("secondary", "{kmin: 800KB, kmax: 3200KB, pmax: 20%}")
    assert scenario("roce", "ecn.kmin=0.8MB").provenance["fabric.ecn"] == untouched


def test_the_word_none_takes_a_group_away() -> None:
    one = scenario("roce", "ecn=none")
    assert one.fabric.ecn is None
    assert one.resolved()["fabric"]["ecn"] == "none"
    assert build(one.resolved()).fabric.ecn is None
    assert one.provenance["fabric.ecn"].kind == "scenario"


def test_a_group_that_the_profile_has_not_is_given_whole() -> None:
    assert "fabric.ecn.kmax: is missing" in refusal("native", "ecn.kmin=10KB")
    assert scenario("native", "ecn={kmin: 1KB, kmax: 2KB, pmax: 1%}").fabric.ecn is not None


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
        ["watchdog={detection: 1us, restoration: 1us, action: drop}"],
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


@pytest.mark.parametrize("mtu_bytes", [256, 512, 1024, 2048, 4096])
def test_a_credit_window_of_one_frame_is_just_enough(mtu_bytes: int) -> None:
    """Held against the frame's real bytes, and against what the credit machine takes."""
    framing = NativeFraming(0)
    envelope = framing.envelope(address_of("h0", 0), address_of("h1", 1), destination_qp=1, source_qp=2)
    frame = Frame(envelope, opcodes.WRITE_FIRST, 0, bytes(mtu_bytes), reth=(0, 0, mtu_bytes))
    needed = blocks_of(frame.wire_bytes)
    settings = ("flow_control=credits", f"path_mtu={mtu_bytes}B")
    assert scenario("native", *settings, f"credit_blocks={needed}").fabric.credit_blocks == needed
    assert f"allowed: {needed} to 2048" in refusal("native", *settings, f"credit_blocks={needed - 1}")
    CreditConfig(capacity_blocks=needed, threshold_blocks=1, mtu_blocks=needed)


def test_priorities_follow_the_dscp() -> None:
    fabric = scenario("roce", "dscp=10", "dscp_to_priority={5: 7}", "priority=4").fabric
    expected = [dscp >> 3 for dscp in range(64)]
    expected[10], expected[48], expected[5] = 4, 6, 7
    assert list(fabric.priority_of_dscp()) == expected
    assert (fabric.dscp_of(4), fabric.dscp_of(7), fabric.dscp_of(0)) == (10, 5, 0)
    assert all(fabric.priority_of_dscp()[fabric.dscp_of(priority)] == priority for priority in range(8))


def test_a_priority_that_no_dscp_leads_to_is_refused() -> None:
    settings = ["dscp_to_priority={8: 0, 9: 0, 10: 0, 11: 0, 12: 0, 13: 0, 14: 0, 15: 0}"]
    with pytest.raises(ScenarioError, match="no DSCP leads to priority 1"):
        scenario("roce", *settings).fabric.dscp_of(1)
    text = TEXT.format(profile="roce", more="").replace("size: 4KiB", "size: 4KiB, priority: 1")
    with pytest.raises(ScenarioError, match=r"x:6: traffic\.0\.priority: no DSCP leads to priority 1"):
        parse(text, "x", [f"fabric.{each}" for each in settings])


def test_lossless_is_the_data_unless_said_otherwise() -> None:
    assert scenario("roce").fabric.lossless_priorities() == (3,)
    assert scenario("roce", "priority=5").fabric.lossless_priorities() == (5,)
    assert scenario("roce", "lossless=[3, 4]").fabric.lossless_priorities() == (3, 4)
    assert scenario("roce", "lossless=[]").fabric.lossless_priorities() == ()


def test_the_maps_agree_with_the_link_layers() -> None:
    """The checks here are the scenario's own; the machines' must not refuse what they let through, nor differ."""
    roce = scenario("roce", "lossless=[3, 4]", "priority_to_queue={6: 1, 1: 6}", "dscp_to_priority={1: 5}").fabric
    machine = PriorityMap(
        dscp_to_priority={26: 3, 48: 6, **roce.dscp_to_priority},
        priority_to_queue=roce.priority_to_queue,
        lossless=frozenset(roce.lossless_priorities()),
    )
    assert machine.by_dscp == roce.priority_of_dscp()
    assert machine.queues == tuple(roce.queue_of(priority) for priority in range(8))
    native = scenario("native", "vls=3", "sl_to_vl={4: 2, 15: 0}").fabric
    assert SlToVl(vls=3, table=native.sl_to_vl).by_sl == tuple(native.vl_of(level) for level in range(16))
