"""`emu doorbell`: what it prints and writes, and mistakes that end it before anything runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from emu.cli import main

ROW = {
    *(
        "path",
        "gpu_direct",
        "size_bytes",
        "warps",
        "cores",
        "qps",
        "link_bps",
        "messages_per_s",
        "limit_per_s",
        "bound_by",
    ),
    *("limits_per_s", "latency_ns", "completion_latency_ns", "breakdown_ns", "nic_ns", "network_ns", "steps"),
}
LITTLE = ("doorbell", "--wire", "memory", "--messages", "100", "--warps", "4")


def ran(*arguments: str) -> int:
    return main([*LITTLE, *arguments])


def test_json_has_the_rows_of_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    assert ran("--json", "--path", "ibgda,cpu_sync", "--gpu-direct", "both") == 0
    found = json.loads(capsys.readouterr().out)
    assert [(row["path"], row["gpu_direct"]) for row in found["rows"]] == [
        *(("ibgda", True), ("ibgda", False)),
        *(("cpu_sync", True), ("cpu_sync", False)),
    ]
    assert all(set(row) == ROW for row in found["rows"])
    assert all(set(step) == {"who", "what", "where", "at_ns"} for row in found["rows"] for step in row["steps"])
    assert (found["complete"], found["missing"]) == (True, [])
    assert found["inputs"]["host.cpu.request"]["kind"] == "calibrated"


def test_a_path_named_twice_is_measured_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert ran("--json", "--path", "ibgda,ibgda", "--sizes", "8B,8B", "--warps", "2,2") == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 1


def test_the_text_with_and_without_diagram(capsys: pytest.CaptureFixture[str]) -> None:
    assert ran("--path", "ibgda") == 0
    assert "MWr 8 B: doorbell" in capsys.readouterr().out
    assert ran("--path", "ibgda", "--no-diagram") == 0
    out = capsys.readouterr().out
    assert "MWr 8 B: doorbell" not in out
    assert "what the figures rest on" in out


def test_out_writes_the_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ran("--path", "ibgda", "--quiet", "--out", str(tmp_path / "out")) == 0
    assert capsys.readouterr().out == ""
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["result.json"]
    assert len(json.loads((tmp_path / "out/result.json").read_text())["rows"]) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--path", "proxy"], "--path: 'proxy' is unknown; known: ibgda, cpu_proxy, cpu_sync"),
        (["--warps", "0"], "argument --warps: '0': a whole number from 1 to 65536"),
        (["--sizes", "8"], "'8' has no unit"),
        (["--set", "host.path=ibgda"], "host.path is not set here: use --path"),
        (["--set", "host.gpu.warps=4"], "host.gpu.warps is not set here: use --warps"),
        (["--set", "host.pcie.mps=300B"], "allowed: 128B, 256B, 512B, 1KiB, 2KiB, 4KiB"),
        (["--set", "host.pcie.mrrs=8KiB"], "allowed: 128B, 256B, 512B, 1KiB, 2KiB, 4KiB"),
        (["--set", "host.queues.qp_depth=100"], "100 is no power of two"),
        (["--set", "host.queues.num_requests_in_batch=2048"], "a doorbell's batch is at most qp_depth, 1024"),
        (["--set", "host.gpu.wraps=1"], "unknown key 'wraps'; did you mean 'warps'?"),
        (["--set", "host.pcie=veth"], "a run over --wire memory has no namespaces"),
        (["--published", "--path", "ibgda"], "--path: --published has its own"),
        (["--published", "--gpu-direct", "off"], "--gpu-direct: --published has its own"),
        (["--published", "--qps", "4"], "--qps: --published has its own"),
    ],
)
def test_a_mistake_is_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing_runs(*_: object) -> None:
        raise AssertionError("something ran")

    if "veth" not in arguments[-1]:  # which a run alone can refuse
        monkeypatch.setattr("emu.harness.doorbell.run", nothing_runs)
    options = ["doorbell", "--wire", "memory", "--messages", "100"]
    assert main([*options, *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("emu doorbell: ")
    assert said in err
    assert err.count("\n") == 1


def test_published_figures(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    import emu.harness.published as published

    monkeypatch.setattr(published, "PARTS", {"single writes": published.PARTS["single writes"]})
    options = ["doorbell", "--wire", "memory", "--messages", "100", "--published"]
    assert main(options) == 0
    out = capsys.readouterr().out
    assert "RDMA WRITE visible, GPU-direct" in out
    assert "+46.3 %" in out
    assert main([*options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["unit"] for each in found["published"]] == ["us", "us"]
    assert len(found["rows"]) == 2


def test_rows_that_did_not_complete_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    lossy = "inject=[{link: h0-leaf0, drop: 100%, match: {kind: data}}]"
    settings = ("--set", lossy, "--set", "host.nic.retry_cnt=0", "--set", "host.nic.ack_timeout_code=1")
    assert ran("--path", "ibgda", *settings) == 5
    out, err = capsys.readouterr()
    assert "no row is whole" in out
    assert "emu: doorbell ibgda 8B 4 warps: traffic did not complete" in err
