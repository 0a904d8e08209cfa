"""Native InfiniBand frames by struct: the specification's sample, sizes on the wire, what decode refuses."""

from __future__ import annotations

import pytest

from emu import opcodes
from emu.addresses import address_of
from emu.errors import ScenarioError, WireError
from emu.frame import Envelope, Frame
from emu.framing.bth import CrcError
from emu.framing.native import NativeFraming, path_hash
from tests.golden_frames import SAMPLE_LOCAL

OVERHEAD_BYTES = 8
FRAMING = NativeFraming(OVERHEAD_BYTES)
H0, H1 = address_of("h0", 0), address_of("h1", 1)
ETHERNET = bytes.fromhex("02000000000202000000000188b5")


def envelope(destination_qp: int = 0x12) -> Envelope:
    return FRAMING.envelope(H0, H1, destination_qp=destination_qp, source_qp=0x34, priority=3, tos=0x6A)


def write(size: int, opcode: int = opcodes.WRITE_ONLY) -> Frame:
    return Frame(envelope(), opcode, 5, memoryview(bytes(range(size))), ack_request=True, reth=(1 << 40, 7, size))


@pytest.mark.parametrize("padding", [b"", bytes(9)])
def test_the_specifications_sample_packet(padding: bytes) -> None:
    """Its M bit is 0 and its service level differs from its VL, so encode makes another one."""
    frame = FRAMING.decode(ETHERNET + SAMPLE_LOCAL + padding)
    assert frame.opcode == opcodes.WRITE_ONLY
    assert frame.reth == (0x01710A1C015D4002, 0x38F27A05, 14)
    assert (frame.psn, frame.ack_request) == (0x0DEC2A, False)
    assert frame.payload == bytes.fromhex("bb884d85fd5cfba4728bc0690ed4")
    assert (frame.envelope.source, frame.envelope.destination) == (0x17D2, 0x375C)
    assert (frame.envelope.priority, frame.envelope.pkey) == (1, 0x2487)
    assert frame.envelope.destination_qp == 0x87B1B3
    assert frame.wire_bytes == len(SAMPLE_LOCAL) + OVERHEAD_BYTES


@pytest.mark.parametrize(
    ("opcode", "size", "packet_bytes"),
    [
        (opcodes.WRITE_MIDDLE, 4096, 4122),
        (opcodes.WRITE_MIDDLE, 2048, 2074),
        (opcodes.WRITE_MIDDLE, 1024, 1050),
        (opcodes.WRITE_MIDDLE, 256, 282),
        (opcodes.WRITE_FIRST, 4096, 4138),
        (opcodes.WRITE_LAST, 1, 30),
        (opcodes.ACKNOWLEDGE, 0, 30),
    ],
)
def test_wire_bytes(opcode: int, size: int, packet_bytes: int) -> None:
    assert Frame(envelope(), opcode, 0, bytes(size)).wire_bytes == packet_bytes + OVERHEAD_BYTES
    other = NativeFraming(0).envelope(H0, H1, destination_qp=1, source_qp=1)
    assert Frame(other, opcode, 0, bytes(size)).wire_bytes == packet_bytes


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 200])
def test_a_frame_comes_back(size: int) -> None:
    frame = write(size)
    data = FRAMING.encode(frame)
    assert len(data) == 14 + frame.wire_bytes - OVERHEAD_BYTES
    again = FRAMING.decode(data + b"\xff" * 5)
    for field in ("opcode", "psn", "ack_request", "reth", "aeth", "payload", "solicited", "fecn", "becn", "wire_bytes"):
        assert getattr(again, field) == getattr(frame, field), field
    assert again.carries_data
    for field in Envelope.__slots__:
        if field not in ("templates", "tos"):
            assert getattr(again.envelope, field) == getattr(frame.envelope, field), field


def test_link_header() -> None:
    data = FRAMING.encode(write(14))
    assert data[:14] == ETHERNET
    assert data[14:22].hex() == "3032" + "0002" + "000e" + "0001"  # VL 3, SL 3, LNH 2, DLID 2, 14 words, SLID 1


def test_every_flipped_bit_is_noticed() -> None:
    """But in the MAC addresses, which are the carrier's; a changed VCRC or ICRC is told apart from other damage."""
    good = FRAMING.encode(write(5))
    for index in range(len(good)):
        for bit in range(8):
            changed = bytearray(good)
            changed[index] ^= 1 << bit
            if index < 12:
                FRAMING.decode(bytes(changed))
            else:
                with pytest.raises(CrcError if index >= 22 else WireError):
                    FRAMING.decode(bytes(changed))


def test_every_length_but_the_whole_is_refused() -> None:
    good = FRAMING.encode(write(5))
    for length in range(len(good)):
        with pytest.raises(WireError):
            FRAMING.decode(good[:length])


def test_a_right_vcrc_over_a_wrong_icrc() -> None:
    from emu.crc import vcrc

    data = bytearray(FRAMING.encode(write(8))[:-2])
    data[60] ^= 0x10
    with pytest.raises(CrcError, match="ICRC"):
        FRAMING.decode(bytes(data) + vcrc(bytes(data[14:])).to_bytes(2, "little"))


def test_fecn_changes_the_vcrc_only() -> None:
    frame = write(4)
    plain = FRAMING.encode(frame)
    frame.fecn = True
    marked = FRAMING.encode(frame)
    assert FRAMING.decode(marked).fecn
    assert [index for index in range(len(plain)) if plain[index] != marked[index]][0] == 26
    assert marked[-6:-2] == plain[-6:-2]
    assert marked[-2:] != plain[-2:]


def test_a_service_level_data_may_not_use() -> None:
    with pytest.raises(ScenarioError, match="service level 15"):
        FRAMING.envelope(H0, H1, destination_qp=1, source_qp=1, priority=15)


def test_path_hash_sees_lids_and_the_destination_queue_pair() -> None:
    hashes = {envelope(queue_pair).path_hash for queue_pair in range(256)}
    assert len(hashes) == 256
    assert envelope(9).path_hash == path_hash(H0.lid, H1.lid, 9) != path_hash(H1.lid, H0.lid, 9)
