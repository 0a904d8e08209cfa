"""Frames shaped to get past the first checks: the victim's queue pair, numbers near its own, keys that it knows."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from emu import opcodes
from emu.frame import Envelope, Frame
from emu.framing.extension import LAYOUTS
from emu.transport.memory import Access, MemoryRegion
from emu.transport.place import ENDS, PLACE, READ, SENDS, STARTS
from emu.transport.psn import HALF, PSN_MASK

REQUESTS = {
    transport: [transport | base for base in range(32) if PLACE[base] and transport | base in opcodes.OPERATIONS]
    for transport in (opcodes.RC, opcodes.UC, opcodes.UD)
}
ANSWERS = sorted((*opcodes.RESPONSES, opcodes.ACKNOWLEDGE))
ANY = sorted(opcodes.OPERATIONS)
LENGTHS = (0, 1, 7, 8, 2**24, 2**31 - 1, 2**31, 2**32 - 1)
SYNDROMES = (0x1F, 0x1F, 0x00, 0x05, 0x20, 0x21, 0x3F, 0x60, 0x60, 0x61, 0x62, 0x63, 0x64, 0x65, 0x7F, 0x80, 0xFF)
WORD = 2**32 - 1
REMOTE_READ, REMOTE_WRITE, REMOTE_ATOMIC = (
    int(access) for access in (Access.REMOTE_READ, Access.REMOTE_WRITE, Access.REMOTE_ATOMIC)
)


@dataclass(frozen=True, slots=True)
class Aim:
    """What an attacker who sees everything knows of one queue pair, or of machines alone.

    `expected`: the PSN its responder waits for; `asked`: the first and last that its requester waits for an answer to;
    `amid`: what its responder has begun and not ended, SENDS or STARTS (a WRITE), and the bytes left of a WRITE.
    """

    envelope: Envelope
    transport: int
    mtu_bytes: int
    qkey: int
    regions: Sequence[MemoryRegion]
    expected: Callable[[], int]
    asked: Callable[[], tuple[int, int]]
    amid: Callable[[], tuple[int, int]]


def shot(numbers: random.Random, aim: Aim, known: Sequence[Frame]) -> Frame:
    """One frame; a quarter of them keep what a real one said but for its numbers."""
    like = numbers.choice(known) if numbers.random() < 0.25 else None
    kind, left_bytes = aim.amid()
    opcode = like.opcode if like is not None else _opcode(numbers, aim.transport, kind)
    place = PLACE[opcode & opcodes.OPERATION_MASK]
    payload = b""
    if opcodes.HAS_PAYLOAD[opcode]:
        payload = bytes(like.payload) if like is not None else _payload(numbers, aim.mtu_bytes, place, left_bytes)
    frame = Frame(aim.envelope, opcode, _psn(numbers, aim, opcode), payload)
    names = opcodes.EXTENSIONS[opcode]
    if "RETH" in names:
        keep = like is not None and like.reth is not None and numbers.random() < 0.5
        frame.reth = like.reth if keep and like is not None else _reth(numbers, aim, place, len(payload))
    if "AETH" in names:
        frame.aeth = (numbers.choice(SYNDROMES), numbers.randrange(8) if numbers.random() < 0.8 else PSN_MASK)
    frame.extension = _extension(numbers, aim, names)
    bits = numbers.getrandbits(8)
    frame.ack_request, frame.solicited = bits & 1 == 1, bits & 2 == 2
    frame.fecn, frame.becn = bits & 28 == 28, bits & 224 == 224
    return frame


def _opcode(numbers: random.Random, transport: int, amid: int) -> int:
    choice = numbers.random()
    if choice < 0.04:
        return numbers.choice(ANY)
    if choice < 0.3 and transport == opcodes.RC:
        return opcodes.CNP if choice < 0.05 else numbers.choice(ANSWERS)
    requests = REQUESTS[transport]
    if amid and choice < 0.8:
        going_on = [each for each in requests if _goes_on(PLACE[each & opcodes.OPERATION_MASK], amid)]
        return numbers.choice(going_on or requests)
    return numbers.choice(requests)


def _goes_on(place: int, amid: int) -> bool:
    return not place & STARTS and bool(place & SENDS) == (amid == SENDS)


def _payload(numbers: random.Random, mtu_bytes: int, place: int, left_bytes: int) -> bytes:
    if numbers.random() < 0.1:
        return numbers.randbytes(numbers.choice((0, 1, mtu_bytes - 1, mtu_bytes + 1, 2 * mtu_bytes)))
    if not place & ENDS:
        return numbers.randbytes(mtu_bytes)
    if not place & STARTS and left_bytes and numbers.random() < 0.8:
        return numbers.randbytes(min(left_bytes, 2 * mtu_bytes))
    return numbers.randbytes(numbers.choice((0, 1, 3, mtu_bytes - 1, mtu_bytes)))


def _psn(numbers: random.Random, aim: Aim, opcode: int) -> int:
    choice = numbers.random()
    if opcode in ANSWERS:
        first, last = aim.asked()
        psn = numbers.randint(first - 2, last + 2) if choice < 0.6 else first
    else:
        psn = aim.expected()
        if choice > 0.75:
            psn += numbers.choice((-1, -1, -1, 1, 2, -numbers.randrange(40)))
    if choice > 0.96:
        psn = numbers.choice((psn + HALF, psn - HALF + 1, numbers.getrandbits(24)))
    return psn & PSN_MASK


def _reth(numbers: random.Random, aim: Aim, place: int, payload_bytes: int) -> tuple[int, int, int]:
    region, choice = _region(numbers, aim, REMOTE_READ if place & READ else REMOTE_WRITE), numbers.random()
    if place & READ or not place & ENDS:
        length = numbers.choice((aim.mtu_bytes + 1, 2 * aim.mtu_bytes, 3 * aim.mtu_bytes + 5, region.length, 0))
    else:
        length = payload_bytes
    if choice < 0.1:
        length = numbers.choice(LENGTHS)
    return (_address(numbers, region, length), _key(numbers, region), length)


def _region(numbers: random.Random, aim: Aim, access: int) -> MemoryRegion:
    """More often than not one that grants what is asked for."""
    granting = [region for region in aim.regions if region.access & access]
    return numbers.choice(granting if numbers.random() < 0.6 else aim.regions)


def _address(numbers: random.Random, region: MemoryRegion, length: int) -> int:
    choice = numbers.random()
    if choice < 0.4:
        return region.addr
    if choice < 0.8:
        return region.addr + max(0, region.length - length)
    end = region.addr + region.length
    return numbers.choice((region.addr - 1, end - 1, end, end - length + 1, 0, 2**64 - 1, 2**64 - length)) % 2**64


def _key(numbers: random.Random, region: MemoryRegion) -> int:
    return region.rkey if numbers.random() < 0.93 else numbers.choice((0, WORD, region.rkey ^ 1, region.rkey + 0x101))


def _extension(numbers: random.Random, aim: Aim, names: Sequence[str]) -> tuple[int, ...] | None:
    fields: list[int] = []
    for name in names:
        if name == "DETH":
            fields += (aim.qkey if numbers.random() < 0.8 else numbers.getrandbits(32), numbers.getrandbits(24))
        elif name == "AtomicETH":
            region = _region(numbers, aim, REMOTE_ATOMIC)
            at = region.addr + numbers.randrange(0, region.length + 16, 8 if numbers.random() < 0.9 else 1)
            fields += (at, _key(numbers, region), numbers.getrandbits(64), numbers.getrandbits(numbers.choice((1, 64))))
        elif name == "IETH":
            fields.append(numbers.choice(aim.regions).rkey if numbers.random() < 0.02 else numbers.getrandbits(32))
        elif name == "FETH":
            fields += (numbers.randrange(4), numbers.randrange(16))
        elif name in LAYOUTS and name not in ("RETH", "AETH"):
            fields.append(numbers.getrandbits(24 if name in ("RDETH", "XRCETH") else 32))
    return tuple(fields) or None
