"""What a request's opcode says of its place in a message, as bits: one lookup a frame."""

from __future__ import annotations

from emu import opcodes

WRITES, SENDS, STARTS, ENDS, HAS_IMMEDIATE, INVALIDATES, READ, ATOMIC = (1 << bit for bit in range(8))

_RC = {
    opcodes.SEND_FIRST: SENDS | STARTS,
    opcodes.SEND_MIDDLE: SENDS,
    opcodes.SEND_LAST: SENDS | ENDS,
    opcodes.SEND_LAST_WITH_IMMEDIATE: SENDS | ENDS | HAS_IMMEDIATE,
    opcodes.SEND_LAST_WITH_INVALIDATE: SENDS | ENDS | INVALIDATES,
    opcodes.SEND_ONLY: SENDS | STARTS | ENDS,
    opcodes.SEND_ONLY_WITH_IMMEDIATE: SENDS | STARTS | ENDS | HAS_IMMEDIATE,
    opcodes.SEND_ONLY_WITH_INVALIDATE: SENDS | STARTS | ENDS | INVALIDATES,
    opcodes.WRITE_FIRST: WRITES | STARTS,
    opcodes.WRITE_MIDDLE: WRITES,
    opcodes.WRITE_LAST: WRITES | ENDS,
    opcodes.WRITE_LAST_WITH_IMMEDIATE: WRITES | ENDS | HAS_IMMEDIATE,
    opcodes.WRITE_ONLY: WRITES | STARTS | ENDS,
    opcodes.WRITE_ONLY_WITH_IMMEDIATE: WRITES | STARTS | ENDS | HAS_IMMEDIATE,
    opcodes.READ_REQUEST: READ | STARTS | ENDS,
    opcodes.COMPARE_SWAP: ATOMIC | STARTS | ENDS,
    opcodes.FETCH_ADD: ATOMIC | STARTS | ENDS,
}
PLACE = [0] * 256
"""Of reliable connections; 0: no request of theirs."""
UC_PLACE = [0] * 256
"""Of unreliable connections: SENDs and WRITEs."""
for _opcode, _bits in _RC.items():
    PLACE[opcodes.RC | _opcode] = _bits
    if _bits & (SENDS | WRITES) and not _bits & INVALIDATES:
        UC_PLACE[opcodes.UC | _opcode] = _bits
