"""What each BTH opcode is: its name, the headers after BTH, whether a payload follows (IBTA vol. 1, 9.2 and table 38).

The tables have an entry for each of the 256 opcode bytes, so that a lookup is one index; opcodes nobody defined have no
headers and a name that says their number."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

RC = 0x00
UC = 0x20
RD = 0x40
UD = 0x60
XRC = 0xA0
TRANSPORT_MASK = 0xE0
OPERATION_MASK = 0x1F

SEND_FIRST = 0x00
SEND_MIDDLE = 0x01
SEND_LAST = 0x02
SEND_LAST_WITH_IMMEDIATE = 0x03
SEND_ONLY = 0x04
SEND_ONLY_WITH_IMMEDIATE = 0x05
WRITE_FIRST = 0x06
WRITE_MIDDLE = 0x07
WRITE_LAST = 0x08
WRITE_LAST_WITH_IMMEDIATE = 0x09
WRITE_ONLY = 0x0A
WRITE_ONLY_WITH_IMMEDIATE = 0x0B
READ_REQUEST = 0x0C
READ_RESPONSE_FIRST = 0x0D
READ_RESPONSE_MIDDLE = 0x0E
READ_RESPONSE_LAST = 0x0F
READ_RESPONSE_ONLY = 0x10
ACKNOWLEDGE = 0x11
ATOMIC_ACKNOWLEDGE = 0x12
COMPARE_SWAP = 0x13
FETCH_ADD = 0x14
SEND_LAST_WITH_INVALIDATE = 0x16
SEND_ONLY_WITH_INVALIDATE = 0x17
FLUSH = 0x1C
ATOMIC_WRITE = 0x1D
CNP = 0x81  # RoCEv2's congestion notification (annex A17): a class of its own

HEADER_BYTES = {
    "RETH": 16,
    "AETH": 4,
    "ImmDt": 4,
    "IETH": 4,
    "AtomicETH": 28,
    "AtomicAckETH": 8,
    "DETH": 8,
    "RDETH": 4,
    "XRCETH": 4,
    "FETH": 4,
    "CNPReserved": 16,
}
"""Sizes of what may follow BTH. A CNP's 16 zero bytes count as a header: they are no payload."""


class Position(Enum):
    """Where in its message a packet stands."""

    FIRST = "first"
    MIDDLE = "middle"
    LAST = "last"
    ONLY = "only"


@dataclass(frozen=True, slots=True)
class Operation:
    """One opcode. `name` is as analysers print it, `headers` are keys of HEADER_BYTES in wire order."""

    code: int
    name: str
    headers: tuple[str, ...]
    has_payload: bool  # whether one may follow; it may still be empty
    position: Position


# The RC opcodes: operation, headers, payload. Their position is the word in their name; the rest are `only`.
_RC: dict[int, tuple[str, str, bool]] = {
    SEND_FIRST: ("SEND First", "", True),
    SEND_MIDDLE: ("SEND Middle", "", True),
    SEND_LAST: ("SEND Last", "", True),
    SEND_LAST_WITH_IMMEDIATE: ("SEND Last with Immediate", "ImmDt", True),
    SEND_ONLY: ("SEND Only", "", True),
    SEND_ONLY_WITH_IMMEDIATE: ("SEND Only with Immediate", "ImmDt", True),
    WRITE_FIRST: ("RDMA Write First", "RETH", True),
    WRITE_MIDDLE: ("RDMA Write Middle", "", True),
    WRITE_LAST: ("RDMA Write Last", "", True),
    WRITE_LAST_WITH_IMMEDIATE: ("RDMA Write Last with Immediate", "ImmDt", True),
    WRITE_ONLY: ("RDMA Write Only", "RETH", True),
    WRITE_ONLY_WITH_IMMEDIATE: ("RDMA Write Only with Immediate", "RETH ImmDt", True),
    READ_REQUEST: ("RDMA Read Request", "RETH", False),
    READ_RESPONSE_FIRST: ("RDMA Read Response First", "AETH", True),
    READ_RESPONSE_MIDDLE: ("RDMA Read Response Middle", "", True),
    READ_RESPONSE_LAST: ("RDMA Read Response Last", "AETH", True),
    READ_RESPONSE_ONLY: ("RDMA Read Response Only", "AETH", True),
    ACKNOWLEDGE: ("Acknowledge", "AETH", False),
    ATOMIC_ACKNOWLEDGE: ("Atomic Acknowledge", "AETH AtomicAckETH", False),
    COMPARE_SWAP: ("Compare Swap", "AtomicETH", False),
    FETCH_ADD: ("Fetch Add", "AtomicETH", False),
    SEND_LAST_WITH_INVALIDATE: ("SEND Last with Invalidate", "IETH", True),
    SEND_ONLY_WITH_INVALIDATE: ("SEND Only with Invalidate", "IETH", True),
    FLUSH: ("Flush", "FETH RETH", False),
    ATOMIC_WRITE: ("Atomic Write", "RETH", True),
}
_RESPONSES = range(READ_RESPONSE_FIRST, ATOMIC_ACKNOWLEDGE + 1)
_ACKNOWLEDGES = (ACKNOWLEDGE, ATOMIC_ACKNOWLEDGE)
# What stands before an operation's own headers on the transports that are not connected one to one.
_FIRST_OF_REQUESTS = {"UD": ("DETH",), "RD": ("RDETH", "DETH"), "XRC": ("XRCETH",)}
_FIRST_OF_RESPONSES = {"RD": ("RDETH",)}


def _operation(transport: str, prefix: int, base: int) -> Operation:
    name, headers, has_payload = _RC[base]
    first = _FIRST_OF_RESPONSES if base in _RESPONSES else _FIRST_OF_REQUESTS
    position = next((place for place in Position if place.value.title() in name.split()), Position.ONLY)
    following = first.get(transport, ()) + tuple(headers.split())
    return Operation(prefix | base, f"{transport} {name}", following, has_payload, position)


def _all_operations() -> dict[int, Operation]:
    bases = {
        ("RC", RC): list(_RC),
        ("UC", UC): list(range(SEND_FIRST, WRITE_ONLY_WITH_IMMEDIATE + 1)),
        ("RD", RD): list(range(SEND_FIRST, FETCH_ADD + 1)),
        ("UD", UD): [SEND_ONLY, SEND_ONLY_WITH_IMMEDIATE],
        ("XRC", XRC): [base for base in _RC if base not in (FLUSH, ATOMIC_WRITE)],
    }
    known = [_operation(transport, prefix, base) for (transport, prefix), group in bases.items() for base in group]
    known.append(Operation(CNP, "CNP", ("CNPReserved",), False, Position.ONLY))
    return {operation.code: operation for operation in known}


OPERATIONS = _all_operations()
"""Every opcode we know, by its byte."""

_BY_BYTE = tuple(OPERATIONS.get(code) for code in range(256))

NAMES = tuple(known.name if known else f"opcode 0x{code:02x}" for code, known in enumerate(_BY_BYTE))
EXTENSIONS = tuple(known.headers if known else () for known in _BY_BYTE)
EXTENSION_BYTES = tuple(sum(HEADER_BYTES[header] for header in headers) for headers in EXTENSIONS)
HAS_PAYLOAD = tuple(known is None or known.has_payload for known in _BY_BYTE)
CARRIES_DATA = tuple(
    known is not None and known.code != CNP and known.code % 32 not in _ACKNOWLEDGES for known in _BY_BYTE
)
"""Whether a frame is a request or a READ response: what moves data, as against what only answers."""
RESPONSES = frozenset((*range(READ_RESPONSE_FIRST, READ_RESPONSE_ONLY + 1), ATOMIC_ACKNOWLEDGE))
"""What brings back what a READ or an atomic of a reliable connection asked for."""
ASKS = frozenset((READ_REQUEST, COMPARE_SWAP, FETCH_ADD))
"""What asks for it."""
