"""What is captured and decoded of a lossless run: flow control, marks and notifications, and no flow that is none."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from struct import unpack_from
from typing import Any

import pytest

from emu import opcodes
from emu.capture import Record, read
from emu.cli import main
from emu.frame import ControlFrame
from emu.framing.control import Fcp, Pfc, encode, encode_fcp
from emu.run import Options, run
from emu.scenario.model import Scenario
from tests.capture import lossless
from tests.capture.recording import Sent, record

RUNS = {"pfc": lossless.pfc, "credits": lossless.credits}


def control(sent: list[Sent]) -> list[Sent]:
    """The link's own frames among them."""
    return [each for each in sent if isinstance(each.frame, ControlFrame)]


def said(each: Sent) -> Any:
    assert isinstance(each.frame, ControlFrame)
    return each.frame.control


def recorded(scenario: Scenario, path: Path) -> list[tuple[Sent, Record]]:
    """What was sent, and what was captured of it."""
    sent = record(scenario, path)
    return list(zip(sent, read(path), strict=True))


def test_pauses_are_captured_as_they_are_on_the_wire(tmp_path: Path) -> None:
    seen = [both for both in recorded(lossless.pfc(), tmp_path / "a") if isinstance(both[0].frame, ControlFrame)]
    assert {said(each).quanta[3] for each, _ in seen} == {0, 0xFFFF}
    for each, captured in seen:
        assert (captured.time_ns, captured.interface, captured.link_type) == (each.time_ps // 1000, each.direction, 1)
        assert captured.data == encode(said(each))
        assert len(captured.data) == captured.original_bytes == 60


def test_a_flow_control_packet_is_an_erf_record_of_its_own_type(tmp_path: Path) -> None:
    seen = [both for both in recorded(lossless.credits(), tmp_path / "a") if isinstance(both[0].frame, ControlFrame)]
    assert len(seen) > 50
    for each, captured in seen:
        assert (captured.time_ns, captured.interface, captured.link_type) == (each.time_ps // 1000, each.direction, 197)
        assert unpack_from(">BBHHH", captured.data, 8) == (25, 4, 82, 0, 66)
        assert captured.data[16:] == encode_fcp(said(each)).ljust(66, b"\0")  # as much as Wireshark looks at


def test_links_come_up_before_the_clock_starts(tmp_path: Path) -> None:
    sent = record(lossless.credits(), tmp_path / "a")
    first = [each for each in sent if isinstance(each.frame, ControlFrame) and said(each).op == 1]
    assert sent[: len(first)] == first
    assert Counter(each.direction for each in first) == dict.fromkeys({each.direction for each in sent}, 2)  # VLs
    assert {(each.time_ps, said(each).fctbs, said(each).fccl) for each in first} == {(0, 0, 130)}


def test_refreshes_that_say_nothing_new_are_counted_and_not_captured(tmp_path: Path) -> None:
    """One message every 50 us, and a refresh every 5."""
    path = tmp_path / "a"
    once = "{kind: write, pairs: [[h0, h3]], size: 64B}"
    scenario = lossless.credits(f"traffic=[{once}, {once[:-1]}, start: 50us}}]")
    result = run(scenario, Options(wire="memory", captures=(path,)))
    counted = sum(link["credit_frames"] for link in result["links"])
    captured = sum(each.data[8] == 25 for each in read(path))
    links = len(result["links"])
    assert counted > captured + links * 2 * 8 > 0


@pytest.mark.parametrize("name", RUNS)
def test_a_recorder_changes_nothing(name: str, tmp_path: Path) -> None:
    scenario = RUNS[name]()
    without = run(scenario, Options(wire="memory"))
    captured = run(scenario, Options(wire="memory", captures=(tmp_path / "a",)))
    for result in (without, captured):
        result["run"] = None
    assert without == captured


@pytest.mark.lab
@pytest.mark.parametrize("name", RUNS)
def test_both_wires_write_the_same_file(name: str, tmp_path: Path) -> None:
    paths = {wire: tmp_path / wire for wire in ("veth", "memory")}
    for wire, path in paths.items():
        run(RUNS[name](), Options(wire=wire, captures=(path,)))
    assert paths["veth"].read_bytes() == paths["memory"].read_bytes()


def decode(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> Any:
    assert main(["decode", str(path), *options]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", RUNS)
def test_decode_counts_every_frame_for_what_it_is(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.pcapng"
    sent = record(RUNS[name](), path)
    own = len(control(sent))
    result = json.loads(decode(path, capsys, "--json", "--frames"))
    network, link = {"pfc": ("rocev2", "pfc"), "credits": ("native", "fcp")}[name]
    assert result["networks"] == {network: len(sent) - own, link: own}
    assert (result["rdma_frames"], result["malformed"], result["warnings"]) == (len(sent) - own, 0, [])
    assert result["icrc"] == {"ok": len(sent) - own, "bad": 0, "unchecked": 0}
    assert result["vcrc"] == {"ok": len(sent) if name == "credits" else 0, "bad": 0, "unchecked": 0}
    for each, row in zip(sent, result["rows"], strict=True):
        if isinstance(each.frame, ControlFrame):
            assert (row["opcode"], row["destination_qp"], row["icrc"]) == (None, None, "none")
            assert row["headers"] == {link: header_of(said(each))}
            assert row["frame_bytes"] == (60 if name == "pfc" else 6)
        else:
            assert (row["opcode"], row["fecn"] or row["ecn"] == 3) == (each.frame.opcode, each.frame.fecn)


def header_of(what: Pfc | Fcp) -> dict[str, Any]:
    if isinstance(what, Pfc):
        return {"enabled": what.enabled, "quanta": list(what.quanta)}
    return {"op": what.op, "vl": what.vl, "fctbs": what.fctbs, "fccl": what.fccl}


@pytest.mark.parametrize("name", RUNS)
def test_flow_control_and_notifications_are_no_flows_and_spoil_none(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.pcapng"
    sent = record(RUNS[name](), path)
    result = json.loads(decode(path, capsys, "--json"))
    for flow in result["flows"]:
        own = [
            each.frame
            for each in sent
            if each.direction == flow["interface"]
            and not isinstance(each.frame, ControlFrame)
            and each.frame.envelope.destination_qp == flow["destination_qp"]
            and address(each, name) == (flow["source"], flow["destination"])
        ]
        assert flow["frames"] == len(own) > 0
        assert flow["marked"] == sum(frame.fecn or frame.becn for frame in own)
        assert (flow["missing"], flow["retransmitted"], flow["naks"]) == (0, 0, 0)
        assert flow["opcodes"] == dict(Counter(opcodes.NAMES[frame.opcode] for frame in own))
        assert flow["messages"] == flow["complete"] == sum(frame.opcode in ENDS for frame in own)
    assert sum(flow["frames"] for flow in result["flows"]) == result["rdma_frames"]
    assert any("CNP" in flow["opcodes"] for flow in result["flows"])


ENDS = (opcodes.WRITE_LAST, opcodes.WRITE_ONLY)


def address(each: Sent, name: str) -> tuple[str, str]:
    envelope = each.frame.envelope
    if name == "credits":
        return f"LID {envelope.source}", f"LID {envelope.destination}"
    return f"10.0.0.{envelope.source & 255}", f"10.0.0.{envelope.destination & 255}"


def test_the_text_names_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.pcapng"
    record(lossless.pfc(), path)
    text = decode(path, capsys, "--frames")
    assert " PFC priority 3: 65535 quanta\n" in text
    assert " PFC priority 3: go on\n" in text
    assert " CNP QP 0x11 PSN 0\n" in text
    assert " marked for congestion (CE, FECN, BECN)" in text
    path.unlink()
    record(lossless.credits(), path)
    text = decode(path, capsys, "--frames")
    assert "  1      0 ns  leaf0-h0" in text
    assert " FCP initialise VL 1 FCTBS 0 FCCL 130\n" in text
    assert " FCP VL 0 FCTBS " in text


def test_a_flow_control_packet_with_a_wrong_byte_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.pcapng"
    sent = record(lossless.credits(), path)
    data = bytearray(path.read_bytes())
    data[data.index(encode_fcp(said(control(sent)[-1]))) + 1] ^= 1
    path.write_bytes(data)
    result = json.loads(decode(path, capsys, "--json"))
    assert result["vcrc"]["bad"] >= 1
    assert result["icrc"]["bad"] == 0
