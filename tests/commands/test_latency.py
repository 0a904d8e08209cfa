"""`emu latency`: the shape of its JSON, its folder, its text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from emu.cli import main

SMALL = ("latency", "--wire", "memory", "--iters", "2", "--sizes", "64B,4KiB")
ROW = {
    *("profile", "op", "size_bytes", "hops"),
    *("fabric_latency_ns", "message_latency_ns", "completion_latency_ns", "breakdown_ns"),
}


def test_json_has_a_row_for_each_profile_and_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main([*SMALL, "--profile", "native,roce,native", "--json", "--out", str(out)]) == 0
    printed, said = capsys.readouterr()
    rows = json.loads(printed)["rows"]
    assert said == ""
    assert [(row["profile"], row["size_bytes"]) for row in rows] == [
        ("native", 64),
        ("native", 4096),
        ("roce", 64),
        ("roce", 4096),
    ]
    assert all(set(row) == ROW for row in rows)
    assert (out / "result.json").read_text() == printed
    assert [path.name for path in out.iterdir()] == ["result.json"]


def test_the_text_tells_calibrated_from_published(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--profile", "native,roce,roce-63"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any("native: 3 hops at 4KiB in" in line and line.endswith(": under 1 us") for line in lines)
    assert any("roce: 3 hops at 4KiB in" in line and line.endswith(": NOT under 1 us") for line in lines)
    hops = [line.split() for line in lines if " hop_latency " in line and not line.startswith("note")]
    assert [words[words.index("hop_latency") + 1 :][:3] for words in hops] == [
        ["native", "260ns", "published"],
        ["roce", "600ns", "secondary"],
        ["roce-63", "795ns", "CALIBRATED"],
    ]
    assert any(line.startswith("note: roce-63: hop_latency 795ns") for line in lines)


def test_a_changed_hop_latency_shows_as_the_scenarios(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--profile", "native,roce-63", "--set", "fabric.hop_latency=400ns"]) == 0
    printed = capsys.readouterr().out
    assert "note: roce-63" not in printed
    assert "native: 3 hops at 4KiB in 1.363 us: NOT under 1 us" in printed
    assert any(words[:4] == ["hop_latency", "all", "400ns", "scenario"] for words in split(printed))


def test_traffic_that_does_not_complete_is_exit_5(capsys: pytest.CaptureFixture[str]) -> None:
    slow = ("host.nic.receive=1ms", "host.nic.ack_timeout_code=1", "host.nic.retry_cnt=0")
    settings = [part for text in slow for part in ("--set", text)]
    assert main([*SMALL, "--profile", "native", *settings, "--json"]) == 5
    printed, said = capsys.readouterr()
    assert said.count("1 message failed") == 2
    found = json.loads(printed)
    assert (found["rows"], found["complete"], len(found["missing"])) == ([], False, 2)


def test_what_no_message_took_is_no_figure(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        *SMALL,
        "--profile",
        "native,roce",
        "--set",
        "fabric.rate=100Kbps",
        "--set",
        "fabric.congestion_control=none",
    ]
    assert main([*arguments, "--json"]) == 5
    printed, said = capsys.readouterr()
    found = json.loads(printed)
    assert [(row["profile"], row["size_bytes"]) for row in found["rows"]] == [("native", 64), ("roce", 64)]
    assert [line.partition(":")[0] for line in found["missing"]] == ["native 4096B", "roce 4096B"]
    assert found["complete"] is False
    assert said.startswith("emu: latency native 4096B: traffic did not complete: ")
    assert main(arguments) == 5
    assert "MISSING: roce 4096B: traffic did not complete" in capsys.readouterr().out
    assert (
        main(
            [
                *SMALL,
                "--profile",
                "native,roce",
                "--set",
                "fabric.rate=1Kbps",
                "--set",
                "fabric.congestion_control=none",
            ]
        )
        == 5
    )
    assert capsys.readouterr().out.startswith("no row is whole\nMISSING: native 64B: ")


def test_quiet_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--profile", "native", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def split(printed: str) -> list[list[str]]:
    """Each line's words, from `hop_latency` on where it has that."""
    lines = [line.split() for line in printed.splitlines()]
    return [words[words.index("hop_latency") :] if "hop_latency" in words else words for words in lines]
