"""Frames as a hostile or broken network would send them: mutated, spliced, cut, random; some with check sums made right
again, so that what lies behind the check is reached too."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from emu.addresses import address_of
from emu.crc import icrc_local, icrc_roce_ipv4, vcrc
from emu.frame import Frame
from emu.framing.control import Fcp, Pause, encode, encode_fcp, pfc
from emu.framing.native import NativeFraming
from emu.opcodes import EXTENSION_BYTES, HAS_PAYLOAD, OPERATIONS
from tests.golden_frames import GOLDEN, SAMPLE_GLOBAL, SAMPLE_LOCAL, captured

NATIVE_ETHERNET = bytes.fromhex("02000000000202000000000188b5")
INTERESTING = (0x00, 0x01, 0x7F, 0x80, 0xFF, 0x45, 0x11, 0x81, 0x88)
LARGEST_BYTES = 9216


def seeds(shared_data: Path | None) -> list[bytes]:
    """Whole frames of every kind, to be mangled."""
    framing = NativeFraming(0)
    envelope = framing.envelope(address_of("h0", 0), address_of("h1", 1), destination_qp=1, source_qp=2)
    ack = Frame(envelope, 0x11, 5, aeth=(0x1F, 7))
    found = [*GOLDEN.values(), NATIVE_ETHERNET + SAMPLE_LOCAL, NATIVE_ETHERNET + SAMPLE_GLOBAL, framing.encode(ack)]
    found += [SAMPLE_LOCAL, SAMPLE_GLOBAL, encode_fcp(Fcp(1, 3, 0, 0x7FF))]
    found += [encode(control) for control in (pfc(1, {3: 5}), Pause(1, 9), Fcp(0, 0, 1, 2))]
    found *= 8  # else the captured ones, which are all RoCEv2, would crowd them out
    if shared_data is not None:
        for path in sorted((shared_data / "captures").glob("*.pcap")):
            found += list(captured(path))[:8]
    return found


def frames(numbers: random.Random, corpus: Sequence[bytes], count: int) -> Iterator[bytes]:
    """`count` frames: a tenth random bytes, the rest mangled, a third of all with check sums made right again."""
    for _ in range(count):
        choice = numbers.random()
        if choice < 0.1:
            data = bytearray(numbers.randbytes(numbers.choice((0, 5, 13, 14, 30, 60, 200, 1500))))
        else:
            data = bytearray(numbers.choice(corpus))
            for _ in range(numbers.choice((0, 1, 1, 2, 4))):
                _mangle(numbers, data, corpus)
        if choice > 0.7:
            _repair(numbers, data)
        yield bytes(data)


def _mangle(numbers: random.Random, data: bytearray, corpus: Sequence[bytes]) -> None:
    kind = numbers.randrange(7)
    place = numbers.randrange(len(data)) if data else 0
    if kind == 0 and data:
        data[place] ^= 1 << numbers.randrange(8)
    elif kind == 1 and data:
        data[place] = numbers.choice(INTERESTING)
    elif kind == 2:
        del data[place:]
    elif kind == 3:
        data += numbers.randbytes(numbers.choice((1, 4, 40)))
    elif kind == 4:
        other = numbers.choice(corpus)
        data[place:] = other[numbers.randrange(len(other)) :]
    elif kind == 5:
        data[place:place] = data[: numbers.choice((1, 4, 300))]
    else:
        data[place : place + 2] = numbers.randbytes(2)
    del data[LARGEST_BYTES:]


def _repair(numbers: random.Random, data: bytearray) -> None:
    """Lengths and check sums as they should be, where this is a RoCEv2 or a local native frame; any opcode."""
    if len(data) > 58 and data[12:15] == b"\x08\x00\x45":
        _reshape(numbers, data, 42, 4)
        data[16:18] = (len(data) - 14).to_bytes(2, "big")
        data[20:24] = b"\x40\0\x40\x11"
        data[24:26] = bytes(2)
        total = sum(int.from_bytes(data[place : place + 2], "big") for place in range(14, 34, 2))
        data[24:26] = (-total % 0xFFFF).to_bytes(2, "big")
        data[36:42] = (4791).to_bytes(2, "big") + (len(data) - 34).to_bytes(2, "big") + bytes(2)
        data[-4:] = icrc_roce_ipv4(data[14:-4]).to_bytes(4, "little")
    elif len(data) > 44 and data[12:14] == b"\x88\xb5" and len(data) < 8000:
        _reshape(numbers, data, 22, 6)
        data[14:16] = bytes((data[14] & 0xF0, data[15] & 0xF0 | 2))
        data[18:20] = ((len(data) - 16) // 4).to_bytes(2, "big")
        data[-6:-2] = icrc_local(data[14:-6]).to_bytes(4, "little")
        data[-2:] = vcrc(data[14:-2]).to_bytes(2, "little")


def _reshape(numbers: random.Random, data: bytearray, bth: int, trailer: int) -> None:
    """Another opcode half the time, with room for its headers; whole words; a transport version that exists."""
    if numbers.random() < 0.5:
        data[bth] = opcode = numbers.choice(list(OPERATIONS))
        if not HAS_PAYLOAD[opcode]:
            data[bth + 1] &= 0x0F
            del data[bth + 12 + EXTENSION_BYTES[opcode] + trailer :]
        data += bytes(max(0, bth + 12 + EXTENSION_BYTES[opcode] + trailer - len(data)))
    data += bytes(-(len(data) - bth - (trailer - 4)) % 4)
    data[bth + 1] &= 0xF0
