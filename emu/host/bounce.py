"""Host memory in the stead of a GPU's, where NIC and GPU may not reach each other: a buffer for each region."""

from __future__ import annotations

from collections.abc import Sequence

from emu.errors import InvariantBroken
from emu.host.address_space import AddressSpace
from emu.transport.memory import MemoryRegion, MemoryTable

Places = tuple[tuple[int, int, int], ...]
"""Address, length and lkey of each piece."""


class Bounces:
    """By region; made and registered when first needed."""

    __slots__ = ("_by_region", "_space")

    def __init__(self, space: AddressSpace) -> None:
        self._space = space
        self._by_region: dict[MemoryRegion, MemoryRegion] = {}

    def address_of(self, memory: MemoryTable, address: int, length: int) -> int:
        """Where bytes for that address of the GPU's memory go instead."""
        region = memory.at(address, length)
        if region is None:
            raise InvariantBroken(f"bytes for {address:#x}, where nothing is registered")
        return self._of(memory, region).addr + address - region.addr

    def places_of(self, memory: MemoryTable | None, places: Sequence[tuple[int, int, int]]) -> Places:
        """The same pieces, where they lie after a copy."""
        found = []
        for address, length, lkey in places:
            region = memory.at(address, length) if memory is not None else None
            if memory is None or region is None:
                found.append((address, length, lkey))
                continue
            bounce = self._of(memory, region)
            found.append((bounce.addr + address - region.addr, length, bounce.lkey))
        return tuple(found)

    def _of(self, memory: MemoryTable, region: MemoryRegion) -> MemoryRegion:
        bounce = self._by_region.get(region)
        if bounce is None:
            buffer = bytearray(max(region.length, 1))
            start = self._space.reserve(len(buffer), 4096)
            self._space.map(start, buffer)
            bounce = self._by_region[region] = memory.adopt(buffer, start, region)
        return bounce
