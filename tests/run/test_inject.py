"""Injection in whole runs: which frames it meets, what becomes of them, and that all books add up, on both wires."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emu import opcodes
from emu.cli import main
from emu.devices.inject import REORDER_LIMIT_PS
from emu.errors import WireError
from emu.frame import Frame
from emu.measure.result import comparable
from emu.run import Options, run
from emu.run.assembly import Assembly
from emu.scenario.load import parse
from emu.transport.requester_config import ACK_TIMEOUT_UNIT_PS
from emu.units import NS
from tests.laws.stage import Stage, hold_credits, hold_memory

ONE = "{kind: write, pairs: [[h0, h1]], size: 16KiB}"
LINE = "{kind: line, switches: 1}"
LEAVES = "{kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 2}"
CREDITS = "profile: native, flow_control: credits, credit_blocks: 80, path_mtu: 1024B"
PAUSES = "profile: roce, flow_control: pfc, xoff: 20KB, xon: 10KB, path_mtu: 1024B, buffer: 1MiB"
NONE = "profile: roce, flow_control: none, congestion_control: none, ecn: none, path_mtu: 1024B"
FABRICS = {"credits": CREDITS, "pauses": PAUSES, "none": NONE}
EFFECTS = ("drop", "corrupt", "duplicate", "reorder", "delay")
OPS = ("write", "read", "send", "write_imm", "fetch_add", "cmp_swp")


def text(
    *rules: str, fabric: str = NONE, traffic: str = ONE, topology: str = LINE, more: str = "", seed: int = 1
) -> str:
    listed = ", ".join(f"{{{rule}}}" for rule in rules)
    return f"""
name: injected
fabric: {{{fabric}, topology: {topology}}}
traffic: [{traffic}]
inject: [{listed}]
run: {{seed: {seed}}}
{more}
"""


def result(*rules: str, wire: str = "memory", **given: Any) -> dict[str, Any]:
    return run(parse(text(*rules, **given), "inject.yaml"), Options(wire=wire))


class Watched:
    """A run that notes what leaves by some links, and what comes out of one injection."""

    def __init__(self, *rules: str, **given: Any) -> None:
        self.assembly = Assembly(parse(text(*rules, **given), "inject.yaml"))
        self.assembly.join(None)
        self.sent: list[tuple[str, Frame]] = []
        self.assembly.taps.frame_sent = lambda _, link, frame: self.sent.append((link, frame))
        self.assembly.engine.run()

    def on(self, link: str, test: Callable[[Frame], bool] = lambda _: True) -> list[Frame]:
        """Frames that left there."""
        return [frame for name, frame in self.sent if name == link and test(frame)]


def test_the_third_middle_of_a_queue_pair_is_lost_and_sent_again() -> None:
    rule = "link: h0-s0, direction: h0-s0, drop: 100%, match: {opcode: write_middle, qp: 17, nth: 3}"
    run_ = Watched(rule)
    assert [frame.psn for frame in run_.on("h0-s0")] == [*range(16), *range(3, 16)]
    assert [frame.psn for frame in run_.on("s0-h1")][:5] == [0, 1, 2, 4, 5]
    naks = run_.on("s0-h0", lambda frame: frame.aeth is not None and frame.aeth[0] == 0x60)
    assert [frame.psn for frame in naks] == [3]
    assert run_.assembly.measurement.completed == 1


@pytest.mark.parametrize(
    ("match", "lost"),
    [
        ("nth: [1, 4]", [0, 3]),
        ("every: 5", [4, 9, 14]),
        ("opcode: write_last", [15]),
        ("kind: ack", []),
        ("qp: 18", []),
    ],
)
def test_patterns_meet_just_those_frames(match: str, lost: list[int]) -> None:
    run_ = Watched(
        f"link: s0-h0, direction: h0-s0, corrupt: 100%, match: {{{match}}}", more="host: {nic: {retry_cnt: 0}}"
    )
    assert [frame.psn for frame in run_.on("s0-h1")[:16] if frame.bad] == lost


def test_a_copy_takes_no_time_where_it_was_sent_and_some_behind() -> None:
    rule = "link: h0-s0, direction: h0-s0, duplicate: 100%, match: {nth: 2}"
    plain, copied = result(), result(rule)
    links = {
        name: {each["name"]: each["tx_frames"] for each in of["links"]} for name, of in (("p", plain), ("c", copied))
    }
    assert links["c"]["h0-s0"] == links["p"]["h0-s0"]
    assert links["c"]["s0-h1"] == links["p"]["s0-h1"] + 1
    assert copied["injected"] == {"drop": 0, "corrupt": 0, "duplicate": 1, "reorder": 0, "delay": 0}
    assert copied["frames"]["delivered"] == copied["frames"]["sent"] + 1 > plain["frames"]["sent"]
    assert copied["flows"][0]["retransmitted"] == 0


def test_a_frame_that_is_reordered_comes_after_its_successor() -> None:
    run_ = Watched("link: h0-s0, direction: h0-s0, reorder: 100%, match: {nth: [3, 4]}")
    assert [frame.psn for frame in run_.on("s0-h1")][:7] == [0, 1, 4, 2, 3, 5, 6]


def test_without_a_successor_it_comes_late() -> None:
    small = "{kind: write, pairs: [[h0, h1]], size: 64B}"
    plain = result(traffic=small)["messages"]["latency_ns"]["max"]
    late = result("link: h0-s0, direction: h0-s0, reorder: 100%", traffic=small)
    assert late["messages"]["latency_ns"]["max"] == plain + REORDER_LIMIT_PS / NS
    assert late["breakdown_ns"]["propagation"] > REORDER_LIMIT_PS / NS


@pytest.mark.parametrize("fabric", FABRICS)
def test_a_delay_adds_to_the_flight(fabric: str) -> None:
    given: Any = {"fabric": FABRICS[fabric], "traffic": "{kind: write, pairs: [[h0, h1]], size: 64B}"}
    plain, late = result(**given), result("link: h0-s0, delay: 100ns", "link: s0-h1, delay: 30ns", **given)
    assert late["messages"]["latency_ns"]["max"] == plain["messages"]["latency_ns"]["max"] + 130
    assert late["messages"]["completion_latency_ns"]["max"] == plain["messages"]["completion_latency_ns"]["max"] + 260
    assert late["breakdown_ns"]["propagation"] == plain["breakdown_ns"]["propagation"] + 130


@pytest.mark.parametrize("fabric", FABRICS)
def test_damage_is_dropped_where_all_of_a_frame_is_seen(fabric: str) -> None:
    rule = "link: h0-s0, direction: h0-s0, corrupt: 100%, match: {nth: 2}"
    for switching, beyond in (("store_and_forward", 0), ("cut_through", 1)):
        run_ = Watched(rule, fabric=f"{FABRICS[fabric]}, switching: {switching}")
        damaged = run_.on("s0-h1", lambda frame: frame.bad)
        assert len(damaged) == beyond
        for frame in damaged:
            assert frame.data is not None
            with pytest.raises(WireError):
                frame.envelope.framing.decode(frame.data)
        nodes = {"s0": run_.assembly.fabric.switches["s0"].dropped, "h1": run_.assembly.fabric.nics["h1"].dropped}
        assert nodes == {"s0": {} if beyond else {"bad_crc": 1}, "h1": {"bad_crc": 1} if beyond else {}}
        assert run_.assembly.measurement.completed == 1


def test_a_link_without_rules_is_as_it_ever_was() -> None:
    fabric = Watched("link: h0-s0, direction: h0-s0, drop: 1%").assembly.fabric
    assert fabric.links["h0-s0"][1].deliver != fabric.switches["s0"].receive
    assert fabric.links["s0-h0"][1].deliver == fabric.nics["h0"].receive
    assert len(fabric.attachments.injections) == 1


def test_seeds_decide_and_no_rule_shifts_another() -> None:
    lossy = "link: h0-s0, drop: 10%, match: {kind: data}"

    def lost(*rules: str, seed: int = 1) -> list[int]:
        run_ = Watched(*rules, seed=seed, traffic="{kind: write, pairs: [[h0, h1]], size: 64KiB}")
        arrived = {id(frame) for frame in run_.on("s0-h1")}
        return [place for place, frame in enumerate(run_.on("h0-s0")[:64]) if id(frame) not in arrived]

    first = lost(lossy)
    assert first
    assert lost(lossy) == first
    assert lost(lossy, "link: h0-s0, duplicate: 50%, match: {kind: ack}") == first
    assert lost(lossy, seed=2) != first


MIX = "link: all, drop: 2%, duplicate: 2%, reorder: 2%, corrupt: 2%"
LATE = "link: all, delay: 300ns, match: {every: 7, kind: data}"
OWN = {
    "credits": "link: all, drop: 5%, duplicate: 10%, delay: 400ns, match: {kind: fcp, every: 2}",
    "pauses": "link: all, drop: 5%, duplicate: 10%, delay: 400ns, match: {kind: pfc, every: 2}",
}
CROWD = "{kind: incast, senders: 3, receiver: h3, size: 20KB, qps: 2}"
HOLDS = {"credits": hold_credits, "pauses": hold_memory}


@pytest.mark.parametrize("fabric", HOLDS)
def test_buffers_and_credits_add_up_after_every_event(fabric: str) -> None:
    stage = Stage(text(MIX, LATE, OWN[fabric], fabric=FABRICS[fabric], topology=LEAVES, traffic=CROWD))
    stage.run(each_event=HOLDS[fabric])
    assert {message.status for message in stage.messages} == {"SUCCESS"}
    totals = {effect: sum(each.counts[effect] for each in stage.fabric.attachments.injections) for effect in EFFECTS}
    assert all(totals.values()), totals


@pytest.mark.parametrize("fabric", FABRICS)
@pytest.mark.parametrize("op", OPS)
def test_every_operation_is_done_once_over_lossy_links(op: str, fabric: str) -> None:
    size = "8B" if op in ("fetch_add", "cmp_swp") else "5000B"
    traffic = f"{{kind: write, pairs: [[h0, h1], [h1, h0]], size: {size}, count: 20, depth: 4, qps: 2, op: {op}}}"
    of = result("link: all, drop: 2%, duplicate: 2%, reorder: 2%", fabric=FABRICS[fabric], traffic=traffic)
    assert (of["complete"], of["messages"]["completed"], of["messages"]["failed"]) == (True, 80, 0)
    lost_link_frames = of["injected"]["drop"] - of["frames"]["lost_on_wire"]
    assert of["injected"]["drop"] > 0
    assert lost_link_frames == 0 if fabric == "none" else lost_link_frames >= 0
    assert not of["disturbed"]


@pytest.mark.parametrize("fabric", FABRICS)
def test_total_loss_ends_in_retry_exceeded_on_every_queue_pair_in_time(fabric: str, tmp_path: Path) -> None:
    code, retry_cnt = 6, 2
    file = tmp_path / "lost.yaml"
    traffic = "{kind: all_to_all, size: 3000B, qps: 2}"
    nic = f"host: {{nic: {{ack_timeout_code: {code}, retry_cnt: {retry_cnt}}}}}"
    rules = "link: all, drop: 100%, match: {kind: data}"
    file.write_text(text(rules, fabric=FABRICS[fabric], topology=LEAVES, traffic=traffic, more=nic))
    assert main(["run", str(file), "--wire", "memory", "--quiet", "--out", str(tmp_path / "out")]) == 5
    scenario = parse(file.read_text())
    of = run(scenario, Options(wire="memory"))
    assert (of["complete"], of["messages"]["completed"]) == (True, 0)
    assert of["messages"]["statuses"] == {"RETRY_EXC_ERR": 24}
    tries_ns = (retry_cnt + 1) * (ACK_TIMEOUT_UNIT_PS << code) / NS
    # Each queue pair's clock starts as its first frame is made, at the latest behind all frames of its host's others.
    # Without credits each of those may wait for the next regular moment of an FCP.
    refresh_ps = scenario.fabric.credits.refresh_ps if fabric == "credits" else 0
    assert refresh_ps is not None
    behind_ns = 6 * 3 * ((1024 + 100) * 8 / 400 + refresh_ps / NS)
    assert tries_ns < of["virtual_ns"] < tries_ns + 1_000 + behind_ns
    assert of["injected"]["drop"] == of["frames"]["lost_on_wire"] == of["frames"]["sent"] == 24 * 3 * (retry_cnt + 1)


def test_a_link_that_never_hears_credits_ends_too() -> None:
    nic = "host: {nic: {ack_timeout_code: 4, retry_cnt: 1}}"
    of = result("link: all, drop: 100%, match: {kind: fcp}", fabric=CREDITS, more=nic)
    assert of["messages"]["statuses"] == {"RETRY_EXC_ERR": 1}
    assert of["frames"]["sent"] == 0
    assert of["virtual_ns"] < 2 * (ACK_TIMEOUT_UNIT_PS << 4) / NS + 1_000


def test_pauses_that_are_lost_are_said_again_and_late_ones_come_too_late() -> None:
    crowd = "{kind: incast, senders: 3, receiver: h3, size: 512KiB}"
    given: Any = {
        "fabric": PAUSES,
        "topology": "{kind: leaf_spine, leaves: 1, spines: 1, hosts_per_leaf: 4}",
        "traffic": crowd,
    }
    assert result(**given)["drops"]["lossless"] == 0
    lost = result("link: all, drop: 30%, match: {kind: pfc}", **given)
    assert lost["injected"]["drop"] > 0 == lost["frames"]["lost_on_wire"]
    assert lost["messages"]["completed"] == 3
    late = result("link: all, delay: 50us, match: {kind: pfc}", **given)
    assert late["injected"]["delay"] > 0
    assert late["drops"]["lossless"] > 0
    assert late["messages"]["completed"] == 3


@pytest.mark.lab
@pytest.mark.parametrize("fabric", FABRICS)
def test_both_wires_lose_copy_and_delay_the_same(fabric: str, tmp_path: Path) -> None:
    rules = (MIX, LATE, *([OWN[fabric]] if fabric in OWN else []))
    results, captured = [], []
    for wire in ("memory", "veth"):
        scenario = parse(text(*rules, fabric=FABRICS[fabric], topology=LEAVES, traffic=CROWD), "inject.yaml")
        file = tmp_path / f"{wire}.pcapng"
        results.append(run(scenario, Options(wire=wire, captures=(file,))))
        captured.append(file.read_bytes())
    memory, veth = results
    assert not veth["disturbed"]
    assert not veth["warnings"]
    assert comparable(veth) == comparable(memory)
    assert captured[0] == captured[1]
    assert all(memory["injected"].values())


@pytest.mark.lab
def test_total_loss_costs_no_wall_time_on_a_veth() -> None:
    of = result("link: all, drop: 100%", wire="veth", more="host: {nic: {ack_timeout_code: 6, retry_cnt: 2}}")
    assert of["messages"]["statuses"] == {"RETRY_EXC_ERR": 1}
    assert of["run"]["wall_s"] < 2
    assert not of["disturbed"]


@pytest.mark.long
@pytest.mark.parametrize("fabric", FABRICS)
@pytest.mark.parametrize("op", OPS)
def test_many_seeds(op: str, fabric: str) -> None:
    size = "8B" if op in ("fetch_add", "cmp_swp") else "9001B"
    crowd = f"{{kind: all_to_all, size: {size}, count: 3, op: {op}}}"
    for seed in range(30):
        rules = (MIX, LATE, *([OWN[fabric]] if fabric in OWN else []))
        of = result(*rules, fabric=FABRICS[fabric], topology=LEAVES, traffic=crowd, seed=seed)
        assert of["complete"]
        assert set(of["messages"]["statuses"]) <= {"RETRY_EXC_ERR", "WR_FLUSH_ERR"}


def test_acknowledgements_and_data_are_told_apart() -> None:
    run_ = Watched(
        "link: all, corrupt: 100%, match: {kind: ack}", more="host: {nic: {ack_timeout_code: 4, retry_cnt: 0}}"
    )
    bad = [frame.opcode for _, frame in run_.sent if frame.bad]
    assert set(bad) == {opcodes.ACKNOWLEDGE}
    assert run_.assembly.measurement.failed == 1
