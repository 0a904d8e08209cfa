"""Memory of a host under attack: one region for each right, and what may change in it by which frame."""

from __future__ import annotations

import random

from emu import opcodes
from emu.transport.memory import Access, MemoryRegion, MemoryTable
from emu.transport.place import ATOMIC, PLACE, READ, SENDS
from emu.transport.work import Scatter

SLOTS, SLOT_BYTES, GUARD_BYTES = 6, 700, 36
UD_SENDS = (opcodes.UD | opcodes.SEND_ONLY, opcodes.UD | opcodes.SEND_ONLY_WITH_IMMEDIATE)
LOCAL = Access.LOCAL_WRITE


class Store:
    """`slots` of two regions may be filled, by messages and by what is fetched; what lies between them may not."""

    def __init__(self, memory: MemoryTable, numbers: random.Random) -> None:
        room = SLOTS * (SLOT_BYTES + GUARD_BYTES) + GUARD_BYTES
        self.secret = memory.register(1024, LOCAL)
        self.readable = memory.register(3001, LOCAL | Access.REMOTE_READ)
        self.writable = memory.register(2503, LOCAL | Access.REMOTE_WRITE)
        self.atomic = memory.register(256, LOCAL | Access.REMOTE_ATOMIC)
        self.inbox = memory.register(room, LOCAL)
        self.fetched = memory.register(room, LOCAL)
        self.source = memory.register(3000, Access(0))
        self.regions = (
            *(self.secret, self.readable, self.writable, self.atomic),
            *(self.inbox, self.fetched, self.source),
        )
        for region in self.regions:
            region.buffer[:] = numbers.randbytes(region.length)
        self._never = [(region, bytes(region.buffer)) for region in (self.secret, self.readable, self.source)]
        self._guards = [(region, guards(region)) for region in (self.inbox, self.fetched)]

    def slot(self, region: MemoryRegion, number: int) -> tuple[int, int]:
        """Address and length of a place that may be filled."""
        return region.addr + GUARD_BYTES + number * (SLOT_BYTES + GUARD_BYTES), SLOT_BYTES

    def sink(self, region: MemoryRegion, number: int, length: int = SLOT_BYTES) -> Scatter:
        """A slot, to receive into."""
        return Scatter([region.slice(self.slot(region, number)[0], length)])

    def look(self) -> tuple[bytes, ...]:
        """What is in the regions now."""
        return tuple(bytes(region.buffer) for region in self.regions)

    def check(self, opcode: int | None, before: tuple[bytes, ...], *held: int) -> None:
        """Nothing changed but where a frame of that opcode (None: no frame) may write, or of what awaited it."""
        allowed = [self._target(each) for each in (opcode, *held)]
        for region, was in zip(self.regions, before, strict=True):
            assert region in allowed or region.buffer == was, f"memory changed that may not: {self._name(region)}"

    def check_all(self) -> None:
        """What nothing may ever change is as it was."""
        for region, was in self._never:
            assert region.buffer == was, f"memory changed that may not: {self._name(region)}"
        for region, was in self._guards:
            assert guards(region) == was, f"memory changed around the slots of {self._name(region)}"

    def _name(self, region: MemoryRegion) -> str:
        return next(name for name, value in vars(self).items() if value is region)

    def _target(self, opcode: int | None) -> MemoryRegion | None:
        if opcode is None:
            return None
        if opcode in opcodes.RESPONSES:
            return self.fetched
        if opcode in UD_SENDS:
            return self.inbox
        place = PLACE[opcode & opcodes.OPERATION_MASK]
        if not place or place & READ or opcode & opcodes.TRANSPORT_MASK not in (opcodes.RC, opcodes.UC):
            return None
        if place & ATOMIC:
            return self.atomic
        return self.inbox if place & SENDS else self.writable


def guards(region: MemoryRegion) -> bytes:
    """The bytes around the slots."""
    step = SLOT_BYTES + GUARD_BYTES
    return b"".join(region.buffer[start : start + GUARD_BYTES] for start in range(0, region.length, step))
