"""Every way to write a scenario wrongly: one line that names the place, the key and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.errors import ScenarioError
from emu.scenario.load import build, load, parse

GOOD = """\
name: good
fabric:
  profile: native
  topology: {kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 1}
  rate: 400Gbps
traffic:
  - {kind: write, pairs: [[h0, h1]], size: 4KiB}
"""


def message(text: str, settings: list[str] | None = None) -> str:
    """What is wrong with it, in one line."""
    with pytest.raises(ScenarioError) as caught:
        parse(text, "bad.yaml", settings or [])
    line = str(caught.value)
    assert line
    assert "\n" not in line
    assert len(line) < 1100
    return line


def test_the_good_ones_are_good() -> None:
    assert parse(GOOD).name == "good"


@pytest.mark.parametrize(
    ("old", "new", "start", "part"),
    [
        (
            "rate: 400Gbps",
            "hop_latency: 260",
            "bad.yaml:5: fabric.hop_latency: 260 has no unit: a time is",
            "260ns (ps, ns",
        ),
        (
            "rate: 400Gbps",
            "hop_latenci: 3ns",
            "bad.yaml:5: fabric.hop_latenci: unknown key",
            "did you mean 'hop_latency'?",
        ),
        ("rate: 400Gbps", "rate: 0Gbps", "bad.yaml:5: fabric.rate: ", "rate of zero"),
        ("rate: 400Gbps", "rate: .nan", "bad.yaml:5: ", "finite"),
        ("rate: 400Gbps", "rate: -.inf", "bad.yaml:5: ", "finite"),
        ("rate: 400Gbps", "rate: 1e999", "bad.yaml:5: ", "too big"),
        ("rate: 400Gbps", "rate: NaN", "bad.yaml:5: fabric.rate: ", "400Gbps"),
        ("rate: 400Gbps", "rate: -3Gbps", "bad.yaml:5: fabric.rate: ", "between 0 and"),
        ("rate: 400Gbps", "rate: 400Gbs", "bad.yaml:5: fabric.rate: ", "known: bps, Kbps"),
        ("rate: 400Gbps", "rate: [400Gbps]", "bad.yaml:5: fabric.rate: ", "400Gbps"),
        ("rate: 400Gbps", "rate:", "bad.yaml:5: fabric.rate: ", "400Gbps"),
        ("rate: 400Gbps", "rate: " + "9" * 99999, "bad.yaml:5: ", "at most 200"),
        ("rate: 400Gbps", "rate: " + "9" * 9999 + "Gbps", "bad.yaml:5: fabric.rate: ", "too long"),
        ("rate: 400Gbps", "path_mtu: 9000B", "bad.yaml:5: fabric.path_mtu: ", "256B, 512B, 1KiB, 2KiB, 4KiB"),
        ("rate: 400Gbps", "propagation: 5ns", "bad.yaml:5: fabric.propagation: ", "5ns/m"),
        ("rate: 400Gbps", "switching: cutthrough", "bad.yaml:5: fabric.switching: ", "cut_through, store_and_forward"),
        ("rate: 400Gbps", "priority: 15", "bad.yaml:5: fabric.priority: ", "0 to 14"),
        ("rate: 400Gbps", "priority: 3.0", "bad.yaml:5: fabric.priority: ", "whole number"),
        ("rate: 400Gbps", "priority: true", "bad.yaml:5: fabric.priority: ", "whole number"),
        ("rate: 400Gbps", "rate: 1Gbps\n  rate: 2Gbps", "bad.yaml:6: ", "'rate' appears twice (first on line 5)"),
        ("rate: 400Gbps", "rate: &a 1Gbps", "bad.yaml:5: anchors and aliases", ""),
        ("rate: 400Gbps", "rate: !!python/object:os.system x", "bad.yaml:5: tags are not taken", ""),
        ("rate: 400Gbps", "? [a, b]\n  : 3", "bad.yaml:5: a key is a word", ""),
        ("rate: 400Gbps", "<<: {a: 1}", "bad.yaml:5: fabric.<<: unknown key", ""),
        ("rate: 400Gbps", "\trate: 3Gbps", "bad.yaml:5: not YAML", ""),
        ("rate: 400Gbps", "rate: 3Gbps\n---\nname: b", "bad.yaml:6: ", "a file holds one"),
        (
            "profile: native",
            "profile: nativ",
            "bad.yaml:3: fabric.profile: unknown profile 'nativ'",
            "did you mean 'native'",
        ),
        ("profile: native", "profile: ./none.yaml", "bad.yaml:3: fabric.profile: ", "No such file"),
        ("  profile: native\n", "", "bad.yaml:2: fabric.profile: is missing", "native, ndr, roce"),
        ("leaves: 2", "leaves: 0", "bad.yaml:4: fabric.topology.leaves: ", "1 to"),
        ("hosts_per_leaf: 1", "hosts_per_leaf: 0", "bad.yaml:4: fabric.topology.hosts_per_leaf: ", "1 to"),
        (
            "hosts_per_leaf: 1",
            "hosts_per_leaf: 1000000",
            "bad.yaml:4: fabric.topology.hosts_per_leaf: ",
            "49151 (each needs a unicast LID",
        ),
        (
            "leaves: 2",
            "leaves: 99999",
            "bad.yaml:4: fabric.topology.leaves: 99999",
            "10000 (each needs a network namespace",
        ),
        (
            "kind: leaf_spine",
            "kind: leafspine",
            "bad.yaml:4: fabric.topology.kind: unknown kind",
            "did you mean 'leaf_spine'",
        ),
        (
            "kind: leaf_spine",
            "kind: ring",
            "bad.yaml:4: fabric.topology.kind: unknown kind",
            "did you mean 'rail' (not yet)? known: leaf_spine, line, graph",
        ),
        (
            "rate: 400Gbps",
            "allow_reorderin: true",
            "bad.yaml:5: fabric.allow_reorderin: unknown key",
            "mean 'allow_reordering' (not yet)? known: rate,",
        ),
        ("kind: leaf_spine", "kind: fat_tree", "bad.yaml:4: fabric.topology.kind: not yet", "leaf_spine, line, graph"),
        ("kind: leaf_spine, ", "", "bad.yaml:4: fabric.topology: kind is missing", "leaf_spine, line, graph"),
        ("spines: 1, ", "", "bad.yaml:4: fabric.topology.spines: is missing", ""),
        ("kind: write", "kind: wriet", "bad.yaml:7: traffic.0.kind: unknown kind", "did you mean 'write'"),
        ("kind: write", "kind: incst", "bad.yaml:7: traffic.0.kind: unknown kind", "did you mean 'incast'"),
        ("size: 4KiB", "size: 4KiB, op: reed", "bad.yaml:7: traffic.0.op: ", "write, read, send"),
        ("size: 4KiB", "size: 4KiB, op: fetch_add", "bad.yaml:7: traffic.0.size: ", "allowed: 8B"),
        ("size: 4KiB", "size: 9e99GiB", "bad.yaml:7: traffic.0.size: ", "between 0 and"),
        ("size: 4KiB", "size: 3GiB", "bad.yaml:7: traffic.0.size: ", "at most 2GiB"),
        ("size: 4KiB", "size: 4KiB, count: 0", "bad.yaml:7: traffic.0.count: ", "1 to"),
        ("[[h0, h1]]", "[[h0, h0]]", "bad.yaml:7: traffic.0.pairs.0: ", "two different hosts"),
        ("[[h0, h1]]", "[[h0, h7]]", "bad.yaml:7: traffic.0.pairs.0.1: unknown host 'h7'", "known: h0, h1"),
        ("[[h0, h1]]", "[[h0, leaf0]]", "bad.yaml:7: traffic.0.pairs.0.1: unknown host", ""),
        ("[[h0, h1]]", "[[h0]]", "bad.yaml:7: traffic.0.pairs.0: ", "[h0, h1]"),
        ("[[h0, h1]]", "[]", "bad.yaml:7: traffic.0.pairs: ", "[[h0, h1]]"),
        ("[[h0, h1]]", "[[h0, 1]]", "bad.yaml:7: traffic.0.pairs.0.1: ", "in quotes"),
        ("traffic:\n  - ", "traffic: ", "bad.yaml:6: traffic: ", "list"),
        ("name: good\n", "", "bad.yaml:1: name: is missing", ""),
        ("name: good", "name: ''", "bad.yaml:1: name: ", "printable"),
    ],
)
def test_a_mistake_is_named_where_it_is(old: str, new: str, start: str, part: str) -> None:
    assert old in GOOD
    line = message(GOOD.replace(old, new))
    assert line.startswith(start)
    assert part in line


@pytest.mark.parametrize(
    ("added", "start"),
    [
        ("faults: [{at: 1us}]", "bad.yaml:8: faults: not yet"),
        ("inject: [{drop: 1%}]", "bad.yaml:8: inject.0.link: is missing"),
        (
            "capture: [h0-leaf1]",
            "bad.yaml:8: capture.0: unknown link 'h0-leaf1'; did you mean 'h1-leaf1'? known:",
        ),
        ("capture: [leaf0-h0, x]", "bad.yaml:8: capture.1: unknown link 'x'; known: leaf0-h0, leaf1-h1, leaf0-spine0"),
        ("capture: [leaf0-h0#2]", "bad.yaml:8: capture.0: unknown link 'leaf0-h0#2'; did you mean 'leaf0-h0'?"),
        ("capture: every", "bad.yaml:8: capture: 'every' is no list of links: write [leaf0-h0], or all"),
        ("capture: {leaf0: h0}", "bad.yaml:8: capture: {'leaf0': 'h0'} is no list of links"),
        ("capture: [3]", "bad.yaml:8: capture.0: 3 is no link's name"),
        ("capture: [['leaf0-h0']]", "bad.yaml:8: capture.0: ['leaf0-h0'] is no link's name"),
        ("capture:", "bad.yaml:8: capture: None is no list of links"),
        ("host: {path: dma}", "bad.yaml:8: host.path: 'dma' is not allowed"),
        ("host: {gpu_direct: yes}", "bad.yaml:8: host.gpu_direct: 'yes' is neither true nor false"),
        ("host: {pcie: {}}", "bad.yaml:8: host.pcie: acts on the way to the NIC, and path is none; set path to ibgda,"),
        ("host: {gpu_direct: false}", "bad.yaml:8: host.gpu_direct: acts on the way to the NIC, and path is none"),
        (
            "host: {nic: {message_rate: 3M/s}}",
            "bad.yaml:8: host.nic.message_rate: acts on the way to the NIC, and path",
        ),
        (
            "host: {path: ibgda, pcie: {mps: 300B}}",
            "bad.yaml:8: host.pcie.mps: '300B' is not allowed; allowed: 128B, 256B",
        ),
        ("host: {path: ibgda, pcie: {mrrs: 8KiB}}", "bad.yaml:8: host.pcie.mrrs: '8KiB' is not allowed; allowed: 128B"),
        (
            "host: {path: ibgda, pcie: {width: 3}}",
            "bad.yaml:8: host.pcie.width: 3 is no width of a PCIe link; allowed: 1, 2",
        ),
        (
            "host: {path: ibgda, pcie: {wire: tape}}",
            "bad.yaml:8: host.pcie.wire: 'tape' is not allowed; allowed: memory",
        ),
        ("host: {path: ibgda, gpu: {warps: 0}}", "bad.yaml:8: host.gpu.warps: 0 is out of range; allowed: 1 to 65536"),
        ("host: {path: ibgda, queues: {qp_depth: 1000}}", "bad.yaml:8: host.queues.qp_depth: 1000 is no power of two"),
        (
            "host: {path: ibgda, queues: {num_requests_in_batch: 2048}}",
            "bad.yaml:8: host.queues.num_requests_in_batch: 2048: a doorbell's batch is at most qp_depth, 1024",
        ),
        ("host: {path: ibgda, queues: {deep: 3}}", "bad.yaml:8: host.queues.deep: unknown key 'deep'"),
        ("host: {path: ibgda, nic: {message_rate: 3}}", "bad.yaml:8: host.nic.message_rate: 3 has no unit"),
        ("host: {nic: {retry_cnt: 8}}", "bad.yaml:8: host.nic.retry_cnt: 8 is out of range; allowed: 0 to 7"),
        ("host: {nic: {window_packets: 8}}", "bad.yaml:8: host.nic.ack_every_packets: 64: at most window_packets"),
        ("host: none", "bad.yaml:8: host: 'none' is no mapping"),
        ("run: {seed: -1}", "bad.yaml:8: run.seed: -1 is out of range"),
        ("run: {until: 3}", "bad.yaml:8: run.until: 3 has no unit"),
        ("runn: {}", "bad.yaml:8: runn: unknown key 'runn'; did you mean 'run'?"),
        ("provenance: {}", "bad.yaml:8: provenance: unknown key"),
        ("_provenance: {}", "bad.yaml:8: _provenance: unknown key"),
        ("expect: [drops.lossless]", "bad.yaml:8: expect.0: 'drops.lossless' is no expectation"),
        ("expect:\n  - a == 0\n  - messages.latency_ns.p99 < 3", "bad.yaml:10: expect.1: '3' has no unit"),
        ("expect: [3]", "bad.yaml:8: expect.0: 3 is no expectation"),
        ("expect: a == 0", "bad.yaml:8: expect: 'a == 0' is no list"),
    ],
)
def test_a_key_too_many_or_too_early(added: str, start: str) -> None:
    assert message(GOOD + added + "\n").startswith(start)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "empty"),
        ("# nothing\n", "empty"),
        ("- a\n- b\n", "a list at top level"),
        ("just words", "at top level"),
        ("a: &x [1]\nb: *x", "anchors"),
        ("a: *x", "anchors"),
        ("a: [1, 2", "not YAML"),
        ("a: \x00", "not allowed"),
        ("a: \ud800", "not allowed"),
        ("a: " + "[" * 10_000, "nested too deep"),
        ("a: " + "{b: " * 10_000, "nested too deep"),
        ("- " * 10_000 + "a", "nested too deep"),
        ("a: b\n" * 300_000, "too big"),
        ("%YAML 9.9\n---\na: b", "not YAML"),
    ],
)
def test_what_is_no_scenario_at_all(text: str, part: str) -> None:
    assert part in message(text)


def test_an_alias_bomb_is_refused_at_once() -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
    assert message(bomb).startswith("bad.yaml:1: anchors and aliases")


def test_sizes_that_cannot_be_built_say_why() -> None:
    assert "49151 (each needs a unicast LID" in message(
        GOOD, ["fabric.topology.leaves=1000", "fabric.topology.hosts_per_leaf=1000"]
    )
    assert "links: at most 100000 (each" in message(
        GOOD, ["fabric.topology.leaves=5000", "fabric.topology.spines=5000"]
    )


@pytest.mark.parametrize(
    ("data", "part"),
    [
        ("name: é".encode("latin-1"), "bad.yaml:1: byte 0xe9 is not UTF-8"),
        ("name: a".encode("utf-16"), "is not UTF-8"),
        (b"\x80", "is not UTF-8"),
        (b"a" * (2**20 + 1), "too big"),
    ],
)
def test_files_that_are_no_text(tmp_path: Path, data: bytes, part: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_bytes(data)
    with pytest.raises(ScenarioError) as caught:
        load(path)
    assert part in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.yaml", tmp_path / ("x" * 300 + ".yaml"), Path("a\0b.yaml")):
        with pytest.raises(ScenarioError):
            load(path)


def test_a_mapping_from_a_program_is_checked_as_well() -> None:
    with pytest.raises(ScenarioError, match="fabric.rate"):
        build({"name": "x", "fabric": {"profile": "native", "rate": float("nan")}, "traffic": []})
    with pytest.raises(ScenarioError, match="unknown key 3"):
        build({"name": "x", 3: 4})  # type: ignore[dict-item]
