"""Reads a capture file of any kind we know, record by record."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from emu.capture import erf, pcap, pcapng
from emu.capture.record import Record
from emu.capture.source import CutShortError, Source
from emu.errors import ScenarioError

FORMATS = {"pcap": pcap, "pcapng": pcapng, "ERF": erf}
GZIP_MAGIC = b"\x1f\x8b"
STDIN = "-"


class CaptureFile:
    """An open capture: `format` is what it was recognized as; iterating gives its records, once.

    Memory is that of one record (emu/capture/record.py has the limits), whatever the file says. Raises ScenarioError
    if the file cannot be read, WireError with file and offset where it is no capture or is damaged. One that ends
    inside a record, as a killed writer leaves it, gives all whole ones, and `warn` is told.
    """

    def __init__(self, path: str | Path, warn: Callable[[str], object] | None = None) -> None:
        self.name = "stdin" if str(path) == STDIN else _shown(path)
        self._warn = warn
        with ExitStack() as stack:
            file = _stdin() if str(path) == STDIN else stack.enter_context(_open(path))
            self._source = Source(file, self.name)
            self.format = self._recognize()
            self._undo = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._undo.close()

    def __iter__(self) -> Iterator[Record]:
        source = self._source
        try:
            yield from FORMATS[self.format].records(source)
        except CutShortError:
            if not source.begun:
                raise source.wrong(f"it ends inside the header of a {self.format} file") from None
            if self._warn is not None:
                self._warn(
                    f"{self.name}: offset {source.offset}: the file ends inside a record; all before it was read"
                )

    def _recognize(self) -> str:
        source = self._source
        start = source.peek(erf.RECOGNIZED_BYTES)
        for name, module in FORMATS.items():
            if module.recognizes(start):
                return name
        if not start:
            raise source.wrong("it is empty")
        if start.startswith(GZIP_MAGIC):
            raise source.wrong("it is compressed: unpack it first (gunzip)")
        raise source.wrong(f"it is no capture: it begins like none of {', '.join(FORMATS)}")


def read(path: str | Path, warn: Callable[[str], object] | None = None) -> Iterator[Record]:
    """Every frame of a capture file, in its order; `-` is stdin. Raises and warns as CaptureFile does."""
    with CaptureFile(path, warn) as capture:
        yield from capture


def _stdin() -> BinaryIO:
    if sys.stdin is None:  # nobody gave us one
        raise ScenarioError("stdin is closed: give a file, or a capture on stdin")
    return sys.stdin.buffer


def _shown(path: str | Path) -> str:
    """The file's name on one line."""
    text = str(path)
    return text if text.isprintable() and text else repr(text)


def _open(path: str | Path) -> BinaryIO:
    try:
        return open(path, "rb")
    except OSError as error:
        raise ScenarioError(f"{_shown(path)}: {error.strerror or error}") from None
    except ValueError:  # a NUL in the name
        raise ScenarioError(f"{str(path)!r} is no file name") from None
