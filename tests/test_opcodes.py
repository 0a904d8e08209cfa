"""The opcode tables against the specification's table, written out again."""

from __future__ import annotations

import pytest

from emu import opcodes
from emu.opcodes import Position

# Opcode, name, bytes of headers after BTH, payload, position.
ROWS = [
    (0x00, "RC SEND First", 0, True, Position.FIRST),
    (0x03, "RC SEND Last with Immediate", 4, True, Position.LAST),
    (0x06, "RC RDMA Write First", 16, True, Position.FIRST),
    (0x07, "RC RDMA Write Middle", 0, True, Position.MIDDLE),
    (0x08, "RC RDMA Write Last", 0, True, Position.LAST),
    (0x0A, "RC RDMA Write Only", 16, True, Position.ONLY),
    (0x0B, "RC RDMA Write Only with Immediate", 20, True, Position.ONLY),
    (0x0C, "RC RDMA Read Request", 16, False, Position.ONLY),
    (0x0E, "RC RDMA Read Response Middle", 0, True, Position.MIDDLE),
    (0x11, "RC Acknowledge", 4, False, Position.ONLY),
    (0x12, "RC Atomic Acknowledge", 12, False, Position.ONLY),
    (0x14, "RC Fetch Add", 28, False, Position.ONLY),
    (0x2B, "UC RDMA Write Only with Immediate", 20, True, Position.ONLY),
    (0x4A, "RD RDMA Write Only", 28, True, Position.ONLY),
    (0x4E, "RD RDMA Read Response Middle", 4, True, Position.MIDDLE),
    (0x52, "RD Atomic Acknowledge", 16, False, Position.ONLY),
    (0x54, "RD Fetch Add", 40, False, Position.ONLY),
    (0x64, "UD SEND Only", 8, True, Position.ONLY),
    (0xA6, "XRC RDMA Write First", 20, True, Position.FIRST),
    (0xAD, "XRC RDMA Read Response First", 4, True, Position.FIRST),
    (0x81, "CNP", 16, False, Position.ONLY),
]


@pytest.mark.parametrize(("code", "name", "size", "has_payload", "position"), ROWS, ids=[row[1] for row in ROWS])
def test_table(code: int, name: str, size: int, has_payload: bool, position: Position) -> None:
    assert opcodes.NAMES[code] == name
    assert opcodes.EXTENSION_BYTES[code] == size
    assert opcodes.HAS_PAYLOAD[code] is has_payload
    assert opcodes.OPERATIONS[code].position is position


def test_every_byte_has_an_entry() -> None:
    for table in (
        opcodes.NAMES,
        opcodes.EXTENSIONS,
        opcodes.EXTENSION_BYTES,
        opcodes.HAS_PAYLOAD,
        opcodes.CARRIES_DATA,
    ):
        assert len(table) == 256
    assert opcodes.NAMES[0x15] == "opcode 0x15"
    assert opcodes.EXTENSION_BYTES[0xFF] == 0


def test_what_carries_data() -> None:
    answers = [code for code in opcodes.OPERATIONS if not opcodes.CARRIES_DATA[code]]
    assert sorted(answers) == [0x11, 0x12, 0x51, 0x52, 0x81, 0xB1, 0xB2]
    assert not opcodes.CARRIES_DATA[0x15]


def test_transports_offer_what_they_may() -> None:
    by_transport = {
        prefix: sorted(code - prefix for code in opcodes.OPERATIONS if code & 0xE0 == prefix)
        for prefix in (opcodes.RC, opcodes.UC, opcodes.RD, opcodes.UD, opcodes.XRC)
    }
    assert by_transport[opcodes.RC] == [*range(0x15), 0x16, 0x17, 0x1C, 0x1D]
    assert by_transport[opcodes.UC] == list(range(0x0C))
    assert by_transport[opcodes.RD] == list(range(0x15))
    assert by_transport[opcodes.UD] == [4, 5]
    assert by_transport[opcodes.XRC] == [*range(0x15), 0x16, 0x17]
