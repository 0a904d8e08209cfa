"""What a scenario's fabric becomes: sizes, headroom, thresholds, arbiters; and what only its links show to be wrong."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topologies
from emu import lossless
from emu.errors import ScenarioError
from emu.framing.native import NativeFraming
from emu.framing.roce import RoceFraming
from emu.linklayer.headroom import mixed_bytes, tight_bytes, vendor_bytes
from emu.linklayer.watchdog import Action
from emu.scenario.load import parse
from emu.scenario.model import Scenario
from emu.topology import Link, PortName

G = 10**9
ROCE, NATIVE = RoceFraming(20), NativeFraming(8)
TEXT = """\
name: any
fabric:
  profile: {profile}
  topology: {{kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 2}}
  flow_control: {control}
traffic: []
"""


def pfc(*settings: str) -> Scenario:
    return parse(TEXT.format(profile="roce", control="pfc"), "any.yaml", [f"fabric.{each}" for each in settings])


def credits(*settings: str) -> Scenario:
    return parse(TEXT.format(profile="native", control="credits"), "any.yaml", [f"fabric.{each}" for each in settings])


def link(rate_gbps: int = 400, propagation_ps: int = 25_000) -> Link:
    return Link("a-b", PortName("a", 1), PortName("b", 1), rate_gbps * G, propagation_ps)


def check(scenario: Scenario) -> None:
    fabric = scenario.fabric
    framing = ROCE if fabric.framing == "rocev2" else NATIVE
    lossless.check(scenario, topologies.build(fabric.topology, fabric.link_defaults), framing)


def test_the_largest_frame() -> None:
    # Ethernet 14, IPv4 20, UDP 8, BTH 12, RETH 16, ICRC 4, FCS 4, preamble and gap 20; LRH 8, VCRC 2, overhead 8.
    assert lossless.largest_frame_wire_bytes(ROCE, 4096) == 14 + 20 + 8 + 12 + 16 + 4096 + 4 + 4 + 20
    assert lossless.largest_frame_wire_bytes(NATIVE, 256) == 8 + 12 + 16 + 256 + 4 + 2 + 8
    assert lossless.largest_frame_bytes(pfc().fabric, ROCE) == 4174
    assert lossless.largest_frame_bytes(credits("framing_overhead=8B").fabric, NATIVE) == 4138


def test_headroom_by_each_name() -> None:
    config = lossless.headroom_config(pfc().fabric, link(), ROCE)
    vendor = lossless.vendor_config(pfc().fabric, link(), ROCE)
    expected = {"tight": tight_bytes(config), "mixed": mixed_bytes(config), "vendor": vendor_bytes(vendor)}
    assert expected["tight"] == 2 * 4174  # D = 83.88 + 1.68 + 50 ns, and a frame takes 83.88
    for name, size in {**expected, "12345B": 12345}.items():
        assert lossless.headroom_bytes(pfc(f"headroom={name}").fabric, link(), ROCE) == size


def test_the_vendors_by_hand() -> None:
    vendor = lossless.vendor_config(pfc().fabric, link(), ROCE)
    exact = 4194 + (4194 + 2 * Fraction(5, 198_000_000) * 400 * G / 8 + 800 + 905 * 64) * Fraction(144, 64)
    assert (vendor.cable_mm, vendor.response_bytes) == (5000, 905 * 64)
    assert vendor_bytes(vendor) == -(-exact // 1024) * 1024


links = st.builds(link, st.sampled_from([10, 25, 100, 400, 800]), st.integers(0, 2_000_000))


@settings(max_examples=20)
@given(links, st.integers(0, 5000), st.sampled_from(["0ns", "300ns", "3us"]), st.sampled_from(["256B", "4KiB"]))
def test_the_vendors_is_never_less(link: Link, per_metre_ps: int, response: str, mtu: str) -> None:
    settings = (f"propagation={per_metre_ps}ps/m", f"pause.response={response}", f"path_mtu={mtu}")
    sizes = {name: lossless.headroom_bytes(pfc(*settings, f"headroom={name}").fabric, link, ROCE) for name in NAMES}
    assert sizes["vendor"] >= sizes["mixed"] and sizes["vendor"] >= sizes["tight"]


NAMES = ("tight", "mixed", "vendor")


def test_the_account_of_a_priority() -> None:
    fabric = pfc("headroom=20KB", "reserved=4KiB", "alpha=1/4").fabric
    account = lossless.ingress_config(fabric, link(), ROCE, lossless=True)
    assert (account.alpha, account.xoff_bytes, account.reserved_bytes) == (Fraction(1, 4), 64 * 2**20, 4096)
    assert account.xoff_bytes - account.xon_bytes == 2 * 4174
    assert (account.headroom_bytes, account.lossless) == (20_000, True)
    lossy = lossless.ingress_config(fabric, link(), ROCE, lossless=False)
    assert (lossy.headroom_bytes, lossy.lossless) == (0, False)
    fixed = lossless.ingress_config(pfc("xoff=100KB", "xon=60KB").fabric, link(), ROCE, lossless=True)
    assert (fixed.xoff_bytes, fixed.xon_bytes) == (100_000, 60_000)
    assert lossless.ingress_config(pfc("xoff=5KB").fabric, link(), ROCE, lossless=True).xon_bytes == 0


def test_pauses() -> None:
    config = lossless.pause_config(pfc("pause.quanta=1000").fabric, link(100), ROCE)
    assert config.refresh_ps == 1000 * 5120 - (4194 + 84) * 80


def test_credits() -> None:
    config = lossless.credit_config(credits("credit_blocks=200", "credits.threshold=64").fabric, NATIVE)
    assert (config.capacity_blocks, config.due_blocks, config.mtu_blocks) == (200, 50, 65)


def test_marking_and_the_watchdog() -> None:
    curve = lossless.ecn_config(pfc("ecn={kmin: 10KB, kmax: 20KB, pmax: 50%}").fabric)
    assert curve is not None
    assert (curve.kmin_bytes, curve.kmax_bytes, curve.pmax) == (10_000, 20_000, Fraction(1, 2))
    assert lossless.ecn_config(pfc("ecn=none", "congestion_control=none").fabric) is None
    assert lossless.watchdog_config(pfc().fabric) is None
    watchdog = lossless.watchdog_config(pfc("watchdog={detection: 1ms, restoration: 2ms, action: forward}").fabric)
    assert watchdog is not None
    assert (watchdog.detection_ps, watchdog.restoration_ps, watchdog.action) == (10**9, 2 * 10**9, Action.FORWARD)


def test_classes() -> None:
    classes = lossless.priority_map(pfc("lossless=[3, 4]", "priority_to_queue={4: 5}").fabric)
    assert classes.lossless == {3, 4}
    assert (classes.by_dscp[26], classes.by_dscp[48], classes.by_dscp[8]) == (3, 6, 1)
    assert (classes.queues[3], classes.queues[4]) == (3, 5)
    assert lossless.lossless_priorities(pfc().fabric) == (3,)
    assert lossless.lossless_priorities(credits().fabric) == ()
    moved = lossless.priority_map(pfc("priority=5").fabric)
    assert moved.by_dscp[26] == 5 and moved.lossless == {5}
    assert lossless.sl_to_vl(credits("vls=2", "sl_to_vl={3: 0}").fabric).by_sl[:4] == (0, 1, 0, 0)


def test_arbiters() -> None:
    queues = lossless.queue_arbiter_config(pfc().fabric, ROCE)
    assert (queues.weights, queues.quantum_bytes) == ((1, 1, 1, 1, 1, 1, 0, 1), 4194)
    given_weights = lossless.queue_arbiter_config(pfc("queue_weights={6: 2, 0: 0, 3: 9}").fabric, ROCE)
    assert given_weights.weights == (0, 1, 1, 9, 1, 1, 2, 1)
    shared = pfc("cnp={dscp: 26, priority: 3}")
    assert lossless.queue_arbiter_config(shared.fabric, ROCE).weights == (1,) * 8  # data must not starve the others
    assert lossless.vl_arbiter_config(credits("vls=2").fabric).low == ((0, 64), (1, 64))
    tables = lossless.vl_arbiter_config(
        credits("vls=2", "vl_arbitration={high: [[1, 8]], low: [[0, 4]], high_limit: 3}").fabric
    )
    assert (tables.high, tables.low, tables.high_limit) == (((1, 8),), ((0, 4),), 3)


def test_what_a_switch_sets_aside() -> None:
    scenario = pfc("headroom=20KB", "reserved=1KB", "lossless=[3, 4]")
    topology = topologies.build(scenario.fabric.topology, scenario.fabric.link_defaults)
    a_port = 8 * 1000 + 2 * 20_000
    aside = lossless.switch_set_aside_bytes(scenario.fabric, topology, ROCE)
    assert aside == {"leaf0": 4 * a_port, "leaf1": 4 * a_port, "spine0": 2 * a_port, "spine1": 2 * a_port}


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("buffer=200KB", "fabric.buffer: 200000B do not hold what switch leaf0 sets aside, 6"),
        ("pause.quanta=65", "fabric.pause.quanta: on link leaf0-h0, a pause of 65 quanta is over after 83200 ps"),
    ],
)
def test_what_only_the_links_show(setting: str, said: str) -> None:
    check(pfc())
    with pytest.raises(ScenarioError) as caught:
        check(pfc(setting))
    assert str(caught.value).startswith(f"--set fabric.{setting}: {said}")
    assert "\n" not in str(caught.value)


def test_what_does_not_matter_is_not_asked() -> None:
    check(credits("buffer=1B", "pause.quanta=1"))
    check(parse(TEXT.format(profile="roce", control="none"), settings=["fabric.buffer=1B"]))
