"""tshark, and what it should show of a frame that the tap saw."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from struct import pack
from typing import NamedTuple

from emu.addresses import ipv4_text
from emu.frame import ControlFrame, Frame
from emu.framing.control import Fcp, Pfc
from emu.opcodes import CNP
from tests import reference_crc
from tests.capture.recording import Sent

TSHARK = shutil.which("tshark")
FIELDS = (
    *("frame.interface_name", "frame.interface_description", "frame.time_epoch", "frame.len", "frame.cap_len"),
    *("infiniband.lrh.slid", "infiniband.lrh.dlid", "infiniband.lrh.pktlen", "ip.src", "ip.dst", "ip.dsfield"),
    *("udp.srcport", "udp.dstport", "udp.length", "infiniband.bth.opcode", "infiniband.bth.m"),
    *("infiniband.bth.padcnt", "infiniband.bth.p_key", "infiniband.bth.destqp", "infiniband.bth.a"),
    *("infiniband.bth.psn", "infiniband.reth.va", "infiniband.reth.r_key", "infiniband.reth.dmalen"),
    *("infiniband.aeth.syndrome", "infiniband.aeth.msn", "data.len", "infiniband.invariant.crc"),
    *("infiniband.variant.crc", "infiniband.reserved", "infiniband.vendor", "ip.dsfield.ecn", "ip.checksum"),
    *("eth.dst", "eth.src", "eth.type", "macc.opcode", "macc.cbfc.enbv", "erf.types.type"),
    *(f"macc.cbfc.pause_time.c{priority}" for priority in range(8)),
    *(f"infiniband_link.{name}" for name in ("op", "fctbs", "vl", "fccl", "lpcrc")),
    *("_ws.malformed", "_ws.expert"),
)
# Wireshark takes payloads for other protocols by their first bytes, unless it is told not to:
HEURISTICS_OFF = ("--disable-heuristic", "eth_over_ib", "--disable-protocol", "rpcordma")


class Shown(NamedTuple):
    """One frame's fields as tshark prints them, by name."""

    fields: dict[str, str]

    def number(self, name: str) -> int | None:
        text = self.fields[name]
        return int(text, 0) if text else None


def tshark(path: Path, *more: str) -> str:
    """What tshark prints about the file."""
    done = subprocess.run(
        [TSHARK or "tshark", "-n", "-r", str(path), *HEURISTICS_OFF, *more],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def shown(path: Path) -> Iterator[Shown]:
    options = [option for field in FIELDS for option in ("-e", field)]
    for line in tshark(path, "-T", "fields", "-E", "separator=|", "-E", "occurrence=a", *options).splitlines():
        yield Shown(dict(zip(FIELDS, line.split("|"), strict=True)))


def check(sent: Sent, fields: Shown) -> None:
    """Everything that both the tap and tshark know about a frame."""
    check_place(sent, fields)
    if isinstance(sent.frame, ControlFrame):
        check_control(sent.frame.control, fields)
    else:
        check_frame(sent.frame, fields)


def check_place(sent: Sent, fields: Shown) -> None:
    here, _, there = sent.direction.partition("-")
    assert fields.fields["frame.interface_name"] == sent.direction
    assert fields.fields["frame.interface_description"].startswith(f"{here}-eth")
    assert f" to {there.partition('#')[0]}-eth" in fields.fields["frame.interface_description"]
    assert Decimal(fields.fields["frame.time_epoch"]) * 10**9 == sent.time_ps // 1000
    assert fields.fields["_ws.malformed"] == fields.fields["_ws.expert"] == ""


def check_control(control: Pfc | Fcp, fields: Shown) -> None:
    """A pause, or a flow-control packet with its LPCRC."""
    if isinstance(control, Fcp):
        names = ("op", "fctbs", "vl", "fccl", "lpcrc")
        packet = pack("!HH", control.op << 12 | control.fctbs, control.vl << 12 | control.fccl)
        lpcrc = int.from_bytes(reference_crc.bitwise(packet, 16, 0xD008).to_bytes(2, "little"), "big")
        found = [fields.number(f"infiniband_link.{name}") for name in names]
        assert found == [control.op, control.fctbs, control.vl, control.fccl, lpcrc]
        assert fields.number("erf.types.type") == 25
        return
    mac = control.source_mac.to_bytes(6, "big").hex(":")
    assert [fields.fields[f"eth.{name}"] for name in ("dst", "src")] == ["01:80:c2:00:00:01", mac]
    numbers = [fields.number(name) for name in ("eth.type", "macc.opcode", "macc.cbfc.enbv", "frame.len")]
    assert numbers == [0x8808, 0x0101, control.enabled, 60]
    assert tuple(fields.number(f"macc.cbfc.pause_time.c{priority}") for priority in range(8)) == control.quanta


def check_frame(frame: Frame, fields: Shown) -> None:
    envelope = frame.envelope
    length = len(envelope.framing.encode(frame))
    if envelope.framing.name == "native":
        length -= 14
        assert fields.number("infiniband.lrh.slid") == envelope.source
        assert fields.number("infiniband.lrh.dlid") == envelope.destination
        assert fields.number("infiniband.lrh.pktlen") == (length - 2) // 4
    else:
        assert fields.fields["ip.src"] == ipv4_text(envelope.source)
        assert fields.fields["ip.dst"] == ipv4_text(envelope.destination)
        assert fields.number("ip.dsfield") == envelope.tos | 3 * frame.fecn  # CE
        assert fields.number("udp.srcport") == envelope.udp_source_port
        assert fields.number("udp.dstport") == 4791
        assert fields.number("udp.length") == length - 34
    assert fields.number("frame.len") == fields.number("frame.cap_len") == length
    assert fields.number("infiniband.bth.opcode") == frame.opcode
    assert fields.number("infiniband.bth.psn") == frame.psn
    assert fields.number("infiniband.bth.destqp") == envelope.destination_qp
    assert fields.number("infiniband.bth.p_key") == envelope.pkey
    assert fields.number("infiniband.bth.padcnt") == -len(frame.payload) % 4
    assert fields.number("infiniband.bth.a") == frame.ack_request
    reserved = fields.fields["infiniband.reserved"].split(",")[0]  # tshark has no name for FECN and BECN
    assert int(reserved, 16) == 0x80 * frame.fecn | 0x40 * frame.becn
    if frame.opcode == CNP:  # tshark does not know it: 16 bytes of zeros, and CRCs, are a vendor's
        assert frame.becn
        assert fields.fields["infiniband.vendor"].split(",")[1][: 2 * 16] == 32 * "0"
    else:
        check_headers(frame, fields)


def check_headers(frame: Frame, fields: Shown) -> None:
    reth = tuple(fields.number(f"infiniband.reth.{name}") for name in ("va", "r_key", "dmalen"))
    assert reth == (frame.reth or (None, None, None))
    aeth = (fields.number("infiniband.aeth.syndrome"), fields.number("infiniband.aeth.msn"))
    assert aeth == (frame.aeth or (None, None))
    padded = len(frame.payload) + -len(frame.payload) % 4
    assert fields.number("data.len") == (padded or None)
