"""What RoCEv2 and native frames share: BTH and the headers after it, from Frame to bytes and back, by struct."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from emu.crc import ICRC_BYTES
from emu.errors import InvariantBroken, WireError
from emu.frame import Envelope, Frame
from emu.framing import extension
from emu.opcodes import (
    ACKNOWLEDGE,
    CARRIES_DATA,
    CNP,
    EXTENSION_BYTES,
    EXTENSIONS,
    HAS_PAYLOAD,
    NAMES,
    OPERATIONS,
    WRITE_FIRST,
    WRITE_LAST,
    WRITE_MIDDLE,
    WRITE_ONLY,
)

# IBTA vol. 1, 9.2: opcode; SE, M, PadCnt, TVer; P_Key; FECN, BECN, reserved, destination queue pair | A, PSN.
ADDRESS = Struct("!BBHI")  # the half of BTH that a queue pair's frames of one opcode and size share
SEQUENCE = Struct("!I")
BTH = Struct("!BBHII")
BTH_BYTES = BTH.size
RETH = Struct("!QII")  # virtual address, rkey, DMA length
AETH = Struct("!I")  # syndrome, MSN

SOLICITED = 0x80
MIGRATED = 0x40  # MigReq: what a queue pair without path migration sends (IBTA vol. 1, 17.2.8.1)
PAD_SHIFT = 4
VERSION_MASK = 0x0F
FECN = 1 << 31
BECN = 1 << 30
LOW_24 = extension.LOW_24

PREPARED = (WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_ONLY, ACKNOWLEDGE, CNP)  # what runs send so far
Pack = Callable[[Frame], bytes]
Template = tuple[bytes, int, bytes, Pack | None]
"""Of all frames of one queue pair, opcode, size and marks: the bytes up to A and PSN, the ICRC of those, the padding,
and what packs the headers after BTH (None: there are none)."""


class CrcError(WireError):
    """Bytes that changed on the way: ICRC or VCRC is wrong."""


def _pack_reth(frame: Frame) -> bytes:
    if frame.reth is None:
        raise InvariantBroken(f"{NAMES[frame.opcode]} without a RETH")
    return RETH.pack(*frame.reth)


def _pack_aeth(frame: Frame) -> bytes:
    if frame.aeth is None:
        raise InvariantBroken(f"{NAMES[frame.opcode]} without an AETH")
    syndrome, msn = frame.aeth
    return AETH.pack(syndrome << 24 | msn)


def _pack_reserved(frame: Frame) -> bytes:
    return bytes(EXTENSION_BYTES[frame.opcode])


def _pack_any(frame: Frame) -> bytes:
    """Every header of the opcode: RETH and AETH from fields of their own, all others from `extension`."""
    own: dict[str, tuple[int, ...] | None] = {"RETH": frame.reth, "AETH": frame.aeth}
    left = frame.extension or ()
    packed = b""
    for name in EXTENSIONS[frame.opcode]:
        layout = extension.LAYOUTS[name]
        if name in own:
            fields = own[name]
        else:
            fields, left = left[: layout.fields], left[layout.fields :]
        if fields is None or len(fields) != layout.fields:
            raise InvariantBroken(f"{NAMES[frame.opcode]} without a whole {name}")
        packed += layout.struct.pack(*layout.words(fields))
    if left:
        raise InvariantBroken(f"{NAMES[frame.opcode]} with {len(left)} fields too many")
    return packed


_PACK: dict[tuple[str, ...], Pack | None] = {
    (): None,
    ("RETH",): _pack_reth,
    ("AETH",): _pack_aeth,
    ("CNPReserved",): _pack_reserved,
}
"""What packs the headers after BTH, where it is not `_pack_any`: what most frames carry, and CNPs."""


def template_key(frame: Frame) -> int:
    """Equal for frames of a queue pair that differ in PSN, A bit, headers after BTH and payload only."""
    return frame.opcode | frame.becn << 8 | frame.fecn << 9 | frame.solicited << 10 | len(frame.payload) << 11


def pad_bytes(frame: Frame) -> int:
    """Bytes that fill the payload to whole words."""
    return -len(frame.payload) & 3


def pack_address(frame: Frame) -> bytes:
    """The first half of BTH. Raises InvariantBroken for a frame that no transport may send."""
    opcode = frame.opcode
    if opcode not in OPERATIONS:
        raise InvariantBroken(f"{NAMES[opcode]}: nobody sends this")
    if frame.payload and not HAS_PAYLOAD[opcode]:
        raise InvariantBroken(f"{NAMES[opcode]} with {len(frame.payload)} B of payload")
    flags = MIGRATED | frame.solicited * SOLICITED | pad_bytes(frame) << PAD_SHIFT
    marks = frame.fecn * FECN | frame.becn * BECN
    return ADDRESS.pack(opcode, flags, frame.envelope.pkey, marks | frame.envelope.destination_qp)


def template_of(frame: Frame, head: bytes, icrc_so_far: int) -> Template:
    """Keep what `head`, the bytes up to A and PSN, says for all frames like this one."""
    return head, icrc_so_far, bytes(pad_bytes(frame)), _PACK.get(EXTENSIONS[frame.opcode], _pack_any)


def check_extent(data: bytes, start: int, end: int) -> None:
    """Raise WireError unless `start` to `end` can be BTH to ICRC."""
    length = end - start
    if not BTH_BYTES + ICRC_BYTES <= length <= len(data) - start or length & 3:
        raise WireError(f"a transport packet of {length} B in a frame of {len(data)} B")


def unpack(data: bytes, start: int, end: int, envelope_of: Callable[[int, int], Envelope]) -> Frame:
    """The frame whose BTH begins at `start` and whose ICRC ends at `end`; `envelope_of(pkey, destination queue pair)`.

    Raises WireError for an opcode nobody sends, a wrong version or headers cut short."""
    opcode, flags, pkey, address, sequence = BTH.unpack_from(data, start)
    if opcode not in OPERATIONS:
        raise WireError(f"{NAMES[opcode]}: nobody sends this")
    if flags & VERSION_MASK:
        raise WireError(f"transport version {flags & VERSION_MASK}: only 0 exists")
    after_bth = start + BTH_BYTES
    begin = after_bth + EXTENSION_BYTES[opcode]
    finish = end - ICRC_BYTES - (flags >> PAD_SHIFT & 3)
    if finish < begin:
        raise WireError(f"{NAMES[opcode]} cut short by {begin - finish} B")
    if finish > begin and not HAS_PAYLOAD[opcode]:
        raise WireError(f"{NAMES[opcode]} with {finish - begin} B of payload")
    frame = Frame(
        envelope_of(pkey, address & LOW_24),
        opcode,
        sequence & LOW_24,
        data[begin:finish],
        ack_request=sequence >> 31 == 1,
    )
    headers = EXTENSIONS[opcode]
    if headers == ("RETH",):
        frame.reth = RETH.unpack_from(data, after_bth)
    elif headers == ("AETH",):
        (aeth,) = AETH.unpack_from(data, after_bth)
        frame.aeth = (aeth >> 24, aeth & LOW_24)
    elif headers:
        _unpack_any(frame, data, after_bth, begin)
    frame.solicited = flags & SOLICITED != 0
    frame.fecn = address & FECN != 0
    frame.becn = address & BECN != 0
    frame.carries_data = CARRIES_DATA[opcode]
    frame.data = data
    return frame


def _unpack_any(frame: Frame, data: bytes, start: int, end: int) -> None:
    found = extension.read(frame.opcode, data, start, end)
    reth, aeth = found.pop("RETH", None), found.pop("AETH", None)
    if reth is not None:
        frame.reth = (reth[0], reth[1], reth[2])
    if aeth is not None:
        frame.aeth = (aeth[0], aeth[1])
    frame.extension = tuple(field for header in found.values() for field in header) or None
