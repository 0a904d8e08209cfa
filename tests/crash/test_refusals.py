"""Every way to ask wrongly, through the command itself: exit 2, one line that names the place, nothing created."""

from __future__ import annotations

import ast
import resource
import time
from pathlib import Path

import pytest

from emu import opcodes
from emu.addresses import address_of
from emu.cli import main
from emu.frame import Frame
from emu.framing.native import NativeFraming
from emu.framing.roce import RoceFraming
from emu.lab.cables import MTU_BYTES
from emu.scenario.field import MTUS
from tests.tree import ROOT

GOOD = """\
name: good
fabric:
  profile: ./mine.yaml
  hop_latency: 300ns
  topology:
    kind: graph
    hosts: [h0, h1]
    switches: [s0]
    links:
      - {a: h0, b: 's0:1'}
      - {a: h1, b: 's0:2'}
traffic:
  - {kind: write, pairs: [[h0, h1]], size: 4KiB}
"""
PROFILE = """\
name: mine
description: mine
extends: native
fabric:
  rate: {value: 200Gbps, source: a test, kind: assumed}
"""
LEAF_SPINE = "topology: {kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 1}"
TOPOLOGY = GOOD[GOOD.index("topology:") : GOOD.index("traffic:")].rstrip()
BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
# What is asked: what is changed in GOOD into what, where the line says it is, and what else it says.
CASES = {
    "unknown key": ("hop_latency:", "hop_latenci:", ":4: fabric.hop_latenci: ", "did you mean 'hop_latency'?"),
    "unknown profile": ("./mine.yaml", "nativ", ":3: fabric.profile: unknown profile 'nativ'", "mean 'native'?"),
    "no profile file": ("./mine.yaml", "./none.yaml", ":3: fabric.profile: ", "No such file"),
    "bare number": ("300ns", "300", ":4: fabric.hop_latency: 300 has no unit", "260ns (ps, ns, us, ms, s"),
    "key twice": ("300ns", "1ns\n  hop_latency: 2ns", ":5: ", "'hop_latency' appears twice (first on line 4)"),
    "self-link": ("b: 's0:2'", "b: 'h1:2'", ":11: fabric.topology.links.1: both ends are on 'h1'", ""),
    "endpoint twice": ("'s0:2'", "'s0:1'", ":11: fabric.topology.links.1.b: 's0:1' is used twice", ""),
    "unknown node": ("'s0:2'", "'s9:2'", ":11: fabric.topology.links.1.b: unknown node 's9'", "mean 's0'?"),
    "unknown host": ("[[h0, h1]]", "[[h0, h9]]", ":13: traffic.0.pairs.0.1: unknown host 'h9'", "known: h0, h1"),
    "unreachable": (
        "[s0]\n    links:\n      - {a: h0, b: 's0:1'}",
        "[s0, s1]\n    links:\n      - {a: h0, b: s1}",
        ":7: fabric.topology.hosts.1: host 'h1' cannot reach host 'h0'",
        "",
    ),
    "no link": ("hosts: [h0, h1]", "hosts: [h0, h1, h2]", ":7: fabric.topology.hosts.2: host 'h2' has no link", ""),
    "long name": ("[s0]", "[s0, a_long_switch]", ":8: fabric.topology.switches.1: ", "15"),
    "long with its interface": (
        "[s0]\n    links:\n      - {a: h0, b: 's0:1'}\n      - {a: h1, b: 's0:2'}",
        "[switch00001]\n    links:\n      - {a: h0, b: 'switch00001:1'}\n      - {a: h1, b: 'switch00001:2'}",
        ":8: fabric.topology.switches.0: node name 'switch00001' is too long",
        "15 characters",
    ),
    "slash": ("[s0]", "[s0, a/b]", ":8: fabric.topology.switches.1: node name 'a/b'", ""),
    "space": ("[s0]", "[s0, 'a b']", ":8: fabric.topology.switches.1: node name 'a b'", ""),
    "leading dash": ("[s0]", "[s0, -a]", ":8: fabric.topology.switches.1: node name '-a'", ""),
    "no hosts": ("hosts: [h0, h1]", "hosts: []", ":7: fabric.topology.hosts: no hosts", ""),
    "zero hosts": (TOPOLOGY, LEAF_SPINE.replace("leaf: 1", "leaf: 0"), ":5: fabric.topology.hosts_per_leaf: ", "1 to"),
    "a million hosts": (
        TOPOLOGY,
        LEAF_SPINE.replace("leaf: 1", "leaf: 1000000"),
        ":5: fabric.topology.hosts_per_leaf: ",
        "49151 (each needs a unicast LID",
    ),
    "a million in all": (
        TOPOLOGY,
        LEAF_SPINE.replace("leaves: 2", "leaves: 1000").replace("leaf: 1", "leaf: 1000"),
        ":5: fabric.topology",
        "49151 (each needs a unicast LID",
    ),
    "rate 0": ("hop_latency: 300ns", "rate: 0Gbps", ":4: fabric.rate: ", "rate of zero"),
    "NaN": ("300ns", ".nan", ":4: ", "finite"),
    "NaN in words": ("300ns", "nan ns", ":4: fabric.hop_latency: ", "260ns"),
    "infinity": ("300ns", "-.inf", ":4: ", "finite"),
    "infinity in words": ("300ns", "infs", ":4: fabric.hop_latency: ", "260ns"),
    "beyond infinity": ("300ns", "1e999", ":4: ", "too big"),
    "9e99 GiB": ("4KiB", "9e99GiB", ":13: traffic.0.size: ", "between 0 and"),
    "negative": ("300ns", "-3ns", ":4: fabric.hop_latency: ", "between 0 and"),
    "path MTU": ("hop_latency: 300ns", "path_mtu: 9000B", ":4: fabric.path_mtu: ", "256B, 512B, 1KiB, 2KiB, 4KiB"),
    "path MTU 8 KiB": ("hop_latency: 300ns", "path_mtu: 8KiB", ":4: fabric.path_mtu: ", "2KiB, 4KiB"),
    "path MTU 0": ("hop_latency: 300ns", "path_mtu: 0B", ":4: fabric.path_mtu: ", "256B, 512B"),
    "tag": ("300ns", "!!python/object/apply:os.system ['touch x']", ":4: tags are not taken", ""),
    "alias bomb": (GOOD, BOMB, ":1: anchors and aliases", ""),
    "list": (GOOD, "- a\n- b\n", ":1: ", "a list at top level"),
    "empty": (GOOD, "", ": ", "empty"),
    "comments only": (GOOD, "# nothing\n", ": ", "empty"),
    "nested lists": (GOOD, "- " * 10_000 + "a", ":1: ", "nested too deep"),
    "nested braces": (GOOD, "a: " + "{b: " * 10_000, ":1: ", "nested too deep"),
    "nested in a value": ("300ns", "[" * 200 + "]" * 200, ":4: ", "nested too deep"),
    "huge": (GOOD, "a: b\n" * 300_000, ": ", "too big"),
    "two documents": (GOOD, f"{GOOD}---\n{GOOD}", ":14: ", "a file holds one"),
    "words": (GOOD, "just words", ":1: ", "at top level"),
    "half a file": (GOOD, GOOD[:-20], ":13: not YAML", ""),
}
HOP = "hop_latency: 300ns"
ROCE = "framing: rocev2\n  framing_overhead: 20B\n"
CASES |= {
    "Kmin > Kmax": (
        HOP,
        "ecn: {kmin: 2KB, kmax: 1KB, pmax: 1%}",
        ":4: fabric.ecn.kmin: 2000B lies above kmax",
        "1000B",
    ),
    "Pmax": (HOP, "ecn: {kmin: 1KB, kmax: 2KB, pmax: 101%}", ":4: fabric.ecn.pmax: '101%' is out of", "0 to 100%"),
    "alpha 0": (HOP, "alpha: 0", ":4: fabric.alpha: 0 is out of range", "above 0"),
    "alpha below 0": (HOP, "alpha: -1/8", ":4: fabric.alpha: '-1/8' is no share of 0 or more", "1/8"),
    "XON > XOFF": (HOP, "xoff: 1KB\n  xon: 2KB", ":5: fabric.xon: 2000B lies above xoff, 1000B", "0B to xoff"),
    "headroom": (
        HOP,
        "buffer: 1MB\n  headroom: 2MB",
        ":5: fabric.headroom: 2000000B is larger than the buffer",
        "1000000B",
    ),
    "one queue": (
        HOP,
        f"{ROCE}  lossless: [3, 4]\n  priority_to_queue: {{4: 3}}",
        ":6: fabric.lossless: lossless priorities 3 and 4 share queue 3",
        "a queue for each",
    ),
    "DSCP 64": (HOP, "dscp: 64", ":4: fabric.dscp: 64 is out of range", "0 to 63"),
    "CNP's DSCP 64": (HOP, "cnp: {dscp: 64}", ":4: fabric.cnp.dscp: 64 is out of range", "0 to 63"),
    "DSCP 64 in the map": (HOP, "dscp_to_priority: {64: 3}", ":4: fabric.dscp_to_priority.64: DSCP 64", "0 to 63"),
    "quanta 65536": (HOP, "pause: {quanta: 65536}", ":4: fabric.pause.quanta: 65536 is out of range", "1 to 65535"),
    "window below a frame": (
        HOP,
        "flow_control: credits\n  credit_blocks: 64",
        ":5: fabric.credit_blocks: 64 blocks of 64 bytes never let a frame",
        "65 to 2048",
    ),
    "PFC on InfiniBand": (
        HOP,
        "flow_control: pfc",
        ":4: fabric.flow_control: pfc goes with framing rocev2",
        "none, credits",
    ),
    "credits on Ethernet": (
        HOP,
        f"{ROCE}  flow_control: credits",
        ":6: fabric.flow_control: credits goes with framing native",
        "none, pfc",
    ),
    "control without marks": (
        HOP,
        "congestion_control: ib_cca",
        ":4: fabric.congestion_control: ib_cca acts on",
        "set ecn",
    ),
    "storm without PFC": (
        "{kind: write, pairs: [[h0, h1]], size: 4KiB}",
        "{kind: pause_storm, host: h0, duration: 1ms}",
        ":13: traffic.0.kind: a pause_storm takes pause frames",
        "pfc",
    ),
    "too many senders": (
        "{kind: write, pairs: [[h0, h1]], size: 4KiB}",
        "{kind: incast, senders: 2, receiver: h0, size: 1B}",
        ":13: traffic.0.senders: 2 senders; besides the receiver there are 1 hosts",
        "1 to 1",
    ),
    "no incast": (
        "{kind: write, pairs: [[h0, h1]], size: 4KiB}",
        "{kind: victim, size: 1B}",
        ":13: traffic.0: there is no incast to be a victim of",
        "give the pair",
    ),
}
OPTIONS = ("--out", "out", "--capture", "cap.pcapng")


@pytest.fixture(autouse=True)
def nothing_may_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In an empty folder; whoever comes as far as namespaces fails."""

    def too_far() -> None:
        raise AssertionError("it goes on to make namespaces")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("emu.lab.rootless.ensure_privileges", too_far)
    (tmp_path / "mine.yaml").write_text(PROFILE)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line on stderr; nothing was made."""
    before = sorted(Path().iterdir())
    assert main(["run", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("emu run: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert len(err) < 1_200
    assert sorted(Path().iterdir()) == before
    return err.removeprefix("emu run: ")


@pytest.mark.parametrize(("old", "new", "place", "part"), CASES.values(), ids=CASES)
def test_a_mistake_in_a_scenario(old: str, new: str, place: str, part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert GOOD.count(old) == 1
    Path("bad.yaml").write_text(GOOD.replace(old, new))
    line = refused(capsys, "bad.yaml", *OPTIONS)
    assert line.startswith(f"bad.yaml{place}")
    assert part in line


@pytest.mark.parametrize("spoil", [lambda data: data, lambda data: data.replace(b"\n", b"\r\n")])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_what_editors_of_other_systems_write_is_taken(spoil: object, mark: bytes) -> None:
    assert callable(spoil)
    Path("good.yaml").write_bytes(mark + spoil(GOOD.encode()))
    assert main(["run", "good.yaml", "--wire", "memory", "--quiet"]) == 0


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (GOOD.replace("good", "größe").encode("latin-1"), "bad.yaml:1: byte 0xf6 is not UTF-8"),
        (GOOD.encode("utf-16"), "is not UTF-8"),
        (b"\x80\x81", "bad.yaml:1: byte 0x80 is not UTF-8"),
        (GOOD.replace("300ns", "3\0ns").encode(), "bad.yaml:4: character 0 is not allowed"),
    ],
)
def test_a_file_that_is_no_text(data: bytes, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.yaml").write_bytes(data)
    assert said in refused(capsys, "bad.yaml", *OPTIONS)


def test_what_is_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    Path("folder.yaml").mkdir()
    Path("loop.yaml").symlink_to("loop.yaml")
    Path("dangling.yaml").symlink_to("nowhere.yaml")
    for name, said in {
        "folder.yaml": "Is a directory",
        ".": "Is a directory",
        "none.yaml": "No such file",
        "loop.yaml": "symbolic link",
        "dangling.yaml": "No such file",
        f"{'x' * 300}.yaml": "File name too long",
        "good.yaml/below.yaml": "",
    }.items():
        line = refused(capsys, name, *OPTIONS)
        assert name in line
        assert said in line


def test_a_mistake_in_a_profile_file(capsys: pytest.CaptureFixture[str]) -> None:
    Path("good.yaml").write_text(GOOD)
    for old, new, said in (
        ("rate:", "rat:", "mine.yaml:5: fabric.rat: unknown key 'rat'; did you mean 'rate'?"),
        ("200Gbps", "200", "mine.yaml:5: fabric.rate: 200 has no unit"),
        ("200Gbps", "0Gbps", "mine.yaml:5: fabric.rate: "),
        ("kind: assumed", "kind: guessed", "mine.yaml:5: fabric.rate.kind: 'guessed' is not allowed"),
        ("source: a test, ", "", "mine.yaml:5: fabric.rate.source: is missing"),
        ("extends: native", "extends: nativ", "unknown profile 'nativ'; did you mean 'native'?"),
        ("extends: native\n", "", "is missing: give it, or `extends` a profile that does"),
        ("extends: native", "extends: ./mine.yaml", "extends goes on for more than 8 profiles"),
        (PROFILE, "", "mine.yaml: "),
        (PROFILE, "- a", "mine.yaml:1: ['a'] is no mapping; its keys are: name"),
    ):
        Path("mine.yaml").write_text(PROFILE.replace(old, new))
        assert said in refused(capsys, "good.yaml", *OPTIONS), said


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("fabric.hop_latenci=3ns", "unknown key 'hop_latenci'; did you mean 'hop_latency'?"),
        ("fabric.hop_latency=3", "fabric.hop_latency: 3 has no unit"),
        ("fabric.profile=nativ", "unknown profile 'nativ'; did you mean 'native'?"),
        ("fabric.rate=0bps", "fabric.rate: "),
        ("fabric.rate=.nan", "finite"),
        ("traffic.0.size=9e99GiB", "between 0 and"),
        ("traffic.1.size=1KiB", "'1' is no place in this list; allowed: 0 to 0"),
        ("fabric.topology.links.1.b=s0:1", "is used twice"),
        ("fabric.path_mtu=16KiB", "allowed: 256B, 512B, 1KiB, 2KiB, 4KiB"),
        ("fabric.rate=&a 3", "anchors and aliases"),
        ("fabric", "write PATH=VALUE"),
        ("fabric.rate=" + "[" * 9_999, "nested too deep"),
    ],
)
def test_a_mistake_in_a_setting(setting: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("good.yaml").write_text(GOOD)
    line = refused(capsys, "good.yaml", "--set", setting, *OPTIONS)
    assert line.startswith(f"--set {setting[:20]}")
    assert said in line


def test_what_exists_is_not_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    Path("good.yaml").write_text(GOOD)
    Path("out").mkdir()
    Path("cap.pcapng").write_text("mine")
    memory = ("good.yaml", "--wire", "memory")
    assert "out exists already; --force overwrites it" in refused(capsys, *memory, "--out", "out")
    assert "cap.pcapng exists already; --force overwrites it" in refused(capsys, *memory, "--capture", "cap.pcapng")
    assert Path("cap.pcapng").read_text() == "mine"
    assert list(Path("out").iterdir()) == []


def test_what_is_too_much_is_refused_in_little_time_and_memory(capsys: pytest.CaptureFixture[str]) -> None:
    before_kib, began_s = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    for case in ("alias bomb", "a million hosts", "a million in all", "huge", "nested lists", "9e99 GiB"):
        old, new, _, _ = CASES[case]
        Path("bad.yaml").write_text(GOOD.replace(old, new))
        refused(capsys, "bad.yaml", *OPTIONS)
    assert time.process_time() - began_s < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 64 * 1024


@pytest.mark.parametrize("framing", [RoceFraming, NativeFraming])
def test_every_path_mtu_that_is_allowed_fits_a_link(framing: type[RoceFraming | NativeFraming]) -> None:
    here, there = address_of("h0", 0), address_of("h1", 1)
    made = framing(20)
    envelope = made.envelope(here, there, source_qp=1, destination_qp=2, priority=0, tos=0)
    frame = Frame(envelope, opcodes.WRITE_ONLY, 0, bytes(max(MTUS)), reth=(0, 0, max(MTUS)))
    assert max(MTUS) < len(made.encode(frame)) - 14 <= MTU_BYTES  # without the Ethernet header


def test_nothing_is_evaluated() -> None:
    """No `eval`, `exec`, `compile` or pickle in what we ship."""
    banned = {"eval", "exec", "compile", "__import__"}
    for folder in ("emu", "topologies", "traffic"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    assert node.func.id not in banned, f"{path}:{node.lineno}"
                if isinstance(node, ast.Import):
                    assert not {alias.name for alias in node.names} & {"pickle", "marshal"}, f"{path}:{node.lineno}"
