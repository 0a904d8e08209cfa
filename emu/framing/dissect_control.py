"""Captured link flow control: PFC, PAUSE and flow-control packets, also those that say something impossible."""

from __future__ import annotations

from typing import NamedTuple

from emu.crc import VCRC_BYTES, vcrc
from emu.errors import InvariantBroken, WireError
from emu.framing import control, summary
from emu.framing.dissection import Dissection, Subject


class PfcHeader(NamedTuple):
    """PFC: bit n says that priority n is meant, and for how many quanta it pauses."""

    enabled: int
    quanta: tuple[int, ...]


class PauseHeader(NamedTuple):
    """PAUSE of a whole link."""

    quanta: int


class FcpHeader(NamedTuple):
    """A flow-control packet, its LPCRC aside."""

    op: int
    vl: int
    fctbs: int
    fccl: int


def dissect_mac_control(frame: Subject, start: int) -> Dissection:
    """An Ethernet frame of EtherType 0x8808, whose opcode is at `start`."""
    data = frame.data
    frame.found["frame_bytes"] = frame.original_bytes
    if len(data) < start + control.OPCODE.size:
        return frame.other("MAC control cut short")
    (opcode,) = control.OPCODE.unpack_from(data, start)
    if opcode not in (control.OPCODE_PFC, control.OPCODE_PAUSE):
        return frame.other(f"MAC control opcode 0x{opcode:04x}")
    frame.found["network"] = "pfc" if opcode == control.OPCODE_PFC else "pause"
    try:
        said = control.decode(data)
    except WireError as error:
        return frame.end(problem="" if frame.cut else str(error), info=str(error))
    if isinstance(said, control.Pfc):
        headers = {"pfc": PfcHeader(said.enabled, said.quanta)}
        return frame.end(headers=headers, info=summary.pfc_line(said.enabled, said.quanta))
    if isinstance(said, control.Pause):
        return frame.end(headers={"pause": PauseHeader(said.quanta)}, info=summary.pause_line(said.quanta))
    raise InvariantBroken(f"a MAC control frame is {said}")


def dissect_link_control(frame: Subject, start: int) -> Dissection:
    """A frame of EtherType 0x88B6, whose kind is at `start`."""
    kind = frame.data[start : start + 1]
    if not kind:
        return frame.other("link control cut short")
    if kind[0] == control.KIND_TLP:  # what it says, emu/pcie/dissect.py knows
        start += 1
        size_bytes = frame.original_bytes - start
        return frame.end(network="tlp", frame_bytes=size_bytes, payload=frame.data[start:], info="PCIe TLP")
    return dissect_fcp(frame, start + 1) if kind[0] == control.KIND_FCP else frame.other(f"link control kind {kind[0]}")


def dissect_fcp(frame: Subject, start: int = 0) -> Dissection:
    """A flow-control packet at `start`; its LPCRC's verdict is the VCRC's."""
    packet, found = frame.data[start : start + control.FCP_BYTES], frame.found
    found.update(network="fcp", frame_bytes=start + control.FCP_BYTES)
    if len(packet) < control.FCP_BYTES:
        problem = "" if frame.cut else "cut short"
        return frame.end(vcrc="unchecked" if frame.cut else "bad", problem=problem, info="FCP cut short")
    fields = control.fcp_fields(packet)
    right = vcrc(packet[: control.FLOW.size]).to_bytes(VCRC_BYTES, "little")
    found["vcrc"] = "ok" if packet[control.FLOW.size :] == right else "bad"
    return frame.end(headers={"fcp": FcpHeader(*fields)}, virtual_lane=fields[1], info=summary.fcp_line(*fields))
