"""tshark reads every capture we write: nothing malformed, and every field it shows is what was sent."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from emu.capture import Record, read
from emu.capture.recorder import Recorder
from emu.capture.writer import InterfaceBlock
from emu.frame import ControlFrame
from emu.framing.control import Fcp, Pfc
from emu.opcodes import CNP
from emu.scenario.load import load, parse
from emu.scenario.model import Scenario
from tests import reference_crc
from tests.builtins import all_but_long, small
from tests.capture import lossless
from tests.capture.recording import Sent, record
from tests.capture.shark import TSHARK, check, shown, tshark
from tests.capture.test_recorder import ALONE

pytestmark = pytest.mark.skipif(TSHARK is None, reason="tshark is not installed (Debian package tshark)")

ODD_SIZES = """
name: odd sizes
fabric: {{profile: {profile}, topology: {{kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 2}}, path_mtu: 256B}}
traffic:
  - {{kind: write, pairs: [[h0, h3], [h2, h1]], size: 1B}}
  - {{kind: write, pairs: [[h0, h2]], size: 259B}}
  - {{kind: write, pairs: [[h1, h3]], size: 1022B, qps: 2, count: 3}}
capture: [h0-leaf0, leaf0-spine1, leaf1-h3]
"""


def crcs(each: Record) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """The check sums that the captured frame should have, bit by bit, and those it has."""
    if each.link_type == 1:
        should, has = reference_crc.icrc_of_ethernet(each.data)
        return (should,), (has,)
    packet = each.data[16:]
    return reference_crc.crcs_of_infiniband(packet), (packet[-6:-2], packet[-2:])


def check_capture(scenario: Scenario, path: Path) -> list[Sent]:
    """Everything in the capture of all that the run sends, which is returned."""
    sent = record(scenario, path)
    found = list(shown(path))
    assert len(found) == len(sent) > 5
    for each, fields in zip(sent, found, strict=True):
        check(each, fields)
    captured = list(read(path))
    seen = [both for both in zip(sent, captured, found, strict=True) if not isinstance(both[0].frame, ControlFrame)]
    distinct = {one.data[16:] if one.link_type == 197 else one.data: one for _, one, _ in seen}
    for one in distinct.values():
        should, has = crcs(one)
        assert has == should
    for tapped, one, fields in seen:
        values = [fields.fields[f"infiniband.{name}.crc"][2:] for name in ("invariant", "variant")]
        if tapped.frame.opcode == CNP:
            values = [fields.fields["infiniband.vendor"].split(",")[1][2 * 16 :]]
        assert bytes.fromhex("".join(values)) == b"".join(crcs_carried(one))
    return sent


def crcs_carried(each: Record) -> tuple[bytes, ...]:
    return (each.data[-4:],) if each.link_type == 1 else (each.data[-6:-2], each.data[-2:])


LONG = ("all-to-all-native", "doorbell-bounce", "headroom-one-byte-short", "ring-deadlock-native")


@pytest.mark.parametrize("name", all_but_long(*LONG, "pause-storm", "pause-storm-unwatched"))
def test_every_built_in_on_all_links(name: str, tmp_path: Path) -> None:
    check_capture(small(name), tmp_path / "a.pcapng")


def control(sent: list[Sent]) -> list[Pfc | Fcp]:
    """What the links' own frames say."""
    return [each.frame.control for each in sent if isinstance(each.frame, ControlFrame)]


def test_pauses_marks_and_notifications(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    sent = check_capture(lossless.pfc(), path)
    pauses = [each for each in control(sent) if isinstance(each, Pfc)]
    assert {(each.enabled, each.quanta[3]) for each in pauses} == {(8, 0xFFFF), (8, 0)}
    marked = sum(each.frame.fecn for each in sent if not isinstance(each.frame, ControlFrame))
    notices = sum(each.frame.becn for each in sent if not isinstance(each.frame, ControlFrame))
    assert min(len(pauses), marked, notices) > 5
    checked = ("-o", "ip.check_checksum:TRUE", "-T", "fields", "-e", "frame.number")
    assert len(tshark(path, *checked, "-Y", "ip.dsfield.ecn == 3 && ip.checksum.status == Good").split()) == marked
    assert tshark(path, *checked, "-Y", "ip && ip.checksum.status != Good") == ""
    cnp = "infiniband.bth.opcode == 0x81 && infiniband.reserved == 40 && ip.dsfield.dscp == 48"
    assert len(tshark(path, *checked, "-Y", cnp).split()) == notices


def test_two_paused_priorities_in_one_frame(tmp_path: Path) -> None:
    more = ", ".join(
        f"{{kind: incast, senders: 3, receiver: h3, size: 128KiB, priority: {priority}}}" for priority in (3, 4)
    )
    settings = ("fabric.lossless=[3, 4]", "fabric.congestion_control=none", f"traffic=[{more}]")
    sent = check_capture(lossless.pfc(*settings), tmp_path / "a.pcapng")
    named = {each.enabled for each in control(sent) if isinstance(each, Pfc)}
    assert named == {0b01000, 0b10000, 0b11000}


def test_flow_control_packets(tmp_path: Path) -> None:
    """Of both kinds and VLs, their counts ending in any two bits: those are a packet's LNH, to who takes it for one."""
    sent = check_capture(lossless.credits(), tmp_path / "a.pcapng")
    packets = [each for each in control(sent) if isinstance(each, Fcp)]
    assert {(each.op, each.vl) for each in packets} == {(0, 0), (1, 0), (0, 1), (1, 1)}
    assert {each.fctbs & 3 for each in packets} == {0, 1, 2, 3}
    assert any(each.frame.opcode == CNP for each in sent if not isinstance(each.frame, ControlFrame))


@pytest.mark.parametrize("profile", ["native", "roce"])
def test_several_links_and_sizes_of_every_padding(profile: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    check_capture(parse(ODD_SIZES.format(profile=profile)), path)
    names = {each.interface for each in read(path)}
    assert names == {
        *("h0-leaf0", "leaf0-h0", "leaf1-h3", "h3-leaf1"),
        *({"leaf0-spine1", "spine1-leaf0"} & names),  # if the hash led any frame there
    }


EVERY_SMALL_SIZE = """
name: every small size
fabric: {{profile: {profile}, topology: {{kind: line, switches: 1}}, flow_control: none}}
traffic: [{sizes}]
capture: [h0-s0]
"""


@pytest.mark.parametrize("profile", ["native", "roce"])
def test_no_payload_of_a_few_bytes_is_taken_for_something_else(profile: str, tmp_path: Path) -> None:
    """A payload may begin as an EtherType: 81 00 and nothing behind it would be a malformed VLAN tag."""
    sizes = ", ".join(f"{{kind: write, pairs: [[h0, h1]], size: {size}B, count: 260}}" for size in range(1, 9))
    sent = record(parse(EVERY_SMALL_SIZE.format(profile=profile, sizes=sizes)), tmp_path / "a.pcapng")
    found = list(shown(tmp_path / "a.pcapng"))
    assert len(found) == len(sent) == 2 * 8 * 260
    for each, fields in zip(sent, found, strict=True):
        check(each, fields)
    protocols = set(tshark(tmp_path / "a.pcapng", "-T", "fields", "-e", "frame.protocols").split())
    assert {name.rpartition("infiniband")[2] for name in protocols} == {"", ":data"}


@pytest.mark.long
@pytest.mark.parametrize("name", ["all-to-all-native", "all-to-all-roce"])
def test_the_big_ones_whole(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    sent = record(load(name), path)
    assert len(sent) > 50_000
    for each, fields in zip(sent, shown(path), strict=True):
        check(each, fields)


def test_interfaces_without_a_frame_are_named_too(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    with Recorder(path) as recorder:
        recorder._writer.begin([InterfaceBlock("idle-link", "a to b", 1, 10)], comment="idle", application="emu")
    assert tshark(path) == ""
    capinfos = shutil.which("capinfos")
    if capinfos:
        assert "Name = idle-link" in subprocess.run([capinfos, path], capture_output=True, text=True, check=True).stdout


def test_one_file_may_hold_both_networks(tmp_path: Path) -> None:
    """As two captures joined would: tshark tells Ethernet from ERF by each interface's link type."""
    paths = [tmp_path / f"{name}.pcapng" for name in ("hello", "line-store-and-forward")]
    for path in paths:
        record(small(path.stem, ALONE), path)
    both = tmp_path / "both.pcapng"
    both.write_bytes(b"".join(path.read_bytes() for path in paths))
    assert sum(1 for _ in read(both)) == len(tshark(both).splitlines()) == 59
    assert tshark(both, "-Y", "_ws.malformed") == ""


def test_a_wrong_byte_would_be_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    sent = record(small("hello", ALONE), path)
    data = bytearray(path.read_bytes())
    data[data.index(sent[-1].frame.data[14:] if sent[-1].frame.data else b"") + 8 + 11] ^= 1  # the ACK's PSN
    path.write_bytes(data)
    wrong = []
    for each, fields, captured in zip(sent, shown(path), read(path), strict=True):
        should, has = crcs(captured)
        try:
            check(each, fields)
            assert has == should
        except AssertionError:
            wrong.append(each.direction)
    assert wrong == ["h1-leaf1"]
