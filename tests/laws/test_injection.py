"""Whatever is injected into whatever run: it ends within a bound, its books add up, and each message is done once.

The bound: while anything is outstanding a timer runs, which gives up after `retry_cnt` tries without progress. So no
queue pair goes on for longer than that, and what pacing, waits for receives and connecting take, for each packet.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emu.engine import Engine
from emu.frame import Message
from emu.measure.measurement import Measurement
from emu.run import Options, run
from emu.scenario.inject import OPERATIONS
from emu.scenario.load import parse
from emu.scenario.posting import ATOMIC_OPS, OPS
from emu.transport.requester_config import ACK_TIMEOUT_UNIT_PS
from emu.units import MS

EVENTS_LIMIT = 3_000_000  # a run here has some hundreds, or tens of thousands where all is lost again and again
MTU_BYTES = 1024
CM = {"cm_timeout_code": 6, "cm_retries": 2}
CM_PS = 3 * 2 * (ACK_TIMEOUT_UNIT_PS << 6)  # to connect or to give up, by both sides
BESIDES_PS = 2 * MS  # a packet: waiting for a receive, or sent at a rate that congestion control has cut down
KINDS_OF = {"pfc": ("data", "ack", "pfc"), "credits": ("data", "ack", "fcp"), "none": ("data", "ack")}
RATES = st.sampled_from(["0.1%", "1%", "5%", "30%", "100%", "1/3"])
DELAYS = st.sampled_from(["1ps", "100ns", "3us", "40us", "1ms"])


@st.composite
def fabrics(draw: st.DrawFn) -> dict[str, Any]:
    """Native and RoCEv2, with each flow control that there is."""
    profile = draw(st.sampled_from(["native", "roce"]))
    lossless = "credits" if profile == "native" else "pfc"
    fabric: dict[str, Any] = {
        "profile": profile,
        "path_mtu": f"{MTU_BYTES}B",
        "flow_control": draw(st.sampled_from(["none", lossless])),
        "switching": draw(st.sampled_from(["cut_through", "store_and_forward"])),
        "topology": draw(
            st.sampled_from(
                [
                    {"kind": "line", "switches": 1},
                    {"kind": "line", "switches": 3},
                    {"kind": "leaf_spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2},
                ]
            )
        ),
    }
    if fabric["flow_control"] == "credits":
        refresh = draw(st.sampled_from(["5243ns", "900ns", "never"]))
        fabric["credit_blocks"] = draw(st.sampled_from([20, 80, 2048]))
        fabric["credits"] = {"threshold": draw(st.sampled_from([1, 256])), "refresh": refresh, "fcp_wire_bytes": "14B"}
    elif fabric["flow_control"] == "pfc":
        fabric |= {"xoff": draw(st.sampled_from(["5KB", "20KB"])), "buffer": "1MiB"}
    if profile == "roce":
        fabric["congestion_control"] = draw(st.sampled_from(["none", "dcqcn"]))
    return fabric


@st.composite
def kinds_of_traffic(draw: st.DrawFn, hosts: int, flow_control: str) -> dict[str, Any]:
    """One of them, a few messages."""
    last = f"h{hosts - 1}"
    kinds = ["write", "all_to_all", "incast", "permutation", "poisson"]
    kind = draw(st.sampled_from([*kinds, "pause_storm"] if flow_control == "pfc" else kinds))
    if kind == "pause_storm":
        return {"kind": kind, "host": last, "start": "2us", "duration": draw(st.sampled_from(["3us", "1ms"]))}
    made: dict[str, Any] = {"kind": kind, "op": draw(st.sampled_from(OPS)), "setup": "direct"}
    if draw(st.integers(0, 5)) == 0:
        made["setup"] = "cm"
    made["size"] = "8B" if made["op"] in ATOMIC_OPS else draw(st.sampled_from(["1B", "1KiB", "1025B", "9001B", "30KB"]))
    made |= {"count": draw(st.integers(1, 4)), "qps": draw(st.integers(1, 3))}
    if kind in ("write", "poisson"):
        made["pairs"] = draw(st.sampled_from([[["h0", last]], [["h0", last], [last, "h0"]]]))
    if kind == "incast":
        made |= {"senders": hosts - 1, "receiver": last}
    if kind == "poisson":
        made["load"] = draw(st.sampled_from(["10%", "100%"]))
    elif kind != "all_to_all":
        made["depth"] = draw(st.sampled_from([1, 4, 16]))
    return made


@st.composite
def rules(draw: st.DrawFn, flow_control: str, congestion_control: str, links: list[str]) -> dict[str, Any]:
    """One rule: which link and frames, and what befalls them."""
    match: dict[str, Any] = {}
    kinds = (*KINDS_OF[flow_control], *(("cnp",) if congestion_control == "dcqcn" else ()))
    which = draw(st.sampled_from(["any", "kind", "opcode", "qp"]))
    if which == "kind":
        match["kind"] = draw(st.sampled_from(kinds))
    elif which == "opcode":
        match["opcode"] = draw(st.sampled_from(list(OPERATIONS)))
    elif which == "qp":
        match["qp"] = draw(st.integers(17, 19))
    pattern = draw(st.sampled_from(["", "", "nth", "every"]))
    if pattern:
        match[pattern] = draw(st.integers(1, 6) if pattern == "every" else st.lists(st.integers(1, 9), min_size=1))
    effects = ["drop", "duplicate", "corrupt", "delay", "reorder"]
    if match.get("kind") in ("pfc", "fcp"):
        effects.remove("reorder")  # a link's own frames keep their order
    chosen = draw(st.lists(st.sampled_from(effects), min_size=1, max_size=3, unique=True))
    rule: dict[str, Any] = {each: draw(DELAYS if each == "delay" else RATES) for each in chosen}
    link = draw(st.sampled_from(["all", *links]))
    if link != "all" and draw(st.booleans()):
        rule["direction"] = link
    return {"link": link, **rule, **({"match": match} if match else {})}


@st.composite
def scenarios(draw: st.DrawFn) -> dict[str, Any]:
    """All of it."""
    fabric = draw(fabrics())
    is_line = fabric["topology"]["kind"] == "line"
    hosts, links = (2, ["h0-s0", "s0-h0"]) if is_line else (4, ["h0-leaf0", "leaf0-spine0", "spine1-leaf1", "leaf1-h3"])
    control, congestion = fabric["flow_control"], fabric.get("congestion_control", "none")
    nic = {
        "ack_timeout_code": draw(st.sampled_from([1, 3, 6])),
        "retry_cnt": draw(st.integers(0, 7)),
        "loss_recovery": draw(st.sampled_from(["go_back_n", "selective_repeat"])),
        "window_packets": draw(st.sampled_from([8, 64])),
        "ack_every_packets": draw(st.sampled_from([1, 8])),
        **CM,
    }
    inject = draw(st.lists(rules(control, congestion, links), min_size=1, max_size=4))
    # Two copies of all on each of four links, and answers to all copies copied likewise: millions, and rightly so.
    for rule in [each for each in inject if each["link"] == "all" and "duplicate" in each][1:]:
        rule["duplicate"] = "5%"
    return {
        "name": "any injection",
        "fabric": fabric,
        "host": {"path": draw(st.sampled_from(["none", "none", "ibgda", "cpu_proxy", "cpu_sync"])), "nic": nic},
        "traffic": draw(st.lists(kinds_of_traffic(hosts, control), min_size=1, max_size=2)),
        "inject": inject,
        "run": {"seed": draw(st.integers(0, 10**6))},
    }


def bound_ps(made: dict[str, Any]) -> int:
    """When the run is over at the latest: all packets one after the other, each in the last moment."""
    nic = made["host"]["nic"]
    hosts = 2 if made["fabric"]["topology"]["kind"] == "line" else 4
    messages = sum(each.get("count", 0) * each.get("qps", 1) * hosts * hosts for each in made["traffic"])
    packets: int = messages * 32  # of at most 30 KB
    patience_ps: int = (nic["retry_cnt"] + 1) * (ACK_TIMEOUT_UNIT_PS << nic["ack_timeout_code"])
    connecting_ps = CM_PS * hosts * hosts * 6  # of three queue pairs a pair of hosts and kind, one after the other
    return connecting_ps + packets * (patience_ps + BESIDES_PS) + 10 * MS


def held(made: dict[str, Any]) -> dict[str, Any]:
    """The result of that run, which kept the law."""
    told: list[Message] = []

    def look(engine: Engine, _: Measurement) -> None:
        assert engine.events_run < EVENTS_LIMIT
        assert engine.now_ps < bound_ps(made)

    result = run(parse(json.dumps(made), "law.yaml"), Options(wire="memory", on_message=told.append, on_progress=look))
    messages = result["messages"]
    assert messages["posted"] == messages["completed"] + messages["failed"] == len(told) == len(set(told))
    by_flow: dict[Any, list[Message]] = defaultdict(list)
    for message in told:
        by_flow[message.flow].append(message)
    for those in by_flow.values():
        those.sort(key=lambda message: message.number)
        assert [message.number for message in those] == list(range(len(those)))
        times = [message.completed_ps for message in those]
        assert times == sorted(times)
        statuses = [message.status for message in those]
        done = statuses.count("SUCCESS")
        rest = len(statuses) - done
        assert statuses == ["SUCCESS"] * done + (["RETRY_EXC_ERR"] + ["WR_FLUSH_ERR"] * (rest - 1) if rest else [])
        assert all(message.delivered_ps > 0 for message in those[:done])
    return result


MANY = settings(suppress_health_check=[HealthCheck.too_slow], max_examples=60)


@MANY
@given(scenarios())
def test_any_injection_ends_with_its_books_in_order(made: dict[str, Any]) -> None:
    held(made)


@pytest.mark.long
@settings(MANY, max_examples=3000)
@given(scenarios())
def test_many_injections(made: dict[str, Any]) -> None:
    held(made)
