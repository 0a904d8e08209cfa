"""Whole runs in memory: laws that every run keeps, whatever the scenario."""

from __future__ import annotations

from typing import Any

import pytest

from emu.devices.lane import Lane
from emu.devices.nic import Nic
from emu.errors import InvariantBroken
from emu.fabric import Fabric
from emu.frame import Frame
from emu.measure.result import comparable
from emu.parts import NIC
from emu.run import Options, run
from emu.scenario.load import parse

RESULT_KEYS = {
    "schema", "complete", "scenario", "seed", "wire", "virtual_ns", "deterministic", "disturbed", "run", "frames",
    "drops", "messages", "fabric_latency_ns", "breakdown_ns", "breakdown_ps_total", "breakdown_detail", "flows",
    "links", "fairness", "expect", "warnings", "provenance",
}  # fmt: skip
FLOW_KEYS = {"src", "dst", "bytes", "start_ns", "finish_ns", "fct_ns", "ideal_fct_ns", "slowdown", "retransmitted"}
LINK_KEYS = {
    "name", "from", "to", "tx_frames", "tx_bytes", "utilization", "paused_ns", "credit_wait_ns", "pause_frames",
    "credit_frames", "max_queue_bytes", "ecn_marked", "dropped",
}  # fmt: skip


def scenario(traffic: str, profile: str = "native", **fabric: str) -> str:
    """Two leaves, two spines, four hosts."""
    more = "".join(f", {key}: {value}" for key, value in fabric.items())
    return f"""
name: law
fabric: {{profile: {profile}, topology: {{kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 2}}{more}}}
traffic: [{traffic}]
"""


def ran(text: str, **options: Any) -> dict[str, Any]:
    """Its result in memory."""
    return run(parse(text, "law.yaml", ()), Options(wire="memory", **options))


def test_every_key_of_the_contract_is_there() -> None:
    result = ran(scenario("{kind: write, pairs: [[h0, h3]], size: 4KiB}"))
    assert set(result) >= RESULT_KEYS
    assert set(result["flows"][0]) >= FLOW_KEYS
    assert set(result["links"][0]) >= LINK_KEYS
    assert set(result["messages"]["latency_ns"]) == {"min", "mean", "p50", "p90", "p99", "p999", "max"}
    assert set(result["run"]) == {
        "wall_s", "events", "frame_hops", "control_frame_hops", "tlp_hops", "frame_hops_per_s", "peak_rss_mb",
        "build_s",
    }  # fmt: skip
    assert set(result["frames"]) >= {"sent", "delivered", "lost_on_wire", "foreign"}


@pytest.mark.parametrize("profile", ["native", "roce"])
def test_the_parts_add_up_and_the_same_run_is_equal(profile: str) -> None:
    text = scenario("{kind: all_to_all, size: 100KiB, count: 2}", profile)
    first, second = ran(text), ran(text)
    assert comparable(first) == comparable(second)
    total = first["breakdown_ps_total"]
    assert sum(value for name, value in total.items() if name != "total") == total["total"]
    assert sum(first["breakdown_ns"].values()) - 2 * first["breakdown_ns"]["total"] == pytest.approx(0, abs=1e-6)
    assert first["messages"]["completed"] == first["messages"]["posted"] == 24
    assert first["messages"]["latency_ns"]["mean"] == pytest.approx(first["breakdown_ns"]["total"], abs=1e-6)
    assert all(flow["slowdown"] >= 1 for flow in first["flows"])


def test_another_seed_changes_the_payload_and_nothing_that_is_timed() -> None:
    text = scenario("{kind: all_to_all, size: 10KiB}")
    first = ran(text)
    second = run(parse(text, "law.yaml", ("run.seed=2",)), Options(wire="memory"))
    assert first["messages"] == second["messages"]
    assert second["seed"] == 2


def test_depth_keeps_several_messages_outstanding() -> None:
    one = ran(scenario("{kind: write, pairs: [[h0, h3]], size: 4KiB, count: 32}"))
    deep = ran(scenario("{kind: write, pairs: [[h0, h3]], size: 4KiB, count: 32, depth: 16}"))
    assert deep["virtual_ns"] < one["virtual_ns"] / 5
    assert deep["messages"]["completed"] == one["messages"]["completed"] == 32


def test_a_run_lasts_until_the_data_is_visible_though_the_cqe_came_before() -> None:
    text = scenario("{kind: write, pairs: [[h0, h3]], size: 4KiB, count: 2}") + "host: {nic: {delivery: 1ms}}\n"
    result = ran(text)
    assert result["complete"] is True
    assert result["messages"]["latency_ns"]["min"] == result["messages"]["latency_ns"]["max"] > 10**6
    assert result["flows"][0]["messages"] == 2


def test_until_ends_an_unfinished_run_as_incomplete() -> None:
    text = scenario("{kind: all_to_all, size: 1MiB}") + "run: {until: 20us}\n"
    result = ran(text)
    assert result["complete"] is False
    assert result["virtual_ns"] == 20_000
    assert result["messages"]["completed"] < 12
    assert result["frames"]["on_the_way"] > 0


def test_queueing_never_goes_below_what_the_receiver_can_take() -> None:
    """Three senders, one receiver: the last message waits for the bytes of the others."""
    traffic = "{kind: write, pairs: [[h0, h3], [h1, h3], [h2, h3]], size: 256KiB}"
    text = scenario(traffic, flow_control="none")  # with credits it waits in its NICs
    result = ran(text)
    wire_ps = 3 * 64 * (8 + 12 + 4096 + 4 + 2 + 8) * 20
    assert result["messages"]["latency_ns"]["max"] * 1000 > wire_ps
    assert result["breakdown_ns"]["queueing"] > 0
    assert max(link["max_queue_bytes"] for link in result["links"]) > 256 * 1024


def test_a_message_faster_than_physics_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    deliver = Nic.deliver

    def too_early(nic: Nic, message: Any) -> None:
        message.posted_ps += 1
        message.parts -= 1 << NIC
        deliver(nic, message)

    monkeypatch.setattr(Nic, "deliver", too_early)
    with pytest.raises(InvariantBroken, match="physical floor"):
        ran(scenario("{kind: write, pairs: [[h0, h3]], size: 4KiB}"))


class Eater:
    """Stands before a switch's port and loses the frames of the given numbers."""

    def __init__(self, lost: set[int]) -> None:
        self.lost = lost
        self.seen = 0

    def __call__(self, fabric: Fabric) -> None:
        """Put it between leaf1 and h3."""
        _, port = fabric.links["leaf1-h3"]
        start = port.start

        def start_or_lose(frame: Frame, lane: Lane) -> None:
            self.seen += 1
            frame.bad = frame.bad or self.seen - 1 in self.lost
            start(frame, lane)

        port_class = type(port)
        eating = type("Eating", (port_class,), {"__slots__": (), "start": lambda _, *given: start_or_lose(*given)})
        port.__class__ = eating


@pytest.mark.parametrize("lost", [{0}, {3}, {15}, {2, 5, 7}])
def test_a_lost_frame_is_sent_again_and_the_run_ends(lost: set[int]) -> None:
    result = ran(scenario("{kind: write, pairs: [[h0, h3]], size: 64KiB}"), before_run=Eater(lost))
    assert result["complete"] is True
    assert result["messages"]["completed"] == 1
    assert result["drops"]["by_reason"] == {"bad_crc": len(lost)}
    assert result["flows"][0]["retransmitted"] >= 1


def test_a_path_that_loses_everything_ends_in_retry_exceeded_within_the_computed_time() -> None:
    text = (
        scenario("{kind: write, pairs: [[h0, h3]], size: 4KiB, count: 3, depth: 3}") + "host: {nic: {retry_cnt: 2}}\n"
    )
    result = ran(text, before_run=Eater(set(range(1000))))
    assert result["complete"] is True  # the traffic is over, though it failed
    assert result["messages"]["failed"] == 3
    assert result["messages"]["statuses"] == {"RETRY_EXC_ERR": 1, "WR_FLUSH_ERR": 2}
    timeout_ns = 4096 * 2**10
    assert 3 * timeout_ns < result["virtual_ns"] < 3 * timeout_ns + 20_000
    assert any("failed" in warning for warning in result["warnings"])
