"""`emu topo` as text, as DOT and as containerlab's YAML: what a reader is told, and what other programs read."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import Any

import pytest
import yaml

from emu.report.export import containerlab, dot
from emu.report.topo import topo_text
from tests.harness.test_topo import LINE, facts, ring

FULL = {"flow_control": "pfc", "headroom": "8348B"}


def lines(**values: Any) -> list[str]:
    return topo_text(facts(**values)).splitlines()


def one(found: list[str], beginning: str) -> str:
    (line,) = [line.strip() for line in found if line.strip().startswith(beginning)]
    return line


def test_what_a_roce_fabric_says() -> None:
    found = lines(profile="roce", topology=LINE, rate="100Gbps", **FULL)
    assert one(found, "2 hosts") == "2 hosts: h0 h1"
    assert one(found, "frames:") == "frames: rocev2, at most 4,174 B, 4,194 B on the wire"
    assert one(found, "2 pairs") == (
        "2 pairs of source and destination, 1 switch apart, 2 paths in use (multipath ecmp)"
    )
    assert one(found, "h0-s0: D") == "h0-s0: D = 335.52 + 6.72 + 2 x 15 + 0 = 372.24 ns, N = ceil(372.24 / 335.52) = 2"
    assert one(found, "vendor: ") == "vendor: 4,194 + (4,194 + 378.8 + 800 + 25,216) x 2.25, in whole KiB: 73,728 B"
    assert one(found, "a pause frame") == (
        "a pause frame pauses for 335.5 us; while XOFF lasts, the next follows after 335.2 us"
    )
    assert not any("WARNING" in line for line in found)
    assert one(found, "note: h0-s0").endswith("less than mixed: frames of several sizes can be more than it holds")
    assert found[-1].startswith("no cyclic buffer dependency: cannot deadlock (NICs")


def test_headroom_that_is_too_small_is_loud() -> None:
    found = lines(profile="roce", topology=LINE, flow_control="pfc", headroom="8347B")
    assert one(found, "WARNING") == "WARNING: h0-s0: 1 B less than tight: a lossless frame can be DROPPED"
    for headroom in ("mixed", "vendor"):
        found = lines(profile="roce", flow_control="pfc", headroom=headroom)
        assert not any("WARNING" in line or "less than mixed" in line for line in found)


def test_switches_that_are_alike_are_one_line() -> None:
    found = lines(profile="roce", headroom="10KB", flow_control="pfc")
    words = one(found, "leaf0 and").split()  # spines have four ports, too
    assert " ".join(words) == "leaf0 and 5 others 4 67,108,864 40,000 67,068,864 7,452,096"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"xoff": "3MB"}, "note: Kmax lies above XOFF, 2.861MiB where one port fills a queue: PFC fires before ECN"),
        (
            {"xoff": "700KB"},
            "note: Kmin is not below XOFF, 683.6KiB where one port fills a queue: PFC fires before ECN",
        ),
        ({}, "Kmax lies below XOFF, 7.0"),
    ],
)
def test_ecn_beside_pfc(values: dict[str, str], said: str) -> None:
    assert any(line.strip().startswith(said) for line in lines(profile="roce", flow_control="pfc", **values))


def test_what_credits_let_through() -> None:
    found = lines(topology=LINE, flow_control="credits", credit_blocks=200)
    words = one(found, "h0-s0 (into a switch)").split()
    assert " ".join(words) == "h0-s0 (into a switch) 2 400Gbps 3 m 373.2 ns 325 456.1 ns 519 no"
    assert one(found, "h0-s0: min") == (
        "h0-s0: min(line, frames of a window / round trip) = 145.435Gbps (36.4 %) to 266.624Gbps (66.7 %)"
    )
    far = lines(topology=LINE, flow_control="credits", host_cable="2km")
    assert "no window does" in one(far, "h0-s0: no")


def test_a_deadlock_is_named_link_by_link() -> None:
    found = lines(topology=ring(5), flow_control="credits")
    around = "s0-s1 waits for s1-s2, which waits for s2-s3, which waits for s3-s4, which waits for s4-s0"
    assert one(found, "DEADLOCK") == f"DEADLOCK POSSIBLE: {around}, which waits for s0-s1"
    unbound = lines(topology=ring(5), flow_control="none")
    assert not any(line.startswith("DEADLOCK") for line in unbound)
    assert "With credits or PFC it could" in one(unbound, "cannot deadlock")


def test_a_long_list_of_links_is_cut() -> None:
    found = lines(topology={"kind": "line", "switches": 60})
    assert one(found, "and 21 links more") == "and 21 links more: --json lists all"
    assert one(found, "60 switches") == "60 switches: s0 s1 s2 s3 ... s58 s59"


ODD = {
    "kind": "graph",
    "hosts": ["1", "no"],
    "switches": ["null", "a.b-c"],
    "links": [{"a": "1", "b": "null:7"}, {"a": "no", "b": "a.b-c"}, {"a": "null", "b": "a.b-c", "rate": "25Gbps"}],
}


def test_containerlab_reads_back() -> None:
    found = yaml.safe_load(containerlab({**facts(topology=ODD), "name": 'odd: "name" \\ \u2603'}))
    assert found["name"] == "odd-name"
    nodes = found["topology"]["nodes"]
    assert list(nodes) == ["1", "no", "null", "a.b-c"]
    assert {(node["kind"], node["group"]) for node in nodes.values()} == {("linux", "host"), ("linux", "switch")}
    assert [link["endpoints"] for link in found["topology"]["links"]] == [
        ["1:eth1", "null:eth7"],
        ["no:eth1", "a.b-c:eth1"],
        ["null:eth1", "a.b-c:eth2"],
    ]


def test_dot_names_every_node_and_link() -> None:
    text = dot({**facts(topology=ODD), "name": 'say "hi" \\'})
    assert text.startswith('graph "say \\"hi\\" \\\\" {')
    assert re.findall(r"^  (\S+) \[shape=(\w+)\];$", text, re.MULTILINE) == [
        ('"1"', "ellipse"),
        ('"no"', "ellipse"),
        ('"null"', "box"),
        ('"a.b-c"', "box"),
    ]
    assert '  "null" -- "a.b-c" [label="25Gbps 5m"];' in text.splitlines()
    program = shutil.which("dot")
    if program is not None:
        subprocess.run([program, "-Tsvg"], input=text.encode(), stdout=subprocess.DEVNULL, check=True)
