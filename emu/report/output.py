"""Writes a command's answer to stdout: whole, or not at all if nobody reads it any more."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from emu.errors import MachineError


def to_json(value: Mapping[str, Any]) -> str:
    """As `--json` prints it and result.json holds it: indented, ASCII, keys in their order."""
    return json.dumps(value, indent=2, allow_nan=False)


def write(text: str) -> None:
    """Write `text` and a newline. A reader that has gone is no error. Raises MachineError for a full disk."""
    if sys.stdout is None:
        return
    with _stdout_gone_is_fine():
        encoding = sys.stdout.encoding or "utf-8"
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding) + "\n")
        sys.stdout.flush()


def settle(exit_code: int) -> int:
    """Flush what others printed, so that the interpreter finds nothing left to fail on at its end."""
    if sys.stdout is not None:
        with _stdout_gone_is_fine():
            sys.stdout.flush()
    return exit_code


class _stdout_gone_is_fine:  # noqa: N801 - read as a statement
    """Swallows a broken pipe; says what else keeps stdout from being written."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        if not isinstance(error, OSError):
            return False
        _forget_stdout()
        if isinstance(error, BrokenPipeError):
            return True
        raise MachineError(f"cannot write to stdout: {error.strerror}; free some space, or write elsewhere") from None


def _forget_stdout() -> None:
    """Point stdout at nothing: what is still buffered has nowhere to go."""
    with suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
