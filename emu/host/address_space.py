"""Real bytes at addresses: what a memory holds, mapped buffer by buffer."""

from __future__ import annotations

from bisect import bisect_right
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, PAGESIZE, mmap

from emu.errors import ScenarioError
from emu.frame import Buffer


class AddressSpace:
    """Buffers at addresses that do not overlap, and a window from which new ones are given out.

    An access has to lie in one buffer. One that does not raises nothing: whoever asked is across a bus, and it is for
    the device to answer it.
    """

    __slots__ = ("_buffers", "_end", "_first", "_last_buffer", "_next", "_starts", "window_end")

    def __init__(self, window_start: int, window_bytes: int) -> None:
        self._starts: list[int] = []  # in order; the buffer of each at the same place
        self._buffers: list[memoryview] = []
        self._first = self._end = 0  # the buffer that was used last, and its addresses
        self._last_buffer = memoryview(b"")
        self._next = window_start
        self.window_end = window_start + window_bytes

    def map(self, start: int, buffer: bytearray | memoryview | mmap) -> None:
        """Put the buffer itself, not a copy, at `start`. Raises ScenarioError where another one lies."""
        view = memoryview(buffer).cast("B")
        end = start + len(view)
        place = bisect_right(self._starts, start)
        if (place and self._starts[place - 1] + len(self._buffers[place - 1]) > start) or (
            place < len(self._starts) and self._starts[place] < end
        ):
            raise ScenarioError(f"some of {start:#x} to {end:#x} is mapped already")
        self._starts.insert(place, start)
        self._buffers.insert(place, view)

    def reserve(self, length_bytes: int, align_bytes: int = 64) -> int:
        """An address, a multiple of `align_bytes`, for `length_bytes` of the window that nobody was given before.

        Raises ScenarioError when the window is full.
        """
        start = -(-self._next // align_bytes) * align_bytes
        if start + length_bytes > self.window_end:
            left_bytes = max(0, self.window_end - start)
            raise ScenarioError(f"{length_bytes} bytes do not fit: {left_bytes} are left up to {self.window_end:#x}")
        self._next = start + length_bytes
        return start

    def allocate(self, length_bytes: int, align_bytes: int = 64) -> int:
        """`reserve`, and map zeros there."""
        start = self.reserve(length_bytes, align_bytes)
        self.map(start, _zeros(length_bytes))
        return start

    def view(self, address: int, length_bytes: int) -> memoryview | None:
        """Those bytes themselves, or None if they do not lie in one buffer."""
        if not (self._first <= address and address + length_bytes <= self._end) and not self._find(
            address, length_bytes
        ):
            return None
        offset = address - self._first
        return self._last_buffer[offset : offset + length_bytes]

    def read(self, address: int, length_bytes: int) -> bytes | None:
        """A copy of those bytes, or None if they do not lie in one buffer."""
        view = self.view(address, length_bytes)
        return None if view is None else bytes(view)

    def write(self, address: int, data: Buffer) -> bool:
        """Change those bytes; False, and nothing is changed, if they do not lie in one buffer."""
        length_bytes = len(data)
        if not (self._first <= address and address + length_bytes <= self._end) and not self._find(
            address, length_bytes
        ):
            return False
        offset = address - self._first
        self._last_buffer[offset : offset + length_bytes] = data
        return True

    def _find(self, address: int, length_bytes: int) -> bool:
        """Make the buffer of these bytes the last one used."""
        place = bisect_right(self._starts, address) - 1
        if place < 0 or address + length_bytes > self._starts[place] + len(self._buffers[place]):
            return False
        self._first, self._last_buffer = self._starts[place], self._buffers[place]
        self._end = self._first + len(self._last_buffer)
        return True


def _zeros(length_bytes: int) -> bytearray | mmap:
    """So many, which cost memory only where they are used: most of thousands of deep queues never is."""
    if length_bytes < PAGESIZE:
        return bytearray(length_bytes)
    return mmap(-1, length_bytes, MAP_PRIVATE | MAP_ANONYMOUS)
