"""The pcapng writer: what is on disk after each frame, full disks, readers that leave, files that are somebody's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from struct import unpack_from

import pytest

from emu.capture import Record, read
from emu.capture.writer import InterfaceBlock, PcapngWriter
from emu.errors import MachineError, ScenarioError
from tests.tree import ROOT

INTERFACES = [InterfaceBlock(f"leaf0-h{number}", "a to b", 1, 400 * 10**9) for number in range(3)]


def begun(path: Path, *, replace: bool = False) -> PcapngWriter:
    writer = PcapngWriter(path, replace=replace)
    writer.begin(INTERFACES, comment="of a test", application="emu")
    return writer


def test_each_frame_is_there_when_write_returns(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    writer = begun(path)
    expected = []
    for number in range(20):
        data = bytes(range(number))
        writer.write(number % 3, number << 31, b"he" * (number & 1), data)
        whole = b"he" * (number & 1) + data
        expected.append(Record(number << 31, f"leaf0-h{number % 3}", 1, whole, len(whole)))
        assert list(read(path)) == expected
        assert path.stat().st_size == writer.written_bytes
    writer.close()
    assert list(read(path)) == expected


def test_blocks_are_as_the_format_says(tmp_path: Path) -> None:
    writer = begun(tmp_path / "a.pcapng")
    writer.write(2, 5, b"", b"abcde")
    writer.close()
    data = (tmp_path / "a.pcapng").read_bytes()
    kinds, at = [], 0
    while at < len(data):
        kind, length = unpack_from("<II", data, at)
        assert length % 4 == 0
        assert unpack_from("<I", data, at + length - 4) == (length,)
        kinds.append((kind, data[at + 8 : at + length - 4]))
        at += length
    assert [kind for kind, _ in kinds] == [0x0A0D0D0A, 1, 1, 1, 6]
    assert b"of a test" in kinds[0][1]
    assert b"leaf0-h2" in kinds[3][1]
    assert b"\x09\x00\x01\x00\x09" in kinds[3][1]  # if_tsresol: 10^-9
    assert (400 * 10**9).to_bytes(8, "little") in kinds[3][1]
    assert kinds[4][1] == b"\x02\0\0\0" + bytes(4) + b"\x05\0\0\0" * 3 + b"abcde\0\0\0"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_is_said(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="/dev/full: No space left on device; free some space"):
        begun(Path("/dev/full"))


def test_a_reader_that_leaves(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    writer = begun(Path(f"/dev/fd/{write_end}"))
    os.close(read_end)
    with pytest.raises(MachineError, match="nobody reads it any more"):
        writer.write(0, 0, b"", b"abc")
    writer.close()
    writer.close()
    os.close(write_end)


def test_a_slow_reader_gets_everything() -> None:
    read_end, write_end = os.pipe()
    child = subprocess.Popen(["sleep", "0.2"], stdin=subprocess.DEVNULL)
    reader = subprocess.Popen(["sh", "-c", "sleep 0.2; wc -c"], stdin=read_end, stdout=subprocess.PIPE)
    os.close(read_end)
    writer = begun(Path(f"/dev/fd/{write_end}"))
    for _ in range(100):
        writer.write(0, 0, b"", bytes(4096))
    written = writer.written_bytes
    writer.close()
    os.close(write_end)
    out, _ = reader.communicate(timeout=20)
    child.wait(timeout=20)
    assert int(out) == written > 65_536  # more than a pipe holds


def test_files_are_not_overwritten_without_leave(tmp_path: Path) -> None:
    path = tmp_path / "mine"
    path.write_text("mine")
    with pytest.raises(ScenarioError, match="exists already; --force overwrites it"):
        PcapngWriter(path, replace=False)
    PcapngWriter(path, replace=True).close()
    assert path.read_text() == "mine"  # nothing was recorded, so nothing is lost
    begun(path, replace=True).close()
    assert list(read(path)) == []


@pytest.mark.parametrize(("name", "said"), [("no/such", "No such file"), (".", "directory"), ("a\0b", "no file name")])
def test_what_cannot_be_written_is_named(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        PcapngWriter(tmp_path / name, replace=True)


def test_a_file_never_begun_is_gone(tmp_path: Path) -> None:
    PcapngWriter(tmp_path / "a", replace=False).close()
    assert list(tmp_path.iterdir()) == []


def test_half_a_block_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "a"
    writer = begun(path)
    writer.write(0, 1, b"", b"abc")
    with path.open("ab") as file:  # as if an interrupt had come inside a write
        file.write(b"half")
    writer.close()
    warnings: list[str] = []
    assert len(list(read(path, warnings.append))) == 1
    assert warnings == []


def test_a_killed_run_leaves_whole_records(tmp_path: Path) -> None:
    path = tmp_path / "killed.pcapng"
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from emu.cli import main; sys.exit(main(["
        f"'run', 'all-to-all-native', '--wire', 'memory', '--quiet', '--capture', {str(path)!r}]))"
    )
    run = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE)
    while run.poll() is None and not (path.exists() and path.stat().st_size > 10_000_000):
        pass
    run.send_signal(signal.SIGKILL)
    run.communicate()
    assert run.returncode == -signal.SIGKILL
    warnings: list[str] = []
    assert sum(1 for _ in read(path, warnings.append)) > 2000
    assert len(warnings) <= 1
