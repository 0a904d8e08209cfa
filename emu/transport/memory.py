"""Registered memory: real bytes behind keys, with bounds and rights checked as a NIC would (IBTA vol. 1, 10.6)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
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

    __slots__ = ("access", "addr", "buffer", "domain", "is_known", "is_registered", "length", "lkey", "rkey", "view")

    def __init__(self, buffer: bytearray, addr: int, key: int, access: Access, domain: int = 0) -> None:
        self.buffer = buffer
        self.view = memoryview(buffer)
        self.addr = addr
        self.length = len(buffer)
        self.lkey = key
        self.rkey = key
        self.access = access
        self.domain = domain  # the protection domain that it belongs to
        self.is_known = True  # whether its keys are: what has begun under a key ends with it
        self.is_registered = True  # a peer may have made its keys unknown before

    def covers(self, addr: int, length: int) -> bool:
        """Whether `length` bytes at `addr` lie wholly inside."""
        return self.addr <= addr and length >= 0 and addr + length <= self.addr + self.length

    def slice(self, addr: int, length: int) -> memoryview:
        """The bytes there, not copied; the caller has checked the bounds."""
        start = addr - self.addr
        return self.view[start : start + length]


def _addr_of(region: MemoryRegion) -> int:
    return region.addr


class _Keys:
    """What all protection domains of one NIC draw from."""

    __slots__ = ("domains", "next_addr", "next_key", "on_register", "order", "regions")

    def __init__(self) -> None:
        self.regions: dict[int, MemoryRegion] = {}
        self.order: list[MemoryRegion] = []  # all there ever were, by address
        self.on_register: Callable[[MemoryRegion], object] | None = None
        self.domains = 0
        self.next_key = 0x1000
        self.next_addr = 0x7F00_0000_0000


NO_REGION = MemoryRegion(bytearray(), 0, 0, Access.REMOTE_WRITE)
"""Where a READ or WRITE of nothing goes."""


class MemoryTable:
    """The keys of one protection domain of a NIC; others' are as unknown as any number (IBTA vol. 1, 10.2.3)."""

    __slots__ = ("_domain", "_keys")

    def __init__(self, keys: _Keys | None = None, domain: int = 0) -> None:
        self._keys = keys or _Keys()
        self._domain = domain

    @property
    def _regions(self) -> dict[int, MemoryRegion]:
        return self._keys.regions

    def next_domain(self) -> MemoryTable:
        """A further protection domain of the same NIC."""
        self._keys.domains += 1
        return MemoryTable(self._keys, self._keys.domains)

    def register(self, length: int, access: Access) -> MemoryRegion:
        """A region of `length` zero bytes. Raises VerbsError for a negative length, or one that this machine lacks."""
        try:
            buffer = bytearray(length)
        except (MemoryError, OverflowError, ValueError):
            raise VerbsError(f"a memory region of {length} bytes: more than there is, or less than none") from None
        keys = self._keys
        region = MemoryRegion(buffer, keys.next_addr, keys.next_key, access, self._domain)
        keys.regions[region.rkey] = region
        keys.order.append(region)
        if keys.on_register is not None:
            keys.on_register(region)
        keys.next_key += 0x101
        pages = -(-max(length, 1) // PAGE_BYTES) + 1  # a page between regions: an overrun meets no neighbour
        keys.next_addr += pages * PAGE_BYTES
        return region

    def adopt(self, buffer: bytearray, addr: int, like: MemoryRegion) -> MemoryRegion:
        """A region of the domain and rights of another, which lies elsewhere than where regions usually do."""
        keys = self._keys
        region = MemoryRegion(buffer, addr, keys.next_key, like.access, like.domain)
        keys.regions[region.rkey] = region
        keys.next_key += 0x101
        return region

    def at(self, addr: int, length: int) -> MemoryRegion | None:
        """The region that those bytes lie in, whoever's it is."""
        order = self._keys.order
        place = bisect_right(order, addr, key=_addr_of) - 1
        return order[place] if place >= 0 and order[place].covers(addr, length) else None

    def watch(self, on_register: Callable[[MemoryRegion], object]) -> None:
        """Tell of each region that is registered with this NIC from now on."""
        self._keys.on_register = on_register

    def deregister(self, region: MemoryRegion) -> None:
        """`ibv_dereg_mr`. Raises VerbsError for a region of another domain, or one that is deregistered already."""
        if not region.is_registered or region.domain != self._domain or self.at(region.addr, 0) is not region:
            raise VerbsError(f"no memory region with lkey {region.lkey:#x} is registered in this protection domain")
        region.is_registered = False
        self.invalidate(region.rkey)

    def invalidate(self, key: int) -> None:
        """No longer know a key."""
        region = self._regions.get(key)
        if region is not None and region.domain == self._domain:
            region.is_known = False
            del self._regions[key]

    def may_revoke(self, key: int) -> bool:
        """Whether a peer may invalidate it by a SEND: it is of this domain, and grants peers something."""
        region = self._regions.get(key)
        return region is not None and region.domain == self._domain and bool(region.access & REMOTE)

    def find(self, key: int, addr: int, length: int, access: Access) -> MemoryRegion | None:
        """The region of that key if the bytes lie in it and every right asked for is granted."""
        region = self._regions.get(key)
        if region is None or region.domain != self._domain:
            return None
        return region if region.access & access == access and region.covers(addr, length) else None
