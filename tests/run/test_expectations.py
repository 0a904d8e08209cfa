"""Expectations that lead nowhere are refused before anything is built."""

from __future__ import annotations

import pytest

from emu.errors import ScenarioError
from emu.run import Options, run
from emu.scenario.load import parse

TEXT = """
name: expect
fabric: {{profile: native, topology: {{kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 1}}}}
traffic: [{{kind: write, pairs: [[h0, h1]], size: 4KiB}}]
expect: ["{}"]
"""


@pytest.mark.parametrize(
    ("line", "holds"),
    [
        ("messages.completed == 1", True),
        ("flows[src=h0].bytes == 4096B", True),
        ("max(flows.slowdown) <= 1", True),
        ("links[name=leaf0-h0].tx_frames == 0", False),
        ("links[name=h0-leaf0].max_queue_bytes == 0B", True),
    ],
)
def test_what_leads_somewhere_is_judged_after_the_run(line: str, holds: bool) -> None:
    result = run(parse(TEXT.format(line), "expect.yaml", ()), Options(wire="memory"))
    assert [each["holds"] for each in result["expect"]] == [holds]


@pytest.mark.parametrize(
    "line",
    [
        "messages.complete == 1",
        "links[name=leaf9-h0].dropped == 0",
        "flows[src=h0].finished_ns == 1ns",
        "flows[sre=h0].bytes > 1B",
    ],
)
def test_what_leads_nowhere_is_refused_before_the_run(line: str) -> None:
    started: list[object] = []
    scenario = parse(TEXT.format(line), "expect.yaml", ())
    with pytest.raises(ScenarioError, match=r"^expect\.yaml:5: expect\.0: "):
        run(scenario, Options(wire="memory", before_run=started.append))
    assert started == []


@pytest.mark.parametrize(
    ("setting", "start"),
    [
        (
            "expect=[drops.lossless == 0, messages.nope == 1]",
            "--set expect=[drops.lossless == 0, messages.nope == 1]: expect.1: ",
        ),
        ("expect.0=messages.nope == 1", "--set expect.0=messages.nope == 1: expect.0: "),
    ],
)
def test_one_from_an_option_is_named_by_it(setting: str, start: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        run(parse(TEXT.format("drops.lossless == 0"), "expect.yaml", [setting]), Options(wire="memory"))
    assert str(caught.value).startswith(start)
