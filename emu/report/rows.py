"""One CSV file of a result folder, written row by row; a disk that fills up costs its end, never a part of a row."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from emu.report.room import ELSEWHERE, remedy

LAST_BYTES = 4096


class Rows:
    """Open at once, with its header. Raises OSError; `add` and `settle` never do."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self._path = path
        self._file: TextIO | None = path.open("w", encoding="utf-8", newline="")
        self._writer: Any = csv.writer(self._file, lineterminator="\n")
        self._failure: OSError | None = None
        self._writer.writerow(columns)

    def add(self, row: Sequence[Any]) -> None:
        """Add a row. If that fails, `settle` says so: a run is not lost by it."""
        if self._failure is None:
            try:
                self._writer.writerow(row)
            except OSError as error:
                self._failure = error

    def settle(self) -> str | None:
        """Close the file; a line about it if it ends early, after a whole row, for want of room."""
        if self._file is not None:
            try:
                self._file.close()
            except OSError as error:  # what it still held has no room
                self._failure = self._failure or error
            self._file = None
            if self._failure is not None:
                _cut_after_last_line(self._path)
        failure = self._failure
        if failure is None:
            return None
        return f"{self._path.name} ends early: {failure.strerror}; {remedy(failure) or ELSEWHERE}"

    def close(self) -> None:
        """Close the file, whatever becomes of it."""
        if self._file is not None:
            with suppress(OSError):  # what it still held has no room
                self._file.close()


def _cut_after_last_line(path: Path) -> None:
    """Lines are shorter than what is looked at."""
    with suppress(OSError), path.open("r+b") as file:
        size_bytes = file.seek(0, os.SEEK_END)
        begin = file.seek(max(0, size_bytes - LAST_BYTES))
        file.truncate(begin + file.read().rfind(b"\n") + 1)
