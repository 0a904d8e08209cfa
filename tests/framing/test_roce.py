"""RoCEv2 frames by struct: golden bytes, sizes on the wire, what decode refuses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from emu import opcodes
from emu.addresses import address_of
from emu.errors import InvariantBroken, ScenarioError, WireError
from emu.frame import Envelope, Frame
from emu.framing import prototype
from emu.framing.bth import CrcError
from emu.framing.roce import RoceFraming, path_hash, udp_source_port
from tests.golden_frames import GOLDEN, captured_roce

FRAMING = RoceFraming()
H0, H1 = address_of("h0", 0), address_of("h1", 1)
RETH = (0x7F0011223344, 0xABCD1234, 14)


def envelope(destination_qp: int = 0x12, tos: int = 0x6A) -> Envelope:
    return FRAMING.envelope(
        H0, H1, destination_qp=destination_qp, source_qp=0x34, priority=3, tos=tos, source_port=0xC123
    )


def acknowledge(psn: int, syndrome: int, msn: int) -> Frame:
    return Frame(envelope(0x34), opcodes.ACKNOWLEDGE, psn, aeth=(syndrome, msn))


def cnp() -> Frame:
    frame = Frame(envelope(0x34, tos=0xC0), opcodes.CNP, 0)
    frame.becn = True
    return frame


def extended(opcode: int, psn: int, extension: tuple[int, ...], payload: bytes = b"") -> Frame:
    frame = Frame(envelope(), opcode, psn, payload, ack_request=True)
    frame.extension = extension
    frame.solicited = opcode == opcodes.SEND_ONLY_WITH_IMMEDIATE
    return frame


FRAMES = {
    "write_only": Frame(envelope(), opcodes.WRITE_ONLY, 5, b"A" * 14, ack_request=True, reth=RETH),
    "ack": acknowledge(5, 0x1F, 7),
    "nak_sequence": acknowledge(6, 0x60, 7),
    "rnr_nak": acknowledge(5, 0x2C, 4),
    "read_request": Frame(envelope(), opcodes.READ_REQUEST, 9, ack_request=True, reth=(0x1000, 0x55, 4096)),
    "send_only_imm": extended(opcodes.SEND_ONLY_WITH_IMMEDIATE, 1, (0xDEADBEEF,), b"wxyz"),
    "fetch_add": extended(opcodes.FETCH_ADD, 2, (0x1000, 0x55, 2, 0)),
    "cnp": cnp(),
}


@pytest.mark.parametrize("name", FRAMES)
def test_golden_frames_by_encode(name: str) -> None:
    assert FRAMING.encode(FRAMES[name]).hex() == GOLDEN[name].hex()


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("padding", [b"", bytes(6), b"\xff" * 3])
def test_golden_frames_by_decode(name: str, padding: bytes) -> None:
    frame, expected = FRAMING.decode(GOLDEN[name] + padding), FRAMES[name]
    assert frame.data == GOLDEN[name] + padding
    for field in ("opcode", "psn", "ack_request", "reth", "aeth", "extension", "payload", "solicited", "wire_bytes"):
        assert getattr(frame, field) == getattr(expected, field), field
    assert (frame.fecn, frame.becn) == (expected.fecn, expected.becn)
    assert frame.carries_data is (name in ("write_only", "read_request", "send_only_imm", "fetch_add"))
    for field in Envelope.__slots__:
        if field not in ("templates", "priority", "lane"):
            assert getattr(frame.envelope, field) == getattr(expected.envelope, field), field
    assert frame.envelope.priority == (6 if name == "cnp" else 3)


@pytest.mark.parametrize(
    ("opcode", "size", "wire_bytes"),
    [
        (opcodes.WRITE_MIDDLE, 1024, 1106),
        (opcodes.WRITE_FIRST, 1024, 1122),
        (opcodes.WRITE_ONLY, 1024, 1122),
        (opcodes.WRITE_MIDDLE, 4096, 4178),
        (opcodes.WRITE_FIRST, 4096, 4194),
        (opcodes.WRITE_LAST, 1, 86),
        (opcodes.ACKNOWLEDGE, 0, 86),
        (opcodes.READ_REQUEST, 0, 98),
        (opcodes.CNP, 0, 98),
        (opcodes.SEND_ONLY, 0, 84),
        (opcodes.SEND_ONLY, 2, 86),
        (opcodes.SEND_ONLY_WITH_IMMEDIATE, 0, 86),
    ],
)
def test_wire_bytes(opcode: int, size: int, wire_bytes: int) -> None:
    assert Frame(envelope(), opcode, 0, bytes(size)).wire_bytes == wire_bytes


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 255, 4096])
def test_wire_bytes_are_those_encoded(size: int) -> None:
    frame = Frame(envelope(), opcodes.WRITE_ONLY, 5, memoryview(bytes(size)), reth=RETH)
    assert frame.wire_bytes == len(FRAMING.encode(frame)) + 4 + 20


@pytest.mark.parametrize("name", FRAMES)
def test_every_flipped_bit_is_noticed(name: str) -> None:
    """But in the MAC addresses, which only the FCS covers, and in BTH's byte of marks, which switches may change."""
    unprotected = {*range(12), 46}
    for index in range(len(GOLDEN[name])):
        for bit in range(8):
            changed = bytearray(GOLDEN[name])
            changed[index] ^= 1 << bit
            if index in unprotected:
                FRAMING.decode(bytes(changed))
            else:
                with pytest.raises(WireError):
                    FRAMING.decode(bytes(changed))


def test_a_flipped_payload_bit_is_a_crc_error() -> None:
    changed = bytearray(GOLDEN["write_only"])
    changed[75] ^= 1
    with pytest.raises(CrcError, match="ICRC"):
        FRAMING.decode(bytes(changed))


@pytest.mark.parametrize("name", FRAMES)
def test_every_length_but_the_whole_is_refused(name: str) -> None:
    for length in range(len(GOLDEN[name])):
        with pytest.raises(WireError):
            FRAMING.decode(GOLDEN[name][:length])


def test_what_is_not_ours_is_refused() -> None:
    for name in ("write_only_ipv6", "write_only_v1"):
        with pytest.raises(WireError):
            FRAMING.decode(GOLDEN[name])


def test_marks() -> None:
    """A switch that marks sets CE in IP and FECN in BTH; either is enough to read; the ICRC stays."""
    frame = Frame(envelope(), opcodes.SEND_ONLY, 1, b"1234")
    plain = FRAMING.encode(frame)
    frame.fecn = True
    marked = FRAMING.encode(frame)
    assert (marked[15], marked[46]) == (0x6B, 0x80)
    assert marked[-4:] == plain[-4:]
    assert FRAMING.decode(marked).fecn
    assert not FRAMING.decode(plain).fecn
    assert FRAMING.decode(plain[:46] + b"\x80" + plain[47:]).fecn
    only_ip = marked[:46] + b"\0" + marked[47:]
    assert FRAMING.decode(only_ip).fecn
    frame.fecn, frame.becn, frame.solicited = False, True, True
    again = FRAMING.decode(FRAMING.encode(frame))
    assert (again.fecn, again.becn, again.solicited) == (False, True, True)


def test_a_frame_the_transport_may_not_send_is_our_bug() -> None:
    for frame in (
        Frame(envelope(), opcodes.WRITE_ONLY, 0, b"no RETH"),
        Frame(envelope(), opcodes.ACKNOWLEDGE, 0),
        Frame(envelope(), opcodes.ACKNOWLEDGE, 0, b"data", aeth=(0, 0)),
        Frame(envelope(), opcodes.SEND_ONLY_WITH_IMMEDIATE, 0, b"data"),
        Frame(envelope(), 0x15, 0),
    ):
        with pytest.raises(InvariantBroken):
            FRAMING.encode(frame)


def test_a_priority_ethernet_lacks() -> None:
    with pytest.raises(ScenarioError, match="priority 8"):
        FRAMING.envelope(H0, H1, destination_qp=1, source_qp=1, priority=8)


@pytest.mark.parametrize(
    ("source_qp", "destination_qp", "port"),
    [
        (17, 17, 49441),  # as a Linux driver chose in the shared captures
        (22, 22, 49636),
        (30, 30, 50052),
        (0xFFFFFF, 0xABCDEF, 0xEC7C),  # label 0x8EC5F, worked out by hand
        (0xABCDEF, 0xFFFFFF, 0xEC7C),  # both ways alike
    ],
)
def test_source_port(source_qp: int, destination_qp: int, port: int) -> None:
    assert udp_source_port(source_qp, destination_qp) == port


def test_path_hash_sees_addresses_and_ports_only() -> None:
    def of(source_port: int, destination_qp: int) -> int:
        return FRAMING.envelope(H0, H1, destination_qp=destination_qp, source_qp=1, source_port=source_port).path_hash

    assert of(0xC001, 1) == of(0xC001, 2) == path_hash(H0.ipv4, H1.ipv4, 0xC001)
    assert len({of(0xC000 + port, 1) for port in range(256)}) == 256
    assert path_hash(1, 2, 3) != path_hash(2, 1, 3)


def test_scapy_is_asked_once_for_each_opcode() -> None:
    for queue_pair in range(50):
        FRAMING.encode(Frame(envelope(queue_pair), opcodes.WRITE_MIDDLE, 0, bytes(queue_pair)))
    before = prototype.roce_head.cache_info().misses
    for queue_pair in range(50, 100):
        FRAMING.encode(Frame(envelope(queue_pair), opcodes.WRITE_MIDDLE, 0, bytes(queue_pair)))
    assert prototype.roce_head.cache_info().misses == before


def test_scapy_is_loaded_when_bytes_are_needed() -> None:
    script = (
        "import sys\n"
        "from tests.framing.test_roce import FRAMES, FRAMING\n"
        "assert 'scapy' not in sys.modules\n"
        "FRAMING.encode(FRAMES['ack'])\n"
        "assert 'scapy' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(__file__).parents[2], timeout=60)


def test_frames_of_a_real_driver(shared_data: Path) -> None:
    seen = 0
    for data in captured_roce(shared_data):
        if data[12:14] != b"\x08\x00":
            with pytest.raises(WireError):
                FRAMING.decode(data)
            continue
        frame = FRAMING.decode(data)
        assert frame.wire_bytes == max(64, len(data) + 4) + 20
        pad = data[43] >> 4 & 3
        begin = 54 + opcodes.EXTENSION_BYTES[frame.opcode]
        assert frame.payload == data[begin : len(data) - 4 - pad]
        again = FRAMING.encode(frame)
        # Up to the PSN the driver differs: it numbers its IP packets and sends MigReq 0.
        assert again[51:-4] == data[51:-4]
        seen += 1
    assert seen > 150
