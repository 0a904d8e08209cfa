"""Registered memory: real bytes behind keys, with bounds and rights checked as a NIC would (IBTA vol. 1, 10.6)."""

from __future__ import annotations

from enum import IntFlag

from emu.errors import VerbsError

PAGE_BYTES = 4096


class Access(IntFlag):
    """`ibv_access_flags`, with libibverbs' values."""

    LOCAL_WRITE = 1
    REMOTE_WRITE = 2
    REMOTE_READ = 4
    REMOTE_ATOMIC = 8


REMOTE = Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC


class MemoryRegion:
    """A registered buffer: `length` bytes at virtual address `addr`."""

    __slots__ = ("access", "addr", "buffer", "length", "lkey", "rkey", "view")

    def __init__(self, buffer: bytearray, addr: int, key: int, access: Access) -> None:
        self.buffer = buffer
        self.view = memoryview(buffer)
        self.addr = addr
        self.length = len(buffer)
        self.lkey = key
        self.rkey = key
        self.access = access

    def covers(self, addr: int, length: int) -> bool:
        """Whether `length` bytes at `addr` lie wholly inside."""
        return self.addr <= addr and addr + length <= self.addr + self.length

    def slice(self, addr: int, length: int) -> memoryview:
        """The bytes there, not copied; the caller has checked the bounds."""
        start = addr - self.addr
        return self.view[start : start + length]


class MemoryTable:
    """The keys one NIC knows, and the virtual addresses it has given out."""

    __slots__ = ("_next_addr", "_next_key", "_regions")

    def __init__(self) -> None:
        self._regions: dict[int, MemoryRegion] = {}
        self._next_key = 0x1000
        self._next_addr = 0x7F00_0000_0000

    def register(self, length: int, access: Access) -> MemoryRegion:
        """A region of `length` zero bytes. Raises VerbsError for a negative length."""
        if length < 0:
            raise VerbsError(f"a memory region of {length} bytes")
        region = MemoryRegion(bytearray(length), self._next_addr, self._next_key, access)
        self._regions[region.rkey] = region
        self._next_key += 0x101
        pages = -(-max(length, 1) // PAGE_BYTES) + 1  # a page between regions: an overrun meets no neighbour
        self._next_addr += pages * PAGE_BYTES
        return region

    def invalidate(self, key: int) -> None:
        """No longer know a key, as `ibv_dereg_mr` asks."""
        self._regions.pop(key, None)

    def revoke(self, key: int) -> None:
        """The same, as a peer asks by a SEND with invalidate: only of a key that grants peers something."""
        region = self._regions.get(key)
        if region is not None and region.access & REMOTE:
            del self._regions[key]

    def find(self, key: int, addr: int, length: int, access: Access) -> MemoryRegion | None:
        """The region of that key if the bytes lie in it and every right asked for is granted."""
        region = self._regions.get(key)
        if region is None or region.access & access != access or not region.covers(addr, length):
            return None
        return region
