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
from tests.crash.mistakes import CASES, GOOD, PROFILE
from tests.tree import ROOT

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
