"""What an atomic does to eight bytes of memory (IBTA vol. 1, 9.4.5)."""

from __future__ import annotations

from emu import opcodes

WORD = 1 << 64


def act(place: memoryview, opcode: int, swap_or_add: int, compare: int) -> int:
    """Act on the eight bytes at `place`, in this machine's order of bytes; returns what was there."""
    original = int.from_bytes(place, "little")
    if opcode & opcodes.OPERATION_MASK == opcodes.FETCH_ADD:
        place[:] = ((original + swap_or_add) % WORD).to_bytes(len(place), "little")
    elif original == compare:
        place[:] = swap_or_add.to_bytes(len(place), "little")
    return original
