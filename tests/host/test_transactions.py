"""What crosses the bus for one small WRITE by each path is architecture.md 8's table: captured, decoded, drawn."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from emu.cli import main
from emu.host.places import GPU_BYTES, GPU_START, HOST_BYTES, HOST_START, UAR_START
from emu.run import Options, run
from emu.scenario.load import parse
from tests.pcie.test_capture import plugin as plugin  # noqa: PLC0414 - a fixture
from tests.pcie.test_capture import shown

TEXT = """
name: one write
fabric: {{profile: native, topology: {{kind: leaf_spine, leaves: 1, spines: 1, hosts_per_leaf: 2}}}}
host: {{path: {path}, gpu_direct: {direct}, pcie: {wire}}}
traffic: [{{kind: write, pairs: [[h0, h1]], size: 8B, count: 2}}]
capture: all
"""
CONTEXT = "256 B"  # what a NIC reads of a queue pair that it has not seen: of the first message only
ASK_AND_ANSWER = [("nic", "MRd 8 B at GPU"), ("gpu", "CplD 8 B")]
TRANSACTIONS = {
    ("ibgda", "true"): [
        ("gpu", "MWr 8 B at UAR: doorbell QP 0x11 producer 2"),
        ("nic", "MRd 64 B at GPU"),
        ("gpu", "CplD 64 B: RDMA_WRITE QP 0x11 WQE 1"),
        *ASK_AND_ANSWER,
        ("nic", "MWr 64 B at GPU: CQE requester QP 0x11 WQE 1"),
    ],
    ("cpu_proxy", "true"): [
        ("gpu", "MWr 32 B at host"),
        ("cpu", "MWr 64 B at UAR: RDMA_WRITE QP 0x11 WQE 1"),
        *ASK_AND_ANSWER,
        ("nic", "MWr 64 B at host: CQE requester QP 0x11 WQE 1"),
        ("cpu", "MWr 8 B at GPU"),
    ],
    ("cpu_sync", "true"): [
        ("cpu", "MWr 64 B at UAR: RDMA_WRITE QP 0x11 WQE 1"),
        *ASK_AND_ANSWER,
        ("nic", "MWr 64 B at host: CQE requester QP 0x11 WQE 1"),
    ],
    ("ibgda", "false"): [
        ("gpu", "MWr 8 B at host"),
        ("gpu", "MWr 8 B at UAR: doorbell QP 0x11 producer 2"),
        ("nic", "MRd 64 B at GPU"),
        ("gpu", "CplD 64 B: RDMA_WRITE QP 0x11 WQE 1"),
        ("nic", "MRd 8 B at host"),
        ("cpu", "CplD 8 B"),
        ("nic", "MWr 64 B at GPU: CQE requester QP 0x11 WQE 1"),
    ],
}
LANDED = {"true": [("nic", "MWr 8 B at GPU")], "false": [("nic", "MWr 8 B at host"), ("cpu", "MWr 8 B at GPU")]}
BY_CPU = [
    ("cpu", "MWr 8 B at UAR: doorbell QP 0x11 producer 2"),
    ("nic", "MRd 64 B at host"),
    ("cpu", "CplD 64 B: RDMA_WRITE QP 0x11 WQE 1"),
]


def captured(path: Path, by: str, direct: str, *given: str, wire: str = "memory", over: str = "memory") -> None:
    text = TEXT.format(path=by, direct=direct, wire=wire)
    result = run(parse(text, "one.yaml", given), Options(wire=over, captures=(path,)))
    assert result["complete"]


def where(line: str) -> str:
    """An info line with a place for its address, and without what is of its packet only."""

    def named(found: re.Match[str]) -> str:
        address = int(found[1], 16)
        if address & -4096 == UAR_START:
            return "at UAR"
        if HOST_START <= address < HOST_START + HOST_BYTES:
            return "at host"
        assert GPU_START <= address < GPU_START + GPU_BYTES
        return "at GPU"

    line = re.sub(r", tag \d+", "", re.sub(r"at (0x[0-9a-f]+)", named, line))
    return re.sub(r" of \d+ still owed, lower address 0x[0-9a-f]+", "", line)


def of_the_second(lines: list[tuple[str, str]], host: str) -> list[tuple[str, str]]:
    """What parts of the host send for the second message: who, and what."""
    sent = [(name, info) for name, info in lines if name.startswith(f"{host}.") and name.endswith(f"-{host}.pcie")]
    found = [(name.partition("-")[0].partition(".")[2], where(info)) for name, info in sent if CONTEXT not in info]
    return found[len(found) // 2 :]


def rows(path: Path, capsys: pytest.CaptureFixture[str]) -> list[tuple[str, str]]:
    assert main(["decode", str(path), "--frames", "--json"]) == 0
    return [(row["interface"], row["info"]) for row in json.loads(capsys.readouterr().out)["rows"]]


@pytest.mark.parametrize(("by", "direct"), TRANSACTIONS)
def test_a_capture_shows_the_tables_transactions(
    by: str, direct: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.pcapng"
    captured(path, by, direct)
    lines = rows(path, capsys)
    assert of_the_second(lines, "h0") == TRANSACTIONS[by, direct]
    assert of_the_second(lines, "h1") == LANDED[direct]


@pytest.mark.parametrize("by", ["cpu_proxy", "cpu_sync"])
def test_without_blueflame_the_nic_fetches_the_wqe(by: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.pcapng"
    captured(path, by, "true", "host.cpu.blueflame=false")
    usual = TRANSACTIONS[by, "true"]
    blueflame = usual.index(("cpu", "MWr 64 B at UAR: RDMA_WRITE QP 0x11 WQE 1"))
    expected = [*usual[:blueflame], *BY_CPU, *usual[blueflame + 1 :]]
    assert of_the_second(rows(path, capsys), "h0") == expected


def test_ibgda_makes_four_transactions_of_six_packets_and_none_of_host_memory() -> None:
    packets = TRANSACTIONS["ibgda", "true"]
    assert len(packets) == 6
    assert len([what for _, what in packets if not what.startswith("CplD")]) == 4
    assert not [each for each in packets if each[0] == "cpu" or "host" in each[1]]


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize(("by", "direct"), TRANSACTIONS)
def test_tshark_shows_the_same(by: str, direct: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    captured(path, by, direct)
    lines = [(name, info) for name, info in shown(path, "frame.interface_name", "_ws.col.Info")]
    assert of_the_second(lines, "h0") == TRANSACTIONS[by, direct]
    assert of_the_second(lines, "h1") == LANDED[direct]


@pytest.mark.lab
@pytest.mark.parametrize("by", ["ibgda", "cpu_proxy", "cpu_sync"])
def test_a_capture_over_veth_is_the_same_to_the_byte(by: str, tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.pcapng" for name in ("memory", "apart")]
    captured(paths[0], by, "true", over="veth")
    captured(paths[1], by, "true", wire="veth", over="veth")
    assert paths[0].read_bytes() == paths[1].read_bytes()


def doorbell(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["doorbell", "--wire", "memory", "--messages", "200", "--warps", "1", "--quiet", *options]) == 0
    return capsys.readouterr().out


def steps_of(row: dict[str, Any]) -> list[tuple[str, str]]:
    """The sender's packets, as the capture has them."""
    names = {"doorbell": "UAR", "BlueFlame": "UAR"}
    found = []
    for step in row["steps"]:
        host, _, part = step["who"].partition(".")
        if host == "h0" and step["what"].startswith(("MWr", "MRd", "CplD")):
            kind, size, _, purpose = step["what"].replace(": ", " ").split(" ", 3)
            to = step["where"].partition(".")[2]
            place = next((name for word, name in names.items() if purpose.startswith(word)), None)
            place = place or {"gpu": "GPU", "cpu": "host", "nic": "UAR"}[to]
            found.append((part, f"{kind} {size} B" if kind == "CplD" else f"{kind} {size} B at {place}"))
    return found


@pytest.mark.parametrize(("by", "direct"), TRANSACTIONS)
def test_the_steps_of_emu_doorbell_are_those(by: str, direct: str, capsys: pytest.CaptureFixture[str]) -> None:
    on = "on" if direct == "true" else "off"
    (row,) = json.loads(doorbell(capsys, "--json", "--path", by, "--gpu-direct", on))["rows"]
    assert steps_of(row) == [(who, what.partition(":")[0]) for who, what in TRANSACTIONS[by, direct]]
    times = [step["at_ns"] for step in row["steps"]]
    assert times == sorted(times)
    at = {step["what"]: step["at_ns"] for step in row["steps"]}
    assert at["knows that it is done"] == row["completion_latency_ns"]
    assert at["has the data in memory"] == row["latency_ns"]


def test_the_diagram_draws_each_packet_between_its_two_parts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doorbell", "--wire", "memory", "--messages", "200", "--warps", "1", "--path", "ibgda"]) == 0
    drawn = capsys.readouterr().out.splitlines()
    header = next(line for line in drawn if line.split()[:2] == ["ns", "gpu"])
    middles = {name: header.index(f" {name} ") + 1 + len(name) // 2 for name in ("gpu", "cpu", "nic")}
    arrows = [line for line in drawn if re.search(r"\d  .*(MWr|MRd|CplD) \d+ B", line)]
    assert len(arrows) == 7  # the sender's six, and the receiver's write
    for line in arrows[:5]:
        head = line.index(">") if ">" in line else line.index("<")
        shaft = [place for place, each in enumerate(line[: line.rindex("|") + 1]) if each == "-"]
        assert middles["gpu"] < min(*shaft, head) and max(*shaft, head) < middles["nic"]
        assert (">" in line) == ("doorbell" in line or "CplD" in line)
