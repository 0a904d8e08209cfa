"""Each built-in scenario shows what it is named after: on both wires, alike, in time; and what two show together."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

from emu.measure.result import comparable
from emu.run import Options, run
from emu.scenario import builtin
from emu.scenario.load import load
from tests.builtins import INCOMPLETE, LOUD, all_but_long

pytestmark = pytest.mark.xdist_group("machine")  # all in one process, where what ran in memory is at hand
Result = Mapping[str, Any]
TIME_LIMIT_S = 20


@cache
def in_memory(name: str, *settings: str) -> Result:
    """What a run in memory gives; asked for once."""
    return run(load(name, settings), Options(wire="memory"))


def total(result: Result, key: str) -> float:
    """Over all links."""
    return float(sum(link[key] for link in result["links"]))


@pytest.mark.parametrize("name", builtin.names())
def test_it_shows_what_it_is_named_after(name: str) -> None:
    result = in_memory(name)
    assert [each["text"] for each in result["expect"] if not each["holds"]] == []
    assert result["complete"] == (name not in INCOMPLETE)
    assert bool(result["warnings"]) == (name in LOUD)


@pytest.mark.lab
@pytest.mark.parametrize("name", all_but_long("incast-16mib-dcqcn", "incast-16mib-pfc"))
def test_over_veth_it_is_the_same_and_in_time(name: str) -> None:
    began = time.monotonic()
    result = run(load(name), Options(wire="veth"))
    assert time.monotonic() - began < TIME_LIMIT_S
    assert not result["disturbed"]
    assert comparable(result) == comparable(in_memory(name))


def test_dcqcn_halves_the_pauses_of_a_long_incast_and_costs_time() -> None:
    without, with_it = in_memory("incast-16mib-pfc"), in_memory("incast-16mib-dcqcn")
    assert total(with_it, "paused_ns") <= total(without, "paused_ns") / 2
    assert 1 < with_it["virtual_ns"] / without["virtual_ns"] < 1.5


def test_dcqcn_comes_too_late_for_a_short_one() -> None:
    with_it = in_memory("incast-1mib-dcqcn")
    without = in_memory("incast-1mib-dcqcn", "fabric.congestion_control=none", "expect=[]")
    assert total(with_it, "paused_ns") > total(without, "paused_ns") / 2
    assert with_it["virtual_ns"] > 1.5 * without["virtual_ns"]


@pytest.mark.parametrize(("flows", "least", "largest"), [(2, 0.9, 1.1), (8, 0.6, 1.7)])
def test_what_the_adapter_preset_does_in_the_time_of_the_paper_one(flows: int, least: float, largest: float) -> None:
    fairness = in_memory(f"dcqcn-{flows}-flows", "fabric.cc_preset=adapter", "expect=[]")["fairness"]
    assert least < fairness["least_share"] < 1 < fairness["largest_share"] < largest


def test_the_gpu_rings_a_hundred_times_as_often_as_the_proxy() -> None:
    proxy, own = in_memory("doorbell-proxy"), in_memory("doorbell-ibgda-rate")
    assert proxy["messages"]["completed"] == own["messages"]["completed"]
    assert proxy["virtual_ns"] > 100 * own["virtual_ns"]
    fewer = in_memory("doorbell-proxy", "host.gpu.warps=16", "expect=[]")
    assert fewer["virtual_ns"] == pytest.approx(proxy["virtual_ns"], rel=0.01)


def test_a_copy_costs_its_time_and_two_crossings_at_either_end_and_nothing_else() -> None:
    bounce = in_memory("doorbell-bounce")
    direct = in_memory("doorbell-bounce", "host.gpu_direct=true", "expect=[]")
    host, same = bounce["breakdown_detail"]["host_ns"], direct["breakdown_detail"]["host_ns"]
    copies_ns = host["copy"] + host["copy_out"]
    faster_ns = same["gather"] + same["fetch"] - host["gather"] - host["fetch"]  # host memory answers sooner
    more_ns = bounce["breakdown_ns"]["total"] - direct["breakdown_ns"]["total"]
    assert more_ns == pytest.approx(copies_ns - faster_ns, abs=1)
    for part in ("nic", "serialization", "propagation", "switching"):
        assert bounce["breakdown_ns"][part] == direct["breakdown_ns"][part]


def test_inline_data_and_blueflame_save_all_that_the_nic_reads() -> None:
    inline = in_memory("doorbell-inline")
    read = in_memory("doorbell-inline", "host.queues.inline=0B", "host.cpu.blueflame=false", "expect=[]")
    assert [each["pcie"]["hosts"][0]["reads"] for each in (inline, read)] == [1, 201]
    assert read["messages"]["latency_ns"]["p50"] - inline["messages"]["latency_ns"]["p50"] > 1000


def test_one_byte_more_of_headroom_loses_nothing() -> None:
    result = in_memory("headroom-one-byte-short", "fabric.headroom=20870B", "expect=[]")
    assert result["drops"]["lossless"] == 0
    assert in_memory("headroom-one-byte-short", "fabric.headroom=tight", "expect=[]")["drops"]["lossless"] == 0


def test_a_lossless_drop_is_loud() -> None:
    result = in_memory("headroom-one-byte-short")
    assert result["drops"]["lossless"] == 1
    (warning,) = result["warnings"]
    assert warning.startswith("LOSSLESS DROP: 1 frame of a lossless class was dropped at leaf0")


@pytest.mark.parametrize("name", ["victim-native", "victim-roce"])
def test_a_victim_is_one_of_the_incast_only(name: str) -> None:
    alone = in_memory(name, "traffic.0.senders=[h1, h2, h3]", "expect=[]")  # nothing of the incast on the uplink
    (victim,) = [flow for flow in alone["flows"] if flow["kind"] == "victim"]
    assert victim["slowdown"] < 1.1


def test_the_storm_without_a_watchdog_holds_up_the_innocent_to_its_end() -> None:
    watched, unwatched = in_memory("pause-storm"), in_memory("pause-storm-unwatched")
    beside = [next(flow["fct_ns"] for flow in each["flows"] if flow["src"] == "h5") for each in (watched, unwatched)]
    assert 3 * beside[0] < beside[1]
