"""`emu decode` and `emu run --capture`: what is printed, written and refused."""

from __future__ import annotations

import io
import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from emu.capture import Record, read
from emu.cli import main
from tests.capture import files
from tests.golden_frames import SAMPLE_LOCAL, vectors

MEMORY = ("--wire", "memory", "--quiet")
PLAIN = (*MEMORY, "--set", "fabric.flow_control=none")  # no frames but the message's and its ACK's


def decode(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["decode", *arguments, "--json"]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """All links of a run of `hello`."""
    assert main(["run", "hello", *PLAIN, "--capture", str(tmp_path / "hello.pcapng")]) == 0
    return tmp_path / "hello.pcapng"


def test_json_has_the_keys_that_scripts_rely_on(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = decode(capsys, str(capture), "--frames")
    assert (result["frames"], result["rdma_frames"], result["format"], result["complete"]) == (8, 8, "pcapng", True)
    assert result["icrc"] == result["vcrc"] == {"ok": 8, "bad": 0, "unchecked": 0}
    assert len(result["flows"]) == len(result["rows"]) == 8
    assert result["rows"][0]["headers"]["reth"]["dma_length"] == 4096
    assert [row["number"] for row in result["rows"]] == list(range(1, 9))
    assert "rows" not in decode(capsys, str(capture))


def test_the_text_shows_what_a_person_asks(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decode", str(capture), "--frames"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{capture}: pcapng, 8 frames, 8 interfaces, 2.187 us"
    assert lines[1:4] == ["  native 8", "  ICRC: 8 ok", "  VCRC: 8 ok"]
    assert any("RC RDMA Write Only QP 0x11 PSN 0, 4096 B to 0x7f0000000000" in line for line in lines)
    assert any(line.split()[:3] == ["1", "h0-leaf0", "LID"] and line.endswith("2.187 us") for line in lines)


@pytest.mark.parametrize("limit", [0, 3, 99])
def test_a_limit_shortens_lists_and_no_count(limit: int, capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = decode(capsys, str(capture), "--frames", "--limit", str(limit))
    assert result["frames"] == 8
    assert len(result["rows"]) == min(limit, 8)
    assert len(result["messages"]) == min(limit, 4)
    assert result["left_out"] == {
        "frames_of_further_interfaces": 0,
        "frames_of_further_flows": 0,
        "messages": 4 - min(limit, 4),
        "rows": 8 - min(limit, 8),
    }


@pytest.mark.parametrize("limit", ["-1", "x", "9" * 20, "1.5"])
def test_a_limit_that_is_none(limit: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decode", "x", "--limit", limit]) == 2
    assert "is no limit: a whole number from 0 on" in capsys.readouterr().err


def test_what_is_no_capture_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("no capture at all, but text\n" * 9)
    for path in (tmp_path / "text", tmp_path / "none", tmp_path):
        for more in ([], ["--json"]):
            assert main(["decode", str(path), *more]) == 2
            out, err = capsys.readouterr()
            assert out == ""
            assert err.startswith(f"emu decode: {path}: ")
            assert err.count("\n") == 1


def test_damage_in_the_middle_shows_what_came_before(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capture.write_bytes(capture.read_bytes() + bytes(12))
    assert main(["decode", str(capture), "--json"]) == 2
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert (result["frames"], result["complete"]) == (8, False)
    assert result["warnings"][0].endswith("a block of 0 B; all before it was read")
    assert err == f"emu: {result['warnings'][0].partition(';')[0]}\n"


def test_a_cut_tail_is_a_warning(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capture.write_bytes(capture.read_bytes()[:-1])
    result = decode(capsys, str(capture))
    assert (result["frames"], result["complete"], len(result["warnings"])) == (7, False, 1)
    assert main(["decode", str(capture)]) == 0
    assert "warning: " in capsys.readouterr().out


def test_stdin(capture: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(capture.read_bytes())))
    assert decode(capsys, "-")["frames"] == 8


@pytest.mark.skipif(shutil.which("sh") is None, reason="no shell")
def test_a_closed_stdin_is_one_line() -> None:
    command = f"{shlex.quote(sys.executable)} -m emu decode - <&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    said = "emu decode: stdin is closed: give a file, or a capture on stdin\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


@pytest.mark.parametrize("name", ["a\nb", "a\rb\x1b[2J", "", "\udcff", "\u2028"])
def test_a_file_name_never_breaks_a_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["decode", name]) == 2
    assert capsys.readouterr() == ("", f"emu decode: {name!r}: No such file or directory\n")
    if name:
        Path(name).write_bytes(b"no capture")
        assert main(["decode", name]) == 2
        assert capsys.readouterr().err.startswith(f"emu decode: {name!r}: offset 0: ")
        Path(name).write_bytes(files.pcap([]))
        assert main(["decode", name]) == 0
        assert capsys.readouterr().out.startswith(f"{name!r}: pcap, 0 frames")


@pytest.mark.parametrize("more", [[], ["--frames"], ["--frames", "--limit", "0"], ["--frames", "--limit", "300"]])
def test_what_is_printed_piece_by_piece_is_what_json_would_print_at_once(
    more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", "hello", *PLAIN, "--set", "traffic.0.count=80", "--capture", str(tmp_path / "a")]
    assert main([*arguments, "--set", "expect=[]"]) == 0
    assert main(["decode", str(tmp_path / "a"), "--json", *more]) == 0
    out = capsys.readouterr().out
    assert json.dumps(json.loads(out), indent=2) + "\n" == out
    assert main(["decode", str(tmp_path / "a"), *more]) == 0
    lines = capsys.readouterr().out.splitlines()
    heads = [line for line in lines if line.split()[:2] == ["frame", "time"]]
    assert len(heads) == (more[-1:] in (["--frames"], ["300"]))
    if heads:
        rows = lines[lines.index(heads[0]) + 1 :]
        assert len([line for line in rows if " QP 0x" in line]) == min(640, int(more[-1]) if more[2:] else 640)
        assert len({line.index("RC ") for line in rows if "RC " in line}) == 1  # aligned with one another


def test_every_shared_capture_and_vector_is_right(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in sorted((shared_data / "captures").glob("*.pcap")):
        result = decode(capsys, str(path))
        expected = result["frames"] if "rxe61" in path.name else 0
        assert result["icrc"] == {"ok": expected, "bad": 0, "unchecked": 0}, path.name
    for native, link_type in ((False, 1), (True, 247)):
        records = [
            Record(0, "if0", link_type, each.data, len(each.data))
            for each in vectors(shared_data)
            if each.native == native
        ]
        (tmp_path / "vectors").write_bytes(files.pcapng(records, order=">"))
        result = decode(capsys, str(tmp_path / "vectors"))
        assert result["icrc"] == {"ok": len(records), "bad": 0, "unchecked": 0}
        assert len(records) > 1


def test_frames_cut_by_a_snap_length_are_unchecked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut = Record(0, "if0", 247, SAMPLE_LOCAL[:40], len(SAMPLE_LOCAL))
    (tmp_path / "cut").write_bytes(files.pcap([cut], link_type=247))
    result = decode(capsys, str(tmp_path / "cut"), "--frames")
    assert result["icrc"] == result["vcrc"] == {"ok": 0, "bad": 0, "unchecked": 1}
    assert result["rows"][0]["payload_bytes"] == len(SAMPLE_LOCAL) - 8 - 12 - 16 - 2 - 6  # LRH, BTH, RETH, pad, CRCs


def test_the_result_folder_holds_the_capture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    name = "../a b/\u00e9"
    arguments = ["run", "hello", *PLAIN, "--set", "capture=[h0-leaf0]", "--set", f"name={name}", "--out", str(out)]
    assert main(arguments) == 0
    (path,) = (out / "captures").iterdir()
    assert path.name == "_a_b_\u00e9.pcapng"
    assert [each.interface for each in read(path)] == ["h0-leaf0", "leaf0-h0"]
    assert main([*arguments, "--force", "--capture", str(tmp_path / "too")]) == 0
    assert (tmp_path / "too").read_bytes() == path.read_bytes()
    assert main(["run", "hello", *MEMORY, "--out", str(tmp_path / "without")]) == 0
    assert not (tmp_path / "without" / "captures").exists()
    assert capsys.readouterr().err == ""


def test_a_capture_that_goes_nowhere_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", "hello", "--wire", "memory", "--set", "capture=all"]
    assert main(arguments) == 0
    said = "emu: the scenario's capture is not written: --out DIR or --capture FILE says where\n"
    assert capsys.readouterr().err == said
    assert main([*arguments, "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_file_is_not_overwritten_without_force(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = capture.read_bytes()
    arguments = ["run", "hello", *PLAIN, "--set", "traffic.0.size=64B", "--capture", str(capture)]
    assert main(arguments) == 2
    assert capsys.readouterr().err == f"emu run: {capture} exists already; --force overwrites it\n"
    assert capture.read_bytes() == before
    assert main([*arguments, "--set", "traffic.0.pairs=[[h0, h9]]", "--force"]) == 2
    assert capture.read_bytes() == before
    assert main([*arguments, "--force"]) == 0
    assert len(list(read(capture))) == 8


@pytest.mark.parametrize("path", ["/dev/full", "/nowhere/x"])
def test_a_capture_that_cannot_be_written(path: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["run", "hello", *PLAIN, "--capture", path, "--out", str(out)]) == {"/dev/full": 3}.get(path, 2)
    assert capsys.readouterr().err.startswith(f"emu run: {path}: ")
    assert list(tmp_path.iterdir()) == []
