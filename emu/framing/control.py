"""Link flow control to bytes and back, by struct: PFC and PAUSE (IEEE 802.1Qbb, 802.3 annex 31B), InfiniBand's FCP.

A flow-control packet (IBTA vol. 1, 7.9.4) has delimiters of its own and no addresses; on a veth it rides EtherType
0x88B6 behind one byte that says what kind of control this is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from struct import Struct

from emu.crc import VCRC_BYTES, vcrc
from emu.errors import InvariantBroken, WireError
from emu.frame import ControlFrame, Envelope, Frame
from emu.framing.bth import CrcError

ETHERTYPE_MAC_CONTROL = 0x8808
ETHERTYPE_LINK_CONTROL = 0x88B6  # IEEE 802's second one for local experiments
CONTROL_MAC = 0x0180C2000001  # no bridge forwards what is sent there
OPCODE_PAUSE = 0x0001
OPCODE_PFC = 0x0101
KIND_FCP = 1
KIND_TLP = 2
PRIORITIES = 8
MAX_QUANTA = 0xFFFF
MIN_FRAME_BYTES = 60  # without FCS: what is shorter is padded
FCP_BYTES = 6
FCP_NORMAL = 0
FCP_INITIALISE = 1
CREDIT_MODULUS = 4096

ETHERNET_CONTROL_WIRE_BYTES = 84  # 64 with FCS, preamble, gap
FCP_WIRE_BYTES = 14  # assumed: the packet and its delimiters; a profile may say otherwise

ETHERNET = Struct("!6s6sH")
OPCODE = Struct("!H")
PAUSE = Struct("!HH")  # opcode, quanta
PFC = Struct("!HBB8H")  # opcode, reserved, enabled priorities, quanta of each, priority 0 first
FLOW = Struct("!HH")  # Op and FCTBS, VL and FCCL
OPCODE_OFFSET = ETHERNET.size
FCP_OFFSET = ETHERNET.size + 1
_LOW_12 = CREDIT_MODULUS - 1


@dataclass(frozen=True, slots=True)
class Pfc:
    """Pauses each enabled priority for its quanta of 512 bit times; of 0 quanta: it may send again at once (XON)."""

    source_mac: int
    enabled: int  # bit n: priority n is meant
    quanta: tuple[int, ...]  # of priorities 0 to 7; those not enabled mean nothing

    @property
    def wire_bytes(self) -> int:
        """Frame with FCS, preamble and gap."""
        return ETHERNET_CONTROL_WIRE_BYTES


@dataclass(frozen=True, slots=True)
class Pause:
    """Pauses the whole link for quanta of 512 bit times; 0: go on."""

    source_mac: int
    quanta: int

    @property
    def wire_bytes(self) -> int:
        """Frame with FCS, preamble and gap."""
        return ETHERNET_CONTROL_WIRE_BYTES


@dataclass(slots=True)
class Fcp:
    """Credits of one VL, counted in blocks modulo 4096. An `op` above 1 is reserved: receivers discard it."""

    op: int  # FCP_NORMAL or FCP_INITIALISE
    vl: int
    fctbs: int  # blocks sent on this VL since it was initialised
    fccl: int  # credit limit: the count up to which the other side may send
    source_mac: int = 0  # of the frame that carries it on a veth
    wire_bytes: int = field(default=FCP_WIRE_BYTES, compare=False)


Control = Pfc | Pause | Fcp


class ControlFraming:
    """How a link's own frames look to wires and captures, which know frames by their envelope's framing."""

    name = "link control"

    def wire_bytes(self, frame: Frame) -> int:
        """Bytes of wire time."""
        return frame.wire_bytes

    def encode(self, frame: Frame) -> bytes:
        """The bytes that cross a veth. Raises InvariantBroken for what is no link control."""
        if not isinstance(frame, ControlFrame):
            raise InvariantBroken("only a link's own frames are encoded here")
        return encode(frame.control)

    def decode(self, data: bytes) -> Frame:
        """The frame those bytes are. Raises WireError."""
        control = decode(data)
        return ControlFrame(ENVELOPE, control, control.wire_bytes)


ENVELOPE = Envelope(ControlFraming(), source=0, destination=0, source_mac=0, destination_mac=0, destination_qp=0)
"""Of all frames of a link's own: nothing in it differs, since what they say is in their `control`."""


def control_frame(control: Control) -> ControlFrame:
    """The frame that carries it."""
    return ControlFrame(ENVELOPE, control, control.wire_bytes)


def pfc(source_mac: int, quanta: dict[int, int]) -> Pfc:
    """What pauses (or with 0 quanta resumes) just these priorities."""
    enabled = sum(1 << priority for priority in quanta)
    return Pfc(source_mac, enabled, tuple(quanta.get(priority, 0) for priority in range(PRIORITIES)))


def encode(control: Control) -> bytes:
    """The bytes that cross a veth, no FCS. Raises InvariantBroken for a number that has no room in its field."""
    if isinstance(control, Fcp):
        return _head(control.source_mac, ETHERTYPE_LINK_CONTROL) + bytes([KIND_FCP]) + encode_fcp(control)
    if isinstance(control, Pfc):
        if len(control.quanta) != PRIORITIES or control.enabled >> PRIORITIES or _beyond(*control.quanta):
            raise InvariantBroken(f"no PFC frame can say this: {control}")
        body = PFC.pack(OPCODE_PFC, 0, control.enabled, *control.quanta)
    else:
        if _beyond(control.quanta):
            raise InvariantBroken(f"no PAUSE frame can say this: {control}")
        body = PAUSE.pack(OPCODE_PAUSE, control.quanta)
    return (_head(control.source_mac, ETHERTYPE_MAC_CONTROL) + body).ljust(MIN_FRAME_BYTES, b"\0")


def encode_fcp(fcp: Fcp) -> bytes:
    """The packet alone: 6 bytes with its LPCRC, as InfiniBand's link has it."""
    if (fcp.fctbs | fcp.fccl) & ~_LOW_12 or (fcp.op | fcp.vl) & ~0xF:
        raise InvariantBroken(f"no flow-control packet can say this: {fcp}")
    words = FLOW.pack(fcp.op << 12 | fcp.fctbs, fcp.vl << 12 | fcp.fccl)
    return words + vcrc(words).to_bytes(VCRC_BYTES, "little")


def decode(data: bytes) -> Control:
    """What those bytes of a veth say; bytes after it are padding. Raises WireError, CrcError for an FCP's LPCRC."""
    if len(data) < ETHERNET.size:
        raise WireError(f"{len(data)} B are no Ethernet frame")
    _, source, ether_type = ETHERNET.unpack_from(data)
    source_mac = int.from_bytes(source, "big")
    if ether_type == ETHERTYPE_MAC_CONTROL:
        return _decode_mac_control(data, source_mac)
    if ether_type != ETHERTYPE_LINK_CONTROL:
        raise WireError(f"EtherType 0x{ether_type:04x}: no link flow control")
    kind = data[OPCODE_OFFSET:FCP_OFFSET]
    if kind != bytes([KIND_FCP]):
        raise WireError(f"link control of kind 0x{kind.hex()}: only a flow-control packet, {KIND_FCP}, is known")
    return decode_fcp(data[FCP_OFFSET : FCP_OFFSET + FCP_BYTES], source_mac)


def decode_fcp(packet: bytes, source_mac: int = 0) -> Fcp:
    """What a flow-control packet of 6 bytes says. Raises WireError, CrcError for its LPCRC."""
    if len(packet) != FCP_BYTES:
        raise WireError(f"{len(packet)} B are no flow-control packet: it has {FCP_BYTES}")
    if packet[FLOW.size :] != vcrc(packet[: FLOW.size]).to_bytes(VCRC_BYTES, "little"):
        raise CrcError("LPCRC of a flow-control packet is wrong")
    return Fcp(*fcp_fields(packet), source_mac)


def fcp_fields(packet: bytes) -> tuple[int, int, int, int]:
    """Op, VL, FCTBS and FCCL of a flow-control packet, whether its LPCRC is right or not."""
    sent, limit = FLOW.unpack_from(packet)
    return sent >> 12, limit >> 12, sent & _LOW_12, limit & _LOW_12


def _head(source_mac: int, ether_type: int) -> bytes:
    return ETHERNET.pack(CONTROL_MAC.to_bytes(6, "big"), source_mac.to_bytes(6, "big"), ether_type)


def _beyond(*quanta: int) -> bool:
    return min(quanta) < 0 or max(quanta) > MAX_QUANTA


def _decode_mac_control(data: bytes, source_mac: int) -> Pfc | Pause:
    if len(data) < OPCODE_OFFSET + OPCODE.size:
        raise WireError(f"a MAC control frame of {len(data)} B has no opcode")
    (opcode,) = OPCODE.unpack_from(data, OPCODE_OFFSET)
    read = _MAC_CONTROL.get(opcode)
    if read is None:
        raise WireError(f"MAC control opcode 0x{opcode:04x}: only PAUSE and PFC are known")
    struct, make = read
    if len(data) < OPCODE_OFFSET + struct.size:
        raise WireError(f"MAC control opcode 0x{opcode:04x} cut short by {OPCODE_OFFSET + struct.size - len(data)} B")
    _, *fields = struct.unpack_from(data, OPCODE_OFFSET)
    return make(source_mac, fields)


def _pfc_of(source_mac: int, fields: list[int]) -> Pfc:
    _, enabled, *quanta = fields
    return Pfc(source_mac, enabled, tuple(quanta))


def _pause_of(source_mac: int, fields: list[int]) -> Pause:
    return Pause(source_mac, fields[0])


_MAC_CONTROL: dict[int, tuple[Struct, Callable[[int, list[int]], Pfc | Pause]]] = {
    OPCODE_PAUSE: (PAUSE, _pause_of),
    OPCODE_PFC: (PFC, _pfc_of),
}
