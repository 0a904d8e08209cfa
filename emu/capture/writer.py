"""Writes pcapng: one section, an interface for each direction of a link, nanosecond times, every block at once."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from emu.capture.pcapng import IF_NAME, IF_TSRESOL, INTERFACE, ORDER_MARK, PACKET, SECTION
from emu.errors import MachineError, ScenarioError

COMMENT, USER_APPLICATION = 1, 4  # options of a section
IF_DESCRIPTION, IF_SPEED = 3, 8
NANOSECOND_RESOLUTION = 9  # ticks of 10^-9 s
LENGTH_UNKNOWN = 0xFFFFFFFFFFFFFFFF

BLOCK = Struct("<II")  # type, length
LENGTH = Struct("<I")
SECTION_FIELDS = Struct("<IHHQ")
INTERFACE_FIELDS = Struct("<HHI")  # link type, reserved, snap length
PACKET_BLOCK = Struct("<IIIIIII")  # type, length, interface, time high and low, captured and original length
_PAD = b"\0\0\0"


class InterfaceBlock(NamedTuple):
    """What an interface is called in the file, what its frames are, and how fast it is."""

    name: str
    description: str
    link_type: int
    rate_bps: int


class PcapngWriter:
    """An open file; each frame is in it when `write` returns, so one that was killed leaves whole records.

    Raises ScenarioError where the file cannot be made, MachineError for a full disk or a reader that is gone.
    """

    def __init__(self, path: Path, *, replace: bool) -> None:
        self.path = path
        self.written_bytes = 0  # all of it whole blocks
        try:
            self._is_ours = not path.exists()  # nobody else's, should it come to nothing
            if not replace and path.is_file():
                raise ScenarioError(f"{path} exists already; --force overwrites it")
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
            self._is_regular = stat.S_ISREG(os.fstat(self._file).st_mode)
        except OSError as error:
            raise ScenarioError(f"{path}: {error.strerror}") from None
        except ValueError:  # a NUL in the name
            raise ScenarioError(f"{str(path)!r} is no file name") from None

    def begin(self, interfaces: Iterable[InterfaceBlock], *, comment: str, application: str) -> None:
        """The section, and its interfaces: frames name them by their place. Only now an earlier file is lost."""
        if self._is_regular:
            os.ftruncate(self._file, 0)
        body = SECTION_FIELDS.pack(ORDER_MARK, 1, 0, LENGTH_UNKNOWN)
        options = _options((COMMENT, comment.encode()), (USER_APPLICATION, application.encode()))
        self._write(_block(SECTION, body + options))
        for each in interfaces:
            body = INTERFACE_FIELDS.pack(each.link_type, 0, 0)
            options = _options(
                (IF_NAME, each.name.encode()),
                (IF_DESCRIPTION, each.description.encode()),
                (IF_SPEED, each.rate_bps.to_bytes(8, "little")),
                (IF_TSRESOL, bytes([NANOSECOND_RESOLUTION])),
            )
            self._write(_block(INTERFACE, body + options))

    def write(self, interface: int, time_ns: int, head: bytes, data: bytes | memoryview) -> None:
        """One frame, `head` and `data` joined; it is on its way to the disk when this returns."""
        length = len(head) + len(data)
        pad = -length & 3
        block = PACKET_BLOCK.size + length + pad + LENGTH.size
        fields = PACKET_BLOCK.pack(PACKET, block, interface, time_ns >> 32, time_ns & 0xFFFFFFFF, length, length)
        self._write(b"".join((fields, head, data, _PAD[:pad], LENGTH.pack(block))))

    def close(self) -> None:
        """Close it; what an interrupted write left of a block is cut off, and a file that was never begun is gone."""
        if self._file < 0:
            return
        with suppress(OSError):
            if self._is_regular and self.written_bytes:
                os.ftruncate(self._file, self.written_bytes)
            elif self._is_regular and self._is_ours:
                self.path.unlink()
        file, self._file = self._file, -1
        os.close(file)

    def _write(self, block: bytes) -> None:
        try:
            rest = memoryview(block)[os.write(self._file, block) :]
            while rest:  # a pipe takes less at times, and a disk that fills up
                rest = rest[os.write(self._file, rest) :]
        except BrokenPipeError:
            raise MachineError(f"{self.path}: nobody reads it any more") from None
        except OSError as error:
            raise MachineError(f"{self.path}: {error.strerror}; free some space, or write elsewhere") from None
        self.written_bytes += len(block)


def _block(kind: int, body: bytes) -> bytes:
    length = LENGTH.pack(BLOCK.size + len(body) + LENGTH.size)
    return LENGTH.pack(kind) + length + body + length


def _options(*options: tuple[int, bytes]) -> bytes:
    """Each with its length and padded to 4 bytes, and the end of them."""
    packed = (
        code.to_bytes(2, "little") + len(value).to_bytes(2, "little") + value + _PAD[: -len(value) & 3]
        for code, value in options
    )
    return b"".join(packed) + b"\0\0\0\0"
