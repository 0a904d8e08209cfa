"""Frames known to be right, byte for byte (no FCS), and how to read the shared ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from struct import Struct

# MACs 02..02 <- 02..01, 10.0.0.1 -> 10.0.0.2, ToS 0x6A, id 0, DF, TTL 64, source port 0xC123, MigReq 1, P_Key 0xFFFF;
# ICRCs agree with Scapy's and Wireshark's.
_HEAD = "0200000000020200000000010800456a"
_MIDDLE = "0a0000010a000002c12312b7"
GOLDEN: dict[str, bytes] = {
    name: bytes.fromhex(text)
    for name, text in {
        "write_only": f"{_HEAD}004c0000400040112635{_MIDDLE}003800000a60ffff000000128000000500007f0011223344"
        "abcd12340000000e4141414141414141414141414141000056a7f7c9",
        "ack": f"{_HEAD}00300000400040112651{_MIDDLE}001c00001140ffff00000034000000051f000007c1ca65e6",
        "nak_sequence": f"{_HEAD}00300000400040112651{_MIDDLE}001c00001140ffff000000340000000660000007db009992",
        "rnr_nak": f"{_HEAD}00300000400040112651{_MIDDLE}001c00001140ffff00000034000000052c00000434ccf29d",
        "read_request": f"{_HEAD}003c0000400040112645{_MIDDLE}002800000c40ffff0000001280000009"
        "0000000000001000000000550000100087dec639",
        "send_only_imm": f"{_HEAD}0034000040004011264d{_MIDDLE}0020000005c0ffff0000001280000001"
        "deadbeef7778797a709c6e92",
        "fetch_add": f"{_HEAD}00480000400040112639{_MIDDLE}003400001440ffff0000001280000002"
        "00000000000010000000005500000000000000020000000000000000aee73caf",
        "cnp": f"020000000002020000000001080045c0003c00004000401125ef{_MIDDLE}002800008140ffff4000003400000000"
        "000000000000000000000000000000006b86d81f",
        "write_only_ipv6": "02000000000202000000000186dd66a1234500381140fd000000000000000000000000000001"
        "fd000000000000000000000000000002c12312b7003800000a60ffff000000128000000500007f0011223344"
        "abcd12340000000e41414141414141414141414141410000f1ea561c",
        "write_only_v1": "02000000000202000000000189156000000000301b40fe80000000000000020000fffe000001"
        "fe80000000000000020000fffe0000020a00ffff000000128000000500007f0011223344"
        "abcd123400000010414141414141414141414141414141416ef3b68b",
    }.items()
}
# The specification's sample packet (ICRC as published), and the same with a GRH.
_SAMPLE_BTH = "0a2024870087b1b3000dec2a01710a1c015d400238f27a050000000ebb884d85fd5cfba4728bc0690ed40000"
SAMPLE_LOCAL = bytes.fromhex(f"7012375c000e17d2{_SAMPLE_BTH}9625b75a45fa")
SAMPLE_GLOBAL = bytes.fromhex(
    "7013375c001817d26000000000320010000000000000012500000000000000260000000000000117"
    f"0000000000000096{_SAMPLE_BTH}1493ec467c44"
)

_RECORD = Struct("<IIII")  # seconds, fraction, captured length, length
_PCAP_HEADER_BYTES = 24


@dataclass(frozen=True)
class Vector:
    """One literal frame of the shared file; `icrc` and `vcrc` are bytes as on the wire, empty where there are none."""

    name: str
    native: bool
    data: bytes
    icrc: bytes
    vcrc: bytes


def vectors(folder: Path) -> list[Vector]:
    """The shared literal frames that have an ICRC."""
    entries = json.loads((folder / "vectors.json").read_text())
    return [
        Vector(
            entry["id"],
            entry["kind"] == "ib",
            bytes.fromhex(entry["hex"]),
            bytes.fromhex(entry["icrc"]),
            bytes.fromhex(entry.get("vcrc", "")),
        )
        for entry in entries
        if "icrc" in entry
    ]


def captured(path: Path) -> Iterator[bytes]:
    """The frames of a little-endian Ethernet pcap file, in order."""
    data = path.read_bytes()
    offset = _PCAP_HEADER_BYTES
    while offset < len(data):
        _, _, length, _ = _RECORD.unpack_from(data, offset)
        offset += _RECORD.size
        yield data[offset : offset + length]
        offset += length


def captured_roce(folder: Path) -> Iterator[bytes]:
    """Every RoCEv2 frame that a real driver sent in the shared captures."""
    for path in sorted((folder / "captures").glob("rxe61__*.pcap")):
        for frame in captured(path):
            udp = {b"\x08\x00": 34, b"\x86\xdd": 54}.get(frame[12:14])
            if udp and frame[udp + 2 : udp + 4] == b"\x12\xb7":
                yield frame
