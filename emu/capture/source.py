"""Bytes of a capture file, read in order by exact lengths; knows where it is and what to call the file in errors."""

from __future__ import annotations

from typing import BinaryIO

from emu.errors import ScenarioError, WireError

PIECE_BYTES = 65_536


class CutShortError(Exception):
    """The file ends inside a record, as that of a killed writer does."""


class Source:
    """Reads a file from its start; it need not be seekable. `offset` counts the bytes taken so far."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._peeked = b""
        self.name = name
        self.offset = 0
        self.begun = False  # whether the file's own header is behind us: what ends before that is no capture

    def peek(self, length: int) -> bytes:
        """The first `length` bytes or what there is of them; asked once, before anything is taken."""
        self._peeked = self._read(length)
        return self._peeked

    def take(self, length: int) -> bytes:
        """Exactly so many bytes. Raises CutShortError if the file has fewer."""
        data = self._take(length)
        if len(data) < length:
            raise CutShortError
        return data

    def take_or_end(self, length: int) -> bytes | None:
        """The same, or None at the end of the file."""
        data = self._take(length)
        if data and len(data) < length:
            raise CutShortError
        return data or None

    def skip(self, length: int) -> None:
        """Read over so many bytes, with little memory."""
        while length > 0:
            length -= len(self.take(min(length, PIECE_BYTES)))

    def wrong(self, text: str, offset: int | None = None) -> WireError:
        """The error that says what is wrong at `offset`, or here."""
        return WireError(f"{self.name}: offset {self.offset if offset is None else offset}: {text}")

    def _take(self, length: int) -> bytes:
        data, self._peeked = self._peeked[:length], self._peeked[length:]
        if len(data) < length:
            data += self._read(length - len(data))
        self.offset += len(data)
        return data

    def _read(self, length: int) -> bytes:
        """As many bytes as there are, at most `length`: a pipe may give them piecemeal. Raises ScenarioError."""
        try:
            data = self._file.read(length)
            while len(data) < length and (more := self._file.read(length - len(data))):
                data += more
        except OSError as error:
            raise ScenarioError(f"{self.name}: {error.strerror or error}") from None
        return data
