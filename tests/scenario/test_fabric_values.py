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
from tests.scenario.of_profile import TEXT, refusal, scenario


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
    one = scenario("roce", "congestion_control=none", "ecn=none")
    assert one.fabric.ecn is None
    assert one.resolved()["fabric"]["ecn"] == "none"
    assert build(one.resolved()).fabric.ecn is None
    assert one.provenance["fabric.ecn"].kind == "scenario"


def test_a_group_that_the_profile_has_not_is_given_whole() -> None:
    assert "fabric.ecn.kmax: is missing" in refusal("native", "ecn.kmin=10KB")
    assert scenario("native", "ecn={kmin: 1KB, kmax: 2KB, pmax: 1%}").fabric.ecn is not None


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
