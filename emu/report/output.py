"""Writes a command's answer to stdout, whole or with an error, and its reasons to stderr."""

from __future__ import annotations

import errno
import json
import os
import select
import stat
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, TextIO

from emu.errors import MachineError
from emu.report.room import ELSEWHERE, remedy


def to_json(value: Mapping[str, Any] | Sequence[Any]) -> str:
    """As `--json` prints it and result.json holds it: indented, ASCII, keys in their order."""
    return json.dumps(value, indent=2, allow_nan=False)


def write(text: str) -> None:
    """Write `text` and a newline. A reader that has gone is no error. Raises MachineError for a full disk."""
    if sys.stdout is None:
        return
    with _stdout_gone_is_fine():
        _write_whole(sys.stdout, text + "\n")


def say(text: str) -> None:
    """A line for the user on stderr; where that cannot be had, nobody is told and nothing fails."""
    if sys.stderr is not None:
        with suppress(OSError):
            _write_whole(sys.stderr, text + "\n")


def _write_whole(stream: TextIO, text: str) -> None:
    """Write all of it, or raise OSError. Unbuffered, a text stream drops what a short write leaves over."""
    encoded = text.encode(stream.encoding or "utf-8", "backslashreplace")
    stream.flush()
    binary = getattr(stream, "buffer", None)
    if binary is None:  # a stream of text only, which somebody put in its place
        stream.write(encoded.decode(stream.encoding or "utf-8"))
        stream.flush()
        return
    raw = getattr(binary, "raw", binary)
    left = memoryview(encoded)
    while left:
        written = raw.write(left)
        if written is None:  # does not block, and is full
            select.select((), (raw,), ())
        else:
            left = left[written:]


def settle(exit_code: int) -> int:
    """Flush what others printed, so that the interpreter finds nothing left to fail on at its end."""
    if sys.stdout is not None:
        with _stdout_gone_is_fine():
            sys.stdout.flush()
    return exit_code


class _stdout_gone_is_fine:  # noqa: N801 - read as a statement
    """Swallows a broken pipe and a closed terminal; says what else keeps stdout from being written."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        if not isinstance(error, OSError):
            return False
        is_device = _stdout_is_device()
        _forget_stdout()
        if isinstance(error, BrokenPipeError) or (error.errno == errno.EIO and is_device):
            return True
        raise MachineError(f"cannot write to stdout: {error.strerror}; {remedy(error) or ELSEWHERE}") from None


def _stdout_is_device() -> bool:
    """Whether it is a terminal, say: one that was closed still is a device, but denies that it is a terminal."""
    try:
        return stat.S_ISCHR(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def _forget_stdout() -> None:
    """Point stdout at nothing: what is still buffered has nowhere to go."""
    with suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
