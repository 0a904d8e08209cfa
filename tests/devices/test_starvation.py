"""Frames that wait for credits which cannot come are given up in the end, and no others are."""

from __future__ import annotations

from typing import Any

import pytest

from emu.devices.starvation import ATTEMPTS, PATIENCE, UNREFRESHED_PS
from emu.frame import ControlFrame
from emu.measure.result import comparable
from emu.run import Options, run
from emu.scenario.load import parse
from emu.transport.requester_config import ACK_TIMEOUT_UNIT_PS
from emu.units import MS, NS, US
from tests.devices.test_credits import LARGEST, scenario
from tests.laws.stage import Stage, Thief

SHORT = "host: {nic: {ack_timeout_code: 4, retry_cnt: 1}}\n"  # two tries of 65.5 us
TRIES_PS = 2 * (ACK_TIMEOUT_UNIT_PS << 4)
FOUR = "{kind: write, pairs: [[h0, h1]], size: 4KiB}"  # frames, where the buffer takes one


def tight(traffic: str = FOUR, refresh: str = "1us") -> str:
    return scenario(traffic, blocks=LARGEST, threshold="1", refresh=refresh) + SHORT


class Deaf:
    """A run in which h0 hears no FCP after link-up, or none of those that leave before `until_ps`."""

    def __init__(self, text: str, until_ps: int = 1 << 60) -> None:
        self.stage = stage = Stage(text)
        self.port = stage.port("h0-s0")
        self.given_up: list[tuple[int, int]] = []  # when a frame was, and since when its lane had been blocked
        self._since_ps = -1
        self.thief = Thief(
            stage.port("s0-h0"), lambda frame: isinstance(frame, ControlFrame) and stage.now_ps < until_ps
        )
        stage.run(each_event=self._look)

    def _look(self, stage: Stage) -> None:
        if self.port.abandoned_frames > len(self.given_up):
            self.given_up.append((stage.now_ps, self._since_ps))
        self._since_ps = self.port.lanes[0].blocked_since_ps


@pytest.mark.parametrize(("refresh", "patience_ps"), [("1us", PATIENCE * US), ("never", UNREFRESHED_PS)])
def test_a_frame_is_given_up_after_so_long_and_the_run_ends_with_the_tries(refresh: str, patience_ps: int) -> None:
    deaf = Deaf(tight(refresh=refresh))
    assert len(deaf.stage.data["h0-s0"]) == 1  # what the first FCP granted
    when_ps, since_ps = deaf.given_up[0]
    assert patience_ps < when_ps - since_ps < patience_ps + 2 * US  # and an FCP's way there and back
    assert [message.status for message in deaf.stage.messages] == ["RETRY_EXC_ERR"]
    assert deaf.stage.now_ps < TRIES_PS + 2 * US


@pytest.mark.parametrize("refresh", ["1us", "never"])
def test_every_queue_pair_behind_it_ends_too(refresh: str) -> None:
    """Only the first frame of the first was made: the others had no timer that ran, and waited for ever."""
    deaf = Deaf(tight("{kind: write, pairs: [[h0, h1]], size: 4KiB, qps: 5, count: 3, depth: 2}", refresh))
    statuses = [message.status for message in deaf.stage.messages]
    assert len(statuses) == 5 * 2
    assert set(statuses) == {"RETRY_EXC_ERR", "WR_FLUSH_ERR"}
    assert deaf.stage.now_ps < 5 * TRIES_PS
    assert len(deaf.given_up) > 5


def test_what_comes_later_is_given_up_at_once_and_an_fcp_ends_that() -> None:
    deaf = Deaf(tight("{kind: write, pairs: [[h0, h1]], size: 4KiB, count: 4}"), until_ps=50 * US)
    times = [when_ps for when_ps, _ in deaf.given_up]
    assert len(times) > 1
    assert times[-1] < 52 * US
    assert {message.status for message in deaf.stage.messages} == {"SUCCESS"}
    assert len(deaf.stage.messages) == 4
    assert not deaf.port.lanes[0].abandoned


def test_one_whose_credits_come_is_not_given_up_however_long_it_waits() -> None:
    """All but one FCP in 32 are lost, with each frame again, as the window is of one."""
    stage = Stage(tight("{kind: write, pairs: [[h0, h1]], size: 16KiB}"))
    seen = iter(range(10**6))
    Thief(stage.port("s0-h0"), lambda frame: isinstance(frame, ControlFrame) and next(seen) % PATIENCE > 0)
    stage.run()
    assert [message.status for message in stage.messages] == ["SUCCESS"]
    assert stage.port("h0-s0").credit_wait_ps() > 15 * (PATIENCE - 2) * US
    assert stage.port("h0-s0").abandoned_frames == 0


@pytest.mark.parametrize("more", ["", "inject: [{link: h0-s0, delay: 200us, match: {kind: fcp}}]\n"])
def test_waiting_is_nothing_where_nothing_is_lost(more: str) -> None:
    """Neither where many wait for one buffer, nor where credits come later than any patience."""
    text = tight("{kind: all_to_all, size: 20KB, qps: 3}").replace("ack_timeout_code: 4", "ack_timeout_code: 20")
    stage = Stage(text + more).run()
    assert {message.status for message in stage.messages} == {"SUCCESS"}
    assert sum(stage.port(link).credit_wait_ps() for link in stage.fabric.links) > 10 * US
    assert not any(stage.port(link).abandoned_frames for link in stage.fabric.links)
    assert all(stage.credits(link)._starvation is None for link in stage.fabric.links)


def test_lost_data_holds_nobody_up_and_gives_nothing_up_once_it_has_healed() -> None:
    """Its blocks are granted again with the next FCP: who waits for those waits a refresh, and is not given up."""
    stage = Stage(tight("{kind: write, pairs: [[h0, h1]], size: 16KiB}").replace("retry_cnt: 1", "retry_cnt: 7"))
    seen = iter(range(10**6))
    Thief(stage.port("h0-s0"), lambda frame: frame.carries_data and next(seen) % 5 == 0)
    stage.run()
    assert [message.status for message in stage.messages] == ["SUCCESS"]
    assert stage.port("h0-s0").lost_frames > 3
    assert stage.port("h0-s0").abandoned_frames == 0


def test_a_link_that_loses_all_its_fcps_falls_silent_once_nobody_waits() -> None:
    """Else a run with such a link never ended: each lost FCP would be said again at the next refresh."""
    stage = Stage(tight())
    Thief(stage.port("h1-s0"), lambda frame: isinstance(frame, ControlFrame))
    stage.run()
    stage.assembly.engine.run(stage.now_ps + 50 * MS)
    assert not stage.assembly.engine.queue
    assert ATTEMPTS <= stage.port("h1-s0").lost_link_frames < 10 * ATTEMPTS  # anew as somebody waits


BLIND = """
name: blind
fabric: {profile: native, topology: {kind: line, switches: 1}}
traffic: [{kind: write, pairs: [[h0, h1]], size: 4KiB, count: 1, qps: %d}]
inject: [{link: h0-s0, drop: 100%%}]
"""


@pytest.mark.parametrize("qps", [1, 2, 8])
def test_a_run_whose_link_loses_everything_ends_and_says_so(qps: int) -> None:
    result = run(parse(BLIND % qps, "blind.yaml"), Options(wire="memory"))
    assert result["complete"]
    assert result["messages"]["statuses"] == {"RETRY_EXC_ERR": qps}
    tries_ns = 8 * (ACK_TIMEOUT_UNIT_PS << 10) / NS  # the profile's
    assert tries_ns < result["virtual_ns"] < tries_ns + qps * 1e6
    given_up = result["drops"]["by_reason"]["no_credits"]
    assert given_up > 0
    (warning,) = [each for each in result["warnings"] if "no credits" in each]
    assert warning.startswith("h0-s0: ")
    assert f"{given_up} frames were thrown away" in warning


@pytest.mark.lab
def test_both_wires_give_up_the_same() -> None:
    results: list[dict[str, Any]] = [
        run(parse(BLIND % 3, "blind.yaml"), Options(wire=wire)) for wire in ("memory", "veth")
    ]
    memory, veth = results
    assert not veth["disturbed"]
    assert comparable(veth) == comparable(memory)


def test_a_switch_that_hears_no_credits_gives_up_its_queue_and_its_books_agree() -> None:
    text = tight("{kind: write, pairs: [[h0, h1]], size: 16KiB}")
    stage = Stage(text)
    Thief(stage.port("h1-s0"), lambda frame: isinstance(frame, ControlFrame))
    stage.run()  # or InvariantBroken: credits, memory, frames and bytes are held there
    assert [message.status for message in stage.messages] == ["RETRY_EXC_ERR"]
    assert stage.port("s0-h1").abandoned_frames > 0
    assert stage.fabric.switches["s0"].dropped["no_credits"] == stage.port("s0-h1").abandoned_frames
