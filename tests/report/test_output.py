"""What is printed is printed whole, or is an error with its exit code; what cannot be said fails nothing."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from emu.errors import MachineError
from emu.report.output import say, write
from tests.tree import ROOT

START = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from emu.cli import main; sys.exit(main())"
TEXT = "é" * 100_000
SMALL_FILES = 'ulimit -f 1; exec "$0" "$@"'  # 1 KiB a file: bash counts in KiB


class Hesitant(io.RawIOBase):
    """Takes at most 1,000 bytes at a time, as a file system that is nearly full does; then fails, if it is to."""

    def __init__(self, room_bytes: int) -> None:
        self.taken = b""
        self._room_bytes = room_bytes

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        piece = bytes(memoryview(data)[:1000])  # type: ignore[arg-type]
        if len(self.taken) + len(piece) > self._room_bytes:
            raise OSError(28, os.strerror(28))
        self.taken += piece
        return len(piece)


@pytest.mark.parametrize("buffered", [False, True])
def test_short_writes_lose_nothing(buffered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = Hesitant(10**6)
    binary = io.BufferedWriter(raw) if buffered else raw
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(binary, "utf-8", write_through=not buffered))  # type: ignore[type-var]
    print("before")
    write(TEXT)
    assert raw.taken.decode() == f"before\n{TEXT}\n"


def test_no_room_for_the_rest_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(Hesitant(5000), "utf-8", write_through=True))  # type: ignore[type-var]
    with pytest.raises(MachineError, match="cannot write to stdout: No space left on device; free some space"):
        write(TEXT)


def test_a_stream_of_text_only_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    write("x")
    assert stream.getvalue() == "x\n"


def test_a_pipe_that_does_not_block_gets_all(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    monkeypatch.setattr(sys, "stdout", open(writing, "w", encoding="utf-8"))  # noqa: SIM115 - closed below
    read: list[str] = []

    def reader() -> None:
        with open(reading, encoding="utf-8") as file:
            read.append(file.read())

    thread = threading.Thread(target=reader)
    thread.start()
    with sys.stdout:
        write(TEXT)
    thread.join()
    assert read == [f"{TEXT}\n"]


def test_what_cannot_be_said_fails_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(Hesitant(0), "utf-8", write_through=True))  # type: ignore[type-var]
    say("no")
    monkeypatch.setattr(sys, "stderr", None)
    say("no")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_json_that_is_cut_off_is_no_success(unbuffered: str, tmp_path: Path) -> None:
    with (tmp_path / "out").open("w") as file:
        done = subprocess.run(
            ["bash", "-c", SMALL_FILES, sys.executable, "-c", START, "run", "--schema"],
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered, "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=file,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.returncode, (tmp_path / "out").stat().st_size) == (3, 1024)
    assert done.stderr.startswith("emu run: cannot write to stdout: File too large; raise the limit")


@pytest.mark.parametrize("arguments", [("run", "hello", "--set", "traffic.0.count=300"), ("latency", "--sizes", "64B")])
@pytest.mark.parametrize("form", [("--json",), ()])
def test_a_result_that_finds_no_room_is_printed_all_the_same(
    arguments: tuple[str, ...], form: tuple[str, ...], tmp_path: Path
) -> None:
    more = ("--wire", "memory", "--out", "out", *(("--set", "expect=[]") if arguments[0] == "run" else ()))
    done = subprocess.run(
        ["bash", "-c", SMALL_FILES, sys.executable, "-c", START, *arguments, *more, *form],
        cwd=tmp_path,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3
    assert done.stderr == (
        f"emu: the result is not kept: --out {tmp_path}/out: File too large;"
        " raise the limit on a file's size (ulimit -f), or write elsewhere\n"
    )
    assert list(tmp_path.iterdir()) == []
    if form:
        assert json.loads(done.stdout)["complete"] is True
    else:
        assert "300 messages completed" in done.stdout or "fabric latency" in done.stdout


def test_reasons_that_cannot_be_said_change_no_exit_code() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", START, "run", "hello", "--wire", "memory"]
            + ["--set", "expect=[messages.completed == 7]", "--json"],
            stdout=subprocess.PIPE,
            stderr=full,
            timeout=60,
            check=False,
        )
    assert done.returncode == 4
    assert json.loads(done.stdout)["expect"][0]["holds"] is False
