"""What crosses a host's PCIe links, captured: each packet in order of time, on links of any kind beside it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from emu.capture import Record, read
from emu.capture.recorder import Recorder
from emu.capture.writer import InterfaceBlock
from emu.cli import main
from emu.engine import Engine
from emu.framing.dissect import LINK_ERF, LINK_ETHERNET
from emu.pcie.framing import memory_write
from emu.run import Options, run
from emu.scenario.load import parse
from emu.taps import Taps
from tests.pcie.test_wireshark import PLUGIN, TSHARK

TEXT = """
name: inside
fabric: {{profile: {profile}, topology: {{kind: leaf_spine, leaves: 1, spines: 1, hosts_per_leaf: 2}}}}
host: {{path: {by}, pcie: {wire}}}
traffic: [{{kind: write, pairs: [[h0, h1]], size: {size}, count: {count}, op: {op}}}]
capture: {capture}
"""
NIC_LINK = "[h0.nic-h0.pcie]"
TO_NIC, FROM_NIC = "h0.pcie-h0.nic", "h0.nic-h0.pcie"
ONE_WRITE = [  # of 256 B by IBGDA: queue and payload in the GPU's memory, contexts in the host's
    (TO_NIC, "MWr 8 B at 0x300000000000: doorbell QP 0x11 producer 1"),
    (FROM_NIC, "MRd 256 B at 0x100000000000, tag 0"),  # its context, once
    (TO_NIC, "CplD 256 B of 256 still owed, lower address 0x00, tag 0"),
    (FROM_NIC, "MRd 64 B at 0x7e0000000000, tag 0"),
    (TO_NIC, "CplD 64 B of 64 still owed, lower address 0x00, tag 0: RDMA_WRITE QP 0x11 WQE 0"),
    (FROM_NIC, "MRd 256 B at 0x7f0000000000, tag 0"),
    (TO_NIC, "CplD 256 B of 256 still owed, lower address 0x00, tag 0"),
    (FROM_NIC, "MWr 64 B at 0x7e0000010000: CQE requester QP 0x11 WQE 0"),
]


def captured(path: Path, *, over: str = "memory", **how: Any) -> dict[str, Any]:
    """Run it; the result."""
    usual = {"profile": "native", "by": "ibgda", "wire": "memory", "size": "256B", "count": 1, "op": "write"}
    text = TEXT.format(**{**usual, "capture": NIC_LINK, **how})
    return run(parse(text, "inside.yaml"), Options(wire=over, captures=(path,)))


def decoded(path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    assert main(["decode", str(path), "--frames", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def shown(path: Path, *fields: str) -> list[list[str]]:
    """Those fields of each frame, as tshark with our plugin has them; skips where it runs no scripts."""
    options = [option for field in fields for option in ("-e", field)]
    command = [TSHARK, "-X", f"lua_script:{PLUGIN}", "-n", "-r", str(path), "-T", "fields", "-E", "separator=|"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return [line.split("|") for line in done.stdout.splitlines()]


@pytest.fixture
def plugin(tmp_path: Path) -> None:
    """Skip where there is no tshark, or none that runs scripts."""
    if not TSHARK or not shutil.which(TSHARK):
        pytest.skip("tshark is not installed (Debian package tshark)")
    probe = tmp_path / "probe.lua"
    probe.write_text("print('lua runs')")
    done = subprocess.run([TSHARK, "-X", f"lua_script:{probe}", "-G", "protocols"], capture_output=True, text=True)
    if "lua runs" not in done.stdout:
        pytest.skip("this tshark runs no Lua scripts")


def test_one_write_shows_what_the_nic_does_for_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.pcapng"
    result = captured(path)
    found = decoded(path, capsys)
    assert [(row["interface"], row["info"]) for row in found["rows"]] == ONE_WRITE
    assert found["networks"] == {"tlp": 8}
    assert (found["rdma_frames"], found["malformed"], found["flows"], found["warnings"]) == (0, 0, [], [])
    assert [each["name"] for each in found["interfaces"]] == [TO_NIC, FROM_NIC]
    on_links = {each["name"]: each["tlps"] for each in result["pcie"]["links"]}
    assert Counter(interface for interface, _ in ONE_WRITE) == {name: on_links[name] for name in (TO_NIC, FROM_NIC)}


@pytest.mark.usefixtures("plugin")
def test_tshark_shows_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    captured(path)
    assert [tuple(line) for line in shown(path, "frame.interface_name", "_ws.col.Info")] == ONE_WRITE


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize("path_to_nic", ["ibgda", "cpu_proxy", "cpu_sync"])
def test_tshark_and_decode_tell_every_packet_alike(
    path_to_nic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.pcapng"
    captured(path, by=path_to_nic, size="5000B", count=20, op="read", capture="all")
    rows = decoded(path, capsys)["rows"]
    lines = shown(path, "frame.interface_name", "frame.protocols", "_ws.col.Info", "_ws.malformed", "_ws.lua.error")
    assert len(lines) == len(rows) > 200
    for row, (interface, protocols, line, *wrong) in zip(rows, lines, strict=True):
        assert (interface, wrong) == (row["interface"], ["", ""])
        if row["network"] == "tlp":
            assert line == row["info"]
            assert "pcie_tlp" in protocols
        else:
            assert "erf" in protocols


@pytest.mark.parametrize(("profile", "link_type"), [("native", LINK_ERF), ("roce", LINK_ETHERNET)])
@pytest.mark.parametrize("path_to_nic", ["ibgda", "cpu_proxy"])
def test_all_links_in_order_of_time(profile: str, link_type: int, path_to_nic: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    result = captured(path, profile=profile, by=path_to_nic, size="64KiB", count=3, capture="all")
    records = list(read(path))
    assert [each.time_ns for each in records] == sorted(each.time_ns for each in records)
    by_interface = Counter(each.interface for each in records)
    inside = {each["name"]: each["tlps"] for each in result["pcie"]["links"]}
    assert {name: by_interface[name] for name in inside} == inside
    assert sum(inside.values()) == result["run"]["tlp_hops"]
    types = {("." in each.interface, each.link_type) for each in records}
    assert types == {(True, LINK_ETHERNET), (False, link_type)}
    assert all(each.data[12:15] == b"\x88\xb6\x02" for each in records if "." in each.interface)


@pytest.mark.parametrize(
    ("capture", "names"),
    [
        ("[h0.pcie-h0.nic]", [FROM_NIC, TO_NIC]),
        ("[h0.nic-h0.pcie, h0.pcie-h0.nic]", [FROM_NIC, TO_NIC]),
        ("[leaf0-h0]", ["leaf0-h0", "h0-leaf0"]),
        ("[h1.gpu-h1.pcie, h1-leaf0]", ["leaf0-h1", "h1-leaf0", "h1.gpu-h1.pcie", "h1.pcie-h1.gpu"]),
    ],
)
def test_a_name_means_both_directions(capture: str, names: list[str], tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    captured(path, capture=capture)
    found = {each.interface for each in read(path)}
    assert found <= set(names)
    written = path.read_bytes()
    assert all(name.encode() in written for name in names)
    assert b" to " in written
    assert (b"h0.nic to h0.pcie" in written) == (FROM_NIC in names)


def recorder(path: Path) -> tuple[Recorder, Engine, Taps]:
    """One that watches a link a to b inside a host."""
    made, engine, taps = Recorder(path), Engine(), Taps()
    block = InterfaceBlock("a-b", "a to b", LINK_ETHERNET, 10**9)
    made.watch(taps, (), native=True, title="test", inside=[block], engine=engine)
    return made, engine, taps


def times(path: Path) -> list[int]:
    return [each.time_ns for each in read(path)]


def test_what_lies_ahead_is_held_back_and_written_in_its_turn(tmp_path: Path) -> None:
    path = tmp_path / "a"
    made, engine, taps = recorder(path)
    with made:
        for time_ps in (0, 7000, 3000, 3000):
            taps.frame_sent and taps.frame_sent(time_ps, "a-b", memory_write(time_ps, b"abcd", 1))
        assert (times(path), made.frames) == ([0], 1)
        engine.at(5000, lambda _: taps.frame_sent and taps.frame_sent(5000, "a-b", memory_write(5000, b"abcd", 1)))
        engine.run()
        assert times(path) == [0, 3, 3, 5]
        taps.frame_sent and taps.frame_sent(9000, "elsewhere", memory_write(0, b"abcd", 1))
        made.finish()
        assert times(path) == [0, 3, 3, 5, 7]
        assert made.frames == 5


def test_what_lies_ahead_is_written_however_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "a"
    made, _, taps = recorder(path)
    with pytest.raises(ZeroDivisionError), made:
        taps.frame_sent and taps.frame_sent(4000, "a-b", memory_write(0, b"abcd", 1))
        raise ZeroDivisionError
    assert times(path) == [4]


def test_a_full_disk_while_something_lies_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, _, taps = recorder(tmp_path / "a")
    with made:
        for time_ps in (4000, 5000):
            taps.frame_sent and taps.frame_sent(time_ps, "a-b", memory_write(0, b"abcd", 1))

        def full(*_: object) -> int:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.write", full)
        made.finish()
        monkeypatch.undo()
        assert made.failure is not None
        assert made.frames == 0
        made.finish()
    assert times(tmp_path / "a") == []


def test_a_record_is_an_ethernet_frame_of_its_own_kind(tmp_path: Path) -> None:
    path = tmp_path / "a"
    made, _, taps = recorder(path)
    tlp = memory_write(1 << 40, b"abcd", 0x0100)
    with made:
        taps.frame_sent and taps.frame_sent(0, "a-b", tlp)
    assert list(read(path)) == [Record(0, "a-b", LINK_ETHERNET, tlp.data or b"", 15 + 16 + 4)]


@pytest.mark.lab
@pytest.mark.parametrize("path_to_nic", ["ibgda", "cpu_proxy", "cpu_sync"])
def test_all_wires_write_the_same_file(path_to_nic: str, tmp_path: Path) -> None:
    files = []
    for over, wire in (("memory", "memory"), ("veth", "memory"), ("veth", "veth")):
        path = tmp_path / f"{over} {wire}"
        captured(path, over=over, wire=wire, by=path_to_nic, size="20000B", count=5, capture="all")
        files.append(path.read_bytes())
    assert files[0] == files[1] == files[2]
    assert len(files[0]) > 100_000
