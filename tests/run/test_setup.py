"""`setup: cm`: queue pairs are connected over QP1 in model time; how long that takes, what is lost, who refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from emu.cli import main
from emu.measure.result import comparable
from emu.run import Options, run
from emu.run.assembly import Assembly
from emu.scenario.load import parse
from emu.verbs import QPState
from emu.verbs.cm import CmConfig, Connection, Reject
from traffic.workloads import setup

LINE = "{kind: line, switches: 2}"
LEAVES = "{kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 2}"
FABRICS = {"native": "profile: native, credits: {refresh: never}", "roce": "profile: roce"}
MAD_WIRE_BYTES = {
    "native": 8 + 12 + 8 + 256 + 4 + 2 + 8,  # LRH, BTH, DETH, MAD, ICRC, VCRC; framing overhead
    "roce": 14 + 20 + 8 + 12 + 8 + 256 + 4 + 4 + 20,  # Ethernet, IPv4, UDP, BTH, DETH, MAD, ICRC, FCS; gap
}
HOP_NS = {"native": 260, "roce": 600}
QUICK = "{cm_timeout_code: 5, cm_retries: 3}"  # 131.072 us
TIMEOUT_NS = 4096 * 2**5
WRITE = "{kind: write, pairs: [[h0, h1]], size: 4KiB, start: 10us, setup: cm}"


def text(traffic: str, profile: str = "native", topology: str = LINE, more: str = "") -> str:
    fabric = FABRICS[profile]
    return f"""
name: set-up
fabric: {{{fabric}, topology: {topology}}}
host: {{nic: {QUICK}}}
traffic: [{traffic}]
{more}
"""


def result(traffic: str = WRITE, profile: str = "native", wire: str = "memory", **more: str) -> dict[str, Any]:
    return run(parse(text(traffic, profile, **more), "setup.yaml"), Options(wire=wire))


def lose(opcode_number: int, direction: str = "h0-s0") -> str:
    """Lose one of the MADs that go that way, counted from 1."""
    return f"inject: [{{link: h0-s0, direction: {direction}, drop: 100%, match: {{qp: 1, nth: {opcode_number}}}}}]"


def mad_ns(profile: str) -> float:
    """One MAD from posting to being acted on, alone on its way over two switches: cut-through, equal rates."""
    propagation = 5 * (3 + 5 + 3)
    return 300 + propagation + 2 * HOP_NS[profile] + MAD_WIRE_BYTES[profile] * 0.02 + 300 + 300


@pytest.mark.parametrize("profile", FABRICS)
def test_unloaded_it_takes_three_mads(profile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ready_ns: list[float] = []
    establish = Connection.establish

    def noted(connection: Connection) -> None:
        establish(connection)
        ready_ns.append(connection._engine.now_ps / 1000)

    monkeypatch.setattr(Connection, "establish", noted)
    got = result(profile=profile)
    one = mad_ns(profile)
    start_ns = 10_000
    assert got["connections"] == {
        "made": 1,
        "failed": 0,
        "setup_ns": dict.fromkeys(got["connections"]["setup_ns"], pytest.approx(2 * one, abs=1e-9)),
        "failures": [],
    }
    assert ready_ns == pytest.approx([start_ns + 2 * one, start_ns + 3 * one])  # at REP here, at RTU there
    (flow,) = got["flows"]
    assert flow["start_ns"] == pytest.approx(start_ns + 2 * one)
    direct = result(WRITE.replace("cm", "direct"), profile=profile)
    behind_rtu_ns = MAD_WIRE_BYTES[profile] * 0.02  # which leaves just before it
    assert flow["fct_ns"] == pytest.approx(direct["flows"][0]["fct_ns"] + behind_rtu_ns)
    for key in ("ideal_fct_ns", "path", "messages", "retransmitted", "dst"):
        assert flow[key] == direct["flows"][0][key], key
    assert direct["connections"]["made"] == 0
    assert got["frames"]["sent"] == direct["frames"]["sent"] + 3


@pytest.mark.parametrize("profile", FABRICS)
@pytest.mark.parametrize(
    ("lost", "late"),
    [
        (lose(1), TIMEOUT_NS),  # REQ
        (lose(1, "s0-h0"), TIMEOUT_NS),  # REP: the REQ that comes again, or its own time, brings it again
        (lose(2), 0),  # RTU: the one that asks is ready, and its data may come before
        ("inject: [{link: h0-s0, duplicate: 100%, match: {qp: 1}}]", 0),
    ],
)
def test_a_lost_mad_is_sent_again(lost: str, late: int, profile: str) -> None:
    many = WRITE.replace("size", "count: 200, size")  # which takes longer than a timeout
    got = result(many, profile, more=lost)
    assert got["connections"]["made"] == 1
    assert got["messages"]["completed"] == 200
    took_ns = got["connections"]["setup_ns"]["max"]
    assert late + 2 * mad_ns(profile) - 1e-6 <= took_ns <= late + 2 * mad_ns(profile) + 1000
    assert got["flows"][0]["start_ns"] == pytest.approx(10_000 + took_ns)
    assert got["flows"][0]["retransmitted"] == 0


KINDS = (
    "{kind: write, pairs: [[h0, h3], [h1, h3]], size: 100KB, qps: 3, depth: 2, count: 4, setup: cm}",
    "{kind: all_to_all, size: 10KB, count: 2, setup: cm}",
    "{kind: incast, senders: 3, receiver: h0, size: 64KiB, op: send, count: 3, setup: cm}",
    "{kind: permutation, size: 64KiB, op: read, count: 3, depth: 3, setup: cm}",
    "{kind: poisson, pairs: [[h0, h2], [h3, h1]], size: 8KiB, load: 60%, count: 50, op: write_imm, setup: cm}",
    "{kind: write, pairs: [[h0, h3]], size: 8B, op: cmp_swp, count: 5, depth: 5, setup: cm}",
    "{kind: incast, senders: [h1], receiver: h2, size: 64KiB}, {kind: victim, size: 4KiB, setup: cm}",
)
MADE = (6, 12, 3, 4, 2, 1, 1)


@pytest.mark.parametrize("profile", FABRICS)
@pytest.mark.parametrize(("kind", "made"), list(zip(KINDS, MADE, strict=True)))
def test_every_kind_carries_its_messages_right(kind: str, made: int, profile: str) -> None:
    got = result(kind, profile, topology=LEAVES)
    direct = result(kind.replace("setup: cm", "setup: direct"), profile, topology=LEAVES)
    assert got["complete"]
    assert (got["connections"]["made"], got["connections"]["failed"]) == (made, 0)
    for key in ("posted", "completed", "bytes"):
        assert got["messages"][key] == direct["messages"][key]
    assert sorted((flow["src"], flow["dst"], flow["qp"]) for flow in got["flows"]) == sorted(
        (flow["src"], flow["dst"], flow["qp"]) for flow in direct["flows"]
    )


@pytest.mark.lab
@pytest.mark.parametrize("profile", FABRICS)
def test_both_wires_agree(profile: str) -> None:
    kinds = f"{KINDS[1]}, {KINDS[4]}"
    rule = "inject: [{link: leaf0-spine0, drop: 20%, duplicate: 20%, match: {qp: 1}}]"
    memory, veth = (result(kinds, profile, wire, topology=LEAVES, more=rule) for wire in ("memory", "veth"))
    assert comparable(memory) == comparable(veth)
    assert memory["injected"]["drop"] > 0
    assert memory["connections"]["made"] == 14


def test_what_cannot_be_connected_ends_with_5_and_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "setup.yaml"
    both = WRITE.replace("[[h0, h1]]", "[[h0, h1], [h1, h0]]")
    file.write_text(text(both, more="inject: [{link: s1-h1, direction: h1-s1, drop: 100%, match: {qp: 1}}]"))
    assert main(["run", str(file), "--wire", "memory", "--json"]) == 5
    out, err = capsys.readouterr()
    why = "traffic did not complete: 2 connections not made (h0 to h1: h1 did not answer)"
    assert err == f"emu: {why}\n"
    got = json.loads(out)
    assert got["connections"]["failures"] == ["h0 to h1: h1 did not answer", "h1 to h0: h0 did not answer"]
    assert got["complete"]
    assert got["flows"] == []
    assert 4 * TIMEOUT_NS <= got["virtual_ns"] - 10_000 < 5 * TIMEOUT_NS
    file.write_text(text(WRITE))
    monkeypatch.setattr(setup, "Accept", lambda **_: Reject())
    assert main(["run", str(file), "--wire", "memory"]) == 5
    out, err = capsys.readouterr()
    assert "1 connection not made (h0 to h1: h1 refused: consumer)" in err
    assert "INCOMPLETE: 1 connection not made" in out


def test_an_open_loop_that_is_not_connected_ends_too() -> None:
    poisson = "{kind: poisson, pairs: [[h0, h1]], size: 8KiB, load: 60%, count: 50, setup: cm}"
    got = result(poisson, more="inject: [{link: h0-s0, drop: 100%, match: {qp: 1}}]")
    assert got["complete"]
    assert (got["connections"]["failed"], got["messages"]["posted"]) == (1, 0)


def test_one_that_is_broken_when_asked_again_refuses() -> None:
    assembly = Assembly(parse(text(WRITE), "setup.yaml"))
    assembly.fabric.join(None)
    here, there = (assembly.fabric.contexts[name] for name in ("h0", "h1"))
    far = there.alloc_pd().create_qp(there.create_cq())
    exchange = setup.Exchange(CmConfig())
    connect = exchange.between(here.alloc_pd().create_qp(here.create_cq()), far)
    far.modify(QPState.ERR)
    made: list[bool] = []

    async def ask() -> None:
        made.append(await connect())

    assembly.engine.spawn(ask())
    assembly.engine.run()
    assert made == [False]
