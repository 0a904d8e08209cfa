"""The requester's side of a device: its reads and writes of memory across the bus."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from emu.errors import InvariantBroken, ScenarioError
from emu.frame import Buffer
from emu.host.link import PcieLink
from emu.pcie.framing import memory_read, memory_write
from emu.pcie.layout import DW_BYTES, PAGE_BYTES
from emu.pcie.split import check_sizes, request_length, request_pieces
from emu.pcie.tlp import TAGS_LIMIT, Tlp

Progress = Callable[[int], object]
"""Called with how many bytes of a read are here, from its first byte on without a gap."""


class _Read:
    """A read as the device asked for it: cut into requests as tags come free."""

    __slots__ = ("address", "asked", "early", "here", "into", "length", "note", "progress")

    def __init__(self, address: int, length: int, into: bytearray | memoryview, progress: Progress, note: Any) -> None:
        self.address = address
        self.length = length
        self.into = into
        self.progress = progress
        self.note = note
        self.asked = 0  # bytes that requests have been sent for
        self.here = 0  # bytes of whole requests, from the first on
        self.early: dict[int, int] | None = None  # whole requests behind one that is not: offset, length


class _Request:
    """One MRd on its way, under its tag."""

    __slots__ = ("left", "length", "offset", "read")

    def __init__(self, read: _Read, offset: int, length: int) -> None:
        self.read = read
        self.offset = offset  # within the read
        self.length = length
        self.left = length  # bytes that completions have not brought yet


class DmaEngine:
    """Splits writes by MPS and reads by MRRS; at most `tags` reads are outstanding, the others wait in order.

    A read sees this requester's writes that were asked for before it. Writes never wait for reads, so it may see later
    ones too.
    """

    __slots__ = (
        "_free",
        "_outstanding",
        "_waiting",
        "link",
        "max_outstanding",
        "mps_bytes",
        "mrrs_bytes",
        "reads",
        "received",
        "requester",
        "tags",
        "unexpected",
        "writes",
    )

    def __init__(self, link: PcieLink, requester: int, *, mps_bytes: int, mrrs_bytes: int, tags: int = 256) -> None:
        check_sizes(mps_bytes=mps_bytes, mrrs_bytes=mrrs_bytes)
        if not 1 <= tags <= TAGS_LIMIT:
            raise ScenarioError(f"{tags} tags: a requester has 1 to {TAGS_LIMIT}")
        self.link = link
        self.requester = requester  # its bus, device and function
        self.mps_bytes = mps_bytes
        self.mrrs_bytes = mrrs_bytes
        self.tags = tags
        self.writes = 0  # requests sent, not calls
        self.reads = 0
        self.max_outstanding = 0  # reads at a time
        self.received = 0  # completions
        self.unexpected = 0  # of them, those of no read of ours (2.3.2: dropped)
        self._free = list(range(tags - 1, -1, -1))
        self._outstanding: list[_Request | None] = [None] * tags
        self._waiting: deque[_Read] = deque()  # those not asked for to the end yet

    @property
    def outstanding(self) -> int:
        """Reads sent that are not whole yet."""
        return self.tags - len(self._free)

    def owed(self) -> dict[int, int]:
        """By tag of each read that is outstanding: its bytes that are not here yet."""
        return {tag: request.left for tag, request in enumerate(self._outstanding) if request is not None}

    def write(self, address: int, data: Buffer, note: Any = None) -> None:
        """Send it now; each of its packets carries the note, whose `arrived` a memory calls as it is there.

        The data is not copied: it may not change before then. Raises InvariantBroken for no bytes.
        """
        length = len(data)
        if length < 1:
            raise InvariantBroken(f"a write of {length} bytes to {address:#x}")
        if address % DW_BYTES + length <= self.mps_bytes and address % PAGE_BYTES + length <= PAGE_BYTES:
            self.writes += 1
            self.link.send(memory_write(address, data, self.requester, note))
            return
        for piece_address, piece_bytes in request_pieces(address, length, self.mps_bytes):
            offset = piece_address - address
            self.writes += 1
            piece = data[offset : offset + piece_bytes]
            self.link.send(memory_write(piece_address, piece, self.requester, note))

    def read(
        self, address: int, length: int, into: bytearray | memoryview, progress: Progress, note: Any = None
    ) -> None:
        """Fetch `length` bytes into the beginning of `into`, after the reads asked for before.

        `progress(bytes)` is called each time one of its requests is whole and all before that are: the last time with
        `length`. A read of 0 bytes, from a whole DW, fetches nothing, but its answer comes after all earlier writes are
        there (2.2.5: a flush). Raises InvariantBroken for more bytes than `into` holds.
        """
        if not 0 <= length <= len(into):
            raise InvariantBroken(f"a read of {length} bytes from {address:#x} into {len(into)}")
        self._waiting.append(_Read(address, length, into, progress, note))
        if self._free:
            self._ask()

    def complete(self, tlp: Tlp) -> None:
        """A completion is here."""
        self.received += 1
        tag, length = tlp.tag, tlp.length
        request = self._outstanding[tag] if tag < self.tags and tlp.requester == self.requester else None
        if request is None:
            self.unexpected += 1
            return
        read = request.read
        if request.length:  # else its one byte means nothing
            offset = tlp.address - read.address
            if not request.offset <= offset <= request.offset + request.length - length:
                self.unexpected += 1
                return
            read.into[offset : offset + length] = tlp.payload
            request.left -= length
        if request.left == 0:
            self._outstanding[tag] = None
            self._free.append(tag)
            if self._waiting:
                self._ask()
            self._advance(read, request)

    def _ask(self) -> None:
        """Send requests while there are tags, and something to read."""
        waiting, free = self._waiting, self._free
        while free and waiting:
            read = waiting[0]
            offset = read.asked
            address = read.address + offset
            length = request_length(address, read.length - offset, self.mrrs_bytes)
            read.asked += length
            if read.asked == read.length:
                waiting.popleft()
            tag = free.pop()
            self._outstanding[tag] = _Request(read, offset, length)
            self.reads += 1
            outstanding = self.tags - len(free)
            if outstanding > self.max_outstanding:
                self.max_outstanding = outstanding
            self.link.send(memory_read(address, length, self.requester, tag, read.note))

    def _advance(self, read: _Read, request: _Request) -> None:
        """One more request is whole: say so, and so of those that were whole before their turn."""
        if request.offset != read.here:
            if read.early is None:
                read.early = {}
            read.early[request.offset] = request.length
            return
        read.here += request.length
        read.progress(read.here)
        early = read.early
        while early and read.here in early:
            read.here += early.pop(read.here)
            read.progress(read.here)
