"""The Wireshark plugin reads what our framings write: TLPs and what mlx5 means by them, flow control, native frames."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from struct import pack

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emu import opcodes
from emu.addresses import Address
from emu.frame import Frame
from emu.framing.control import Fcp
from emu.framing.control import encode as encode_control
from emu.framing.native import NativeFraming
from emu.mlx5 import cqe, doorbell, wqe
from emu.pcie.framing import TlpFraming, completion, memory_read, memory_write
from emu.pcie.tlp import Tlp, TlpKind
from tests.mlx5.test_cqe import LITERAL as CQES
from tests.mlx5.test_wqe import LITERAL as WQES
from tests.pcie.tlps import tlps
from tests.tree import ROOT

PLUGIN = ROOT / "emu/wireshark/emu.lua"
TSHARK = shutil.which("tshark") or ""
FRAMING = TlpFraming()
TLP_FIELDS = ("type", "bytes", "requester", "completer", "tag", "address", "lower_address", "byte_count", "data")
WQE_FIELDS = (
    *("opmod", "index", "opcode", "qpn", "ds", "fence", "signaled", "solicited", "imm", "remote_addr", "rkey"),
    *("byte_count", "lkey", "addr", "inline_bytes", "inline", "operands"),
)
CQE_FIELDS = (
    *("opcode", "owner", "solicited", "qpn", "send_opcode", "wqe_counter", "srqn", "remote_qpn", "imm"),
    *("byte_count", "timestamp", "syndrome", "vendor_syndrome"),
)
UAR = 0x20_0000_0800


@pytest.fixture(scope="module", autouse=True)
def _lua_runs(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip where there is no tshark, or none that runs scripts for us (as root, some are told not to)."""
    if not TSHARK:
        pytest.skip("tshark is not installed (Debian package tshark)")
    probe = tmp_path_factory.mktemp("probe") / "probe.lua"
    probe.write_text("print('lua runs')")
    done = subprocess.run([TSHARK, "-X", f"lua_script:{probe}", "-G", "protocols"], capture_output=True, text=True)
    if "lua runs" not in done.stdout:
        pytest.skip("this tshark runs no Lua scripts")


def tshark(path: Path, frames: Sequence[bytes], *options: str) -> list[str]:
    """The lines that tshark prints of these Ethernet frames."""
    records = [pack("<IIII", 0, 0, len(frame), len(frame)) + frame for frame in frames]
    path.write_bytes(pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + b"".join(records))
    command = [TSHARK, "-X", f"lua_script:{PLUGIN}", "-n", "-r", str(path), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert not [line for line in done.stderr.splitlines() if not line.startswith("Running as user")]
    return done.stdout.splitlines()


def fields(path: Path, frames: Sequence[bytes], *names: str) -> list[list[str]]:
    """These fields of each frame; all values of one that occurs more than once. Nothing is malformed."""
    options = [option for name in (*names, "_ws.malformed", "_ws.lua.error", "_ws.expert") for option in ("-e", name)]
    lines = tshark(path, frames, "-T", "fields", "-E", "separator=|", "-E", "occurrence=a", *options)
    rows = [line.split("|") for line in lines]
    assert len(rows) == len(frames)
    assert {tuple(row[len(names) :]) for row in rows} <= {("", "", "")}
    return [row[: len(names)] for row in rows]


def info(path: Path, frames: Sequence[bytes], *options: str) -> list[str]:
    """The line that tshark prints about each frame."""
    return tshark(path, frames, "-T", "fields", "-e", "_ws.col.Info", *options)


def expected(tlp: Tlp) -> list[str]:
    """What the plugin should show in TLP_FIELDS."""
    code = {TlpKind.MRD: 0x00, TlpKind.MWR: 0x40, TlpKind.CPLD: 0x4A}[tlp.kind]
    completes = tlp.kind is TlpKind.CPLD
    if not completes and tlp.address >= 1 << 32:
        code |= 0x20
    return [
        f"0x{code:02x}",
        str(tlp.length),
        f"0x{tlp.requester:04x}",
        f"0x{tlp.completer:04x}" if completes else "",
        str(tlp.tag),
        "" if completes else f"0x{tlp.address:016x}",
        f"0x{tlp.address & 0x7F:02x}" if completes else "",
        str(tlp.remaining) if completes else "",
        bytes(tlp.payload).hex(),
    ]


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(tlps(), min_size=100, max_size=100))
def test_every_field_of_any_tlp(tmp_path: Path, sent: list[Tlp]) -> None:
    names = [f"pcie_tlp.{name}" for name in TLP_FIELDS]
    shown = fields(tmp_path / "a.pcap", [FRAMING.encode(tlp) for tlp in sent], *names)
    assert shown == [expected(tlp) for tlp in sent]


def test_lines(tmp_path: Path) -> None:
    read = memory_read(0x7F00_0000_0040, 128, 0x0300, tag=0x2A5)
    write, head = (encode(WQES["write"][0]) for encode in (wqe.encode, lambda one: wqe.encode(one)[:8]))
    lines = {
        "MWr 8 B at 0x2000000800: doorbell QP 0x12 producer 5": memory_write(UAR, doorbell.encode_doorbell(5, 0x12), 1),
        "MWr 8 B at 0x2000000800: doorbell RDMA_WRITE QP 0x12 WQE 5": memory_write(UAR, head, 1),
        "MWr 64 B at 0x2000000800: RDMA_WRITE QP 0x12 WQE 5": memory_write(UAR, write, 1),
        "MRd 128 B at 0x7f0000000040, tag 677": read,
        "CplD 128 B of 128 still owed, lower address 0x40, tag 677: RDMA_WRITE QP 0x12 WQE 5, "
        "RDMA_WRITE QP 0x12 WQE 5": completion(read, 0, write * 2, 4),
        "MWr 64 B at 0x4000: CQE requester QP 0x12 WQE 4660": memory_write(
            0x4000, cqe.encode(CQES["write done"][0]), 1
        ),
        "MWr 64 B at 0x4000": memory_write(0x4000, bytes(64), 1),
        "MWr 3 B at 0x4001": memory_write(0x4001, b"abc", 1),
        "MRd 0 B at 0x4000, tag 1": memory_read(0x4000, 0, 1, tag=1),
    }
    assert info(tmp_path / "a.pcap", [FRAMING.encode(tlp) for tlp in lines.values()]) == list(lines)


def test_every_field_of_a_wqe(tmp_path: Path) -> None:
    names = [f"mlx5_wqe.{name}" for name in WQE_FIELDS]
    sent = [one for one, _ in WQES.values()]
    frames = [FRAMING.encode(memory_write(UAR, wqe.encode(one), 1)) for one in sent]
    for one, shown in zip(sent, fields(tmp_path / "a.pcap", frames, *names), strict=True):
        block = wqe.encode(one)
        remote = one.opcode not in (wqe.WqeOpcode.SEND, wqe.WqeOpcode.NOP)
        data_at = 16 * (wqe.ds_of(one) - len(one.data))
        operands = block[32:data_at] if "ATOMIC" in one.opcode.name else b""
        assert shown == [
            f"0x{block[0]:02x}",
            str(one.index),
            f"0x{one.opcode:02x}",
            f"0x{one.qp_num:06x}",
            str(wqe.ds_of(one)),
            str(int(one.fence)),
            str(int(one.signaled)),
            str(int(one.solicited)),
            f"0x{one.imm:08x}",
            f"0x{one.remote_addr:016x}" if remote else "",
            f"0x{one.rkey:08x}" if remote else "",
            ",".join(str(piece[0] % (1 << 31)) for piece in one.data),
            ",".join(f"0x{piece[1]:08x}" for piece in one.data),
            ",".join(f"0x{piece[2]:016x}" for piece in one.data),
            str(len(one.inline)) if one.inline else "",
            one.inline.hex() if one.inline else "",
            operands.hex(),
        ]


def test_every_field_of_a_cqe(tmp_path: Path) -> None:
    names = [f"mlx5_cqe.{name}" for name in CQE_FIELDS]
    sent = [one for one, _ in CQES.values()]
    frames = [FRAMING.encode(memory_write(0x4000, cqe.encode(one), 1)) for one in sent]
    for one, shown in zip(sent, fields(tmp_path / "a.pcap", frames, *names), strict=True):
        head = [str(int(one.opcode)), str(one.owner), str(int(one.solicited)), f"0x{one.qp_num:06x}"]
        head += [f"0x{one.send_opcode:02x}", str(one.wqe_counter), f"0x{one.srqn:08x}"]
        done = [f"0x{one.remote_qp:06x}", f"0x{one.imm:08x}", str(one.byte_count), str(one.timestamp), "", ""]
        failed = ["", "", "", "", f"0x{one.syndrome:02x}", f"0x{one.vendor_syndrome:02x}"]
        assert shown == head + (failed if one.syndrome else done)


def test_each_guess_can_be_switched_off(tmp_path: Path) -> None:
    sent = {
        "doorbell": doorbell.encode_doorbell(5, 0x12),
        "wqe": wqe.encode(WQES["write"][0]),
        "cqe": cqe.encode(CQES["write done"][0]),
    }
    frames = [FRAMING.encode(memory_write(UAR, data, 1)) for data in sent.values()]
    for number, name in enumerate(sent):
        lines = info(tmp_path / "a.pcap", frames, "-o", f"pcie_tlp.{name}:FALSE")
        assert [":" in line for line in lines] == [other != number for other in range(3)]


def test_flow_control_packets(tmp_path: Path) -> None:
    sent = [Fcp(op, 3, 0x123 + count, 0x456, 7) for op in (0, 1) for count in range(4)]
    names = [f"emu_link.{name}" for name in ("op", "vl", "fctbs", "fccl", "lpcrc")]
    frames = [encode_control(fcp) for fcp in sent]
    for fcp, frame, shown in zip(sent, frames, fields(tmp_path / "a.pcap", frames, *names), strict=True):
        lpcrc = f"0x{int.from_bytes(frame[-2:], 'little'):04x}"
        assert shown == [*map(str, (fcp.op, fcp.vl, fcp.fctbs, fcp.fccl)), lpcrc]
    assert info(tmp_path / "a.pcap", frames[:1]) == ["FCP normal VL 3 FCTBS 291 FCCL 1110"]


def test_native_frames_are_wiresharks_own(tmp_path: Path) -> None:
    framing = NativeFraming(8)
    envelope = framing.envelope(Address("a", 1, 2, 3), Address("b", 4, 5, 6), destination_qp=0x12, source_qp=3)
    write = Frame(envelope, opcodes.WRITE_ONLY, 5, b"hello", reth=(0x1234, 0x99, 5))
    ack = Frame(envelope, opcodes.ACKNOWLEDGE, 5, aeth=(0x1F, 7))
    names = ("lrh.slid", "lrh.dlid", "bth.opcode", "bth.destqp", "bth.psn", "reth.va", "reth.dmalen", "aeth.msn")
    frames = [framing.encode(write), framing.encode(ack)]
    found = fields(tmp_path / "a.pcap", frames, *(f"infiniband.{name}" for name in names))
    assert found[0] == ["3", "6", "10", "0x000012", "5", "0x0000000000001234", "5", ""]
    assert found[1] == ["3", "6", "17", "0x000012", "5", "", "", "7"]


def test_mangled_frames_are_named_not_tripped_over(tmp_path: Path) -> None:
    numbers = random.Random("mangled")
    good = [
        FRAMING.encode(memory_write(UAR, data, 1))
        for data in (
            *(wqe.encode(one) for one, _ in WQES.values()),
            *(cqe.encode(one) for one, _ in CQES.values()),
            doorbell.encode_doorbell(5, 0x12),
            bytes(100),
        )
    ]
    read = memory_read(0x1000, 64, 1, tag=1)
    good += [FRAMING.encode(read), FRAMING.encode(completion(read, 0, bytes(64), 2)), encode_control(Fcp(0, 1, 2, 3))]
    frames = []
    for _ in range(3000):
        frame = bytearray(numbers.choice(good))
        for _ in range(numbers.randrange(4)):
            frame[numbers.randrange(14, min(len(frame), 60))] = numbers.choice((0, 1, 0xFF, numbers.randrange(256)))
        frames.append(bytes(frame[: numbers.choice((len(frame), numbers.randrange(14, len(frame) + 1)))]))
    path = tmp_path / "a.pcap"
    assert len(tshark(path, frames)) == len(frames)
    assert tshark(path, frames, "-Y", "_ws.lua.error") == []
    whole = FRAMING.encode(memory_write(UAR, bytes(8), 1))
    odd = [
        whole[:15],
        whole[:20],
        whole[:30],
        whole[:-1],
        whole[:15] + b"\x0a" + whole[16:],
        whole[:14] + b"\7" + bytes(9),
    ]
    notes = tshark(path, odd, "-T", "fields", "-e", "_ws.expert.message")
    assert notes == [*["Cut short"] * 4, "Not MRd, MWr or CplD", ""]
