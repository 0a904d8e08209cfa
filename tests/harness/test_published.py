"""Published figures beside ours: what is run for them, and that a miss is shown as one."""

from __future__ import annotations

import pytest

from emu.errors import ScenarioError
from emu.harness.doorbell import Plan, cases_of, measure
from emu.harness.published import INLINE, PARTS, PROFILE, Compared, compare
from emu.harness.round_trip import round_trip_ps
from emu.report.published import published_text
from emu.run import Options
from emu.scenario.load import build
from emu.scenario.model import Scenario

MEMORY = Options(wire="memory")
POLL_NS = 500


@pytest.fixture(scope="module")
def found() -> Compared:
    return compare((), None, MEMORY, messages=300)


def scenario(path: str, *settings: str) -> Scenario:
    given = {
        "name": "there and back",
        "fabric": {
            "profile": PROFILE,
            "topology": {"kind": "leaf_spine", "leaves": 1, "spines": 1, "hosts_per_leaf": 2},
        },
        "host": {"path": path},
        "traffic": [],
    }
    return build(given, (INLINE, *settings), None)


@pytest.mark.parametrize("path", ["ibgda", "cpu_proxy"])
def test_a_round_trip_is_twice_a_put_and_the_wait_behind_it(path: str) -> None:
    (row,) = measure(cases_of(Plan(profile=PROFILE, paths=(path,), warps=(1,), settings=(INLINE,))), MEMORY).rows
    one_way_ns = row["latency_ns"] + POLL_NS
    behind_ns = round_trip_ps(scenario(path), MEMORY) / 1000 / 2 - one_way_ns
    # The signal waits for the put's WQE to be read with its own, or for the proxy to be done with the put.
    assert (0 < behind_ns < 100) if path == "ibgda" else (580 < behind_ns < 600)


def test_what_a_gpu_needs_to_see_the_signal_counts_twice() -> None:
    before, after = (round_trip_ps(scenario("ibgda", f"host.gpu.poll={poll}ns"), MEMORY) for poll in (500, 700))
    assert after - before == 2 * 200_000


def test_the_proxy_was_fitted_and_nothing_else(found: Compared) -> None:
    assert [figure.name for figure in found.figures if figure.fitted] == ["messages by the proxy (IBRC)"]
    assert abs(found.figures[0].off) < 0.03
    kinds = {path: each.kind for path, each in found.doorbells.inputs.items()}
    assert [path for path, kind in kinds.items() if kind == "calibrated"] == ["host.cpu.request"]


@pytest.mark.long
def test_figures_come_from_runs(found: Compared) -> None:
    assert len(found.figures) == 12
    assert len(found.doorbells.rows) == 17
    assert not found.doorbells.missing
    ours = {figure.name: figure.ours for figure in found.figures}
    slow = compare(("host.cpu.request=1176ns",), None, MEMORY, messages=300)
    assert slow.figures[0].ours == pytest.approx(ours["messages by the proxy (IBRC)"] / 2, rel=0.02)
    assert slow.figures[0].off < -0.45
    assert slow.figures[2].ours > 1.9 * ours[slow.figures[2].name]


def test_a_miss_is_shown(found: Compared) -> None:
    text = published_text(found.to_json())
    lines = {line.strip().partition("  ")[0]: line for line in text.splitlines()}
    assert "FITTED" in lines["messages by the proxy (IBRC)"]
    assert f"{found.figures[6].off * 100:.1f} %" in lines["round trip, NVSHMEM IBGDA"]
    assert found.figures[6].off < -0.5
    assert "[1] NVIDIA's article" in text
    assert "fabric.profile=ndr, fabric.rate=200Gbps, host.pcie.generation=4" in text


def test_mistakes_come_first() -> None:
    with pytest.raises(ScenarioError, match=r"host\.gpu\.post: 1 has no unit"):
        compare(("host.gpu.post=1",), None, MEMORY, messages=100)


def test_each_part_is_told_of_before_it_runs() -> None:
    told: list[tuple[int, str]] = []

    def stop(number: int, name: str) -> None:
        told.append((number, name))
        if number:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare((), None, MEMORY, messages=100, before_each=stop)
    assert told == list(enumerate(PARTS))[:2]
