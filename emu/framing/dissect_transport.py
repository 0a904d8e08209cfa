"""From BTH to ICRC of a captured packet: what it says, and whether its ICRC is right."""

from __future__ import annotations

from collections.abc import Callable

from emu.crc import ICRC_BYTES
from emu.framing import bth, extension, summary
from emu.framing.dissection import Dissection, Subject, Verdict
from emu.opcodes import EXTENSION_BYTES, HAS_PAYLOAD, NAMES, OPERATIONS

Icrc = Callable[[memoryview], int]


def dissect_transport(frame: Subject, packet: int, start: int, end: int, icrc: Icrc) -> Dissection:
    """BTH at `start`, ICRC up to `end`; the ICRC counts from `packet` on, where a network or link header is."""
    data, found = frame.data, frame.found
    found.setdefault("frame_bytes", end)
    if end < start + bth.BTH_BYTES + ICRC_BYTES:
        problem = f"{end - start} B have no room for a BTH and an ICRC"
        return frame.end(icrc="bad", problem=problem, info=problem)
    found["icrc"] = _icrc_verdict(frame, packet, end, icrc)
    if len(data) < start + bth.BTH_BYTES:
        return frame.end(info="BTH cut short")
    _read_bth(frame, start, end)
    return frame.end()


def _icrc_verdict(frame: Subject, packet: int, end: int, icrc: Icrc) -> Verdict:
    data = frame.data
    if len(data) < end:
        if not frame.cut:
            frame.found.setdefault("problem", f"{end} B announced, {len(data)} B there")
        return "unchecked" if frame.cut else "bad"
    right = icrc(memoryview(data)[packet : end - ICRC_BYTES]).to_bytes(ICRC_BYTES, "little")
    return "ok" if data[end - ICRC_BYTES : end] == right else "bad"


def _read_bth(frame: Subject, start: int, end: int) -> None:
    data, found = frame.data, frame.found
    opcode, flags, pkey, address, sequence = bth.BTH.unpack_from(data, start)
    pad_bytes = flags >> bth.PAD_SHIFT & 3
    after_bth = start + bth.BTH_BYTES
    headers = extension.read(opcode, data, after_bth, min(end - ICRC_BYTES, len(data)))
    payload = after_bth + EXTENSION_BYTES[opcode]
    payload_end = end - ICRC_BYTES - pad_bytes
    found.update(
        opcode=opcode,
        opcode_name=NAMES[opcode],
        destination_qp=address & bth.LOW_24,
        psn=sequence & bth.LOW_24,
        ack_request=sequence >> 31 == 1,
        solicited=flags & bth.SOLICITED != 0,
        migreq=flags & bth.MIGRATED != 0,
        pad_bytes=pad_bytes,
        pkey=pkey,
        fecn=address & bth.FECN != 0,
        becn=address & bth.BECN != 0,
        headers={name.lower(): header for name, header in headers.items()},
        payload=data[payload : max(payload, payload_end)],
    )
    if flags & bth.VERSION_MASK:
        found.setdefault("problem", f"transport version {flags & bth.VERSION_MASK}")
    elif opcode not in OPERATIONS:
        found.setdefault("problem", f"{NAMES[opcode]}: nobody sends this")
    elif payload_end < payload:
        found.setdefault("problem", f"{NAMES[opcode]} has no room for its headers and padding")
    elif payload_end > payload and not HAS_PAYLOAD[opcode]:
        found.setdefault("problem", f"{NAMES[opcode]} with {payload_end - payload} B of payload")
    found["info"] = summary.transport_line(opcode, found, max(0, payload_end - payload))
