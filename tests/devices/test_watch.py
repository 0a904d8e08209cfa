"""The PFC watchdog in a fabric: a storm found after the detection time, its frames dropped or sent, and restoration."""

from __future__ import annotations

import pytest

from emu.devices.watch import PauseWatch
from emu.linklayer.watchdog import State
from tests.laws.stage import Stage, hold_memory

US = 1_000_000
CONTROL_PS = 84 * 20 + 15_000  # a pause frame from h1 to its switch: its last bit is in
FIRST_PS = US + 300_000 + 15_000 + 600_000  # a frame posted at 1 us is at the switch's egress
DETECTION_PS, RESTORATION_PS = 10 * US, 5 * US


def stage(traffic: str, action: str = "drop", retries: int = 7) -> Stage:
    """h0 and h1 at one switch; watched."""
    return Stage(f"""
name: watched
fabric:
  profile: roce
  flow_control: pfc
  congestion_control: none
  topology: {{kind: line, switches: 1}}
  watchdog: {{detection: 10us, restoration: 5us, action: {action}}}
host: {{nic: {{ack_timeout_code: 2, retry_cnt: {retries}}}}}
traffic: [{traffic}]
""")


def storm(start_us: float, duration_us: float) -> str:
    """By h1, on the data's priority."""
    return f"{{kind: pause_storm, host: h1, start: {start_us}us, duration: {duration_us}us}}"


def write(count: int, start_us: int = 1) -> str:
    """From h0 to h1, frames of 4 KiB, all posted at once."""
    return f"{{kind: write, pairs: [[h0, h1]], size: 4KiB, count: {count}, depth: {count}, start: {start_us}us}}"


def watch(run: Stage) -> PauseWatch:
    """That of the switch's port to h1."""
    (found,) = [each for each in run.fabric.attachments.watches if each._port.name == "s0-h1"]
    return found


def states(run: Stage, until_ps: int | None = None) -> list[tuple[int, State]]:
    """When the watchdog changed, and to what."""
    seen, looking = [(0, State.OPERATIONAL)], watch(run).watchdog

    def note(_: Stage) -> None:
        hold_memory(run)
        if looking.state is not seen[-1][1]:
            seen.append((run.now_ps, looking.state))

    run.run(until_ps, each_event=note)
    return seen[1:]


def test_a_storm_is_found_after_the_detection_time_and_over_after_the_restoration_time() -> None:
    run = stage(f"{storm(0, 40)}, {write(4)}, {write(1, start_us=60)}")
    over_ps = 40 * US + CONTROL_PS
    assert states(run) == [
        (FIRST_PS, State.SUSPECT),
        (FIRST_PS + DETECTION_PS, State.STORM),
        (over_ps, State.RESTORING),
        (over_ps + RESTORATION_PS, State.OPERATIONAL),
    ]
    assert watch(run).watchdog.storms == 1


def test_what_waits_and_what_comes_is_dropped_and_counted() -> None:
    run = stage(f"{storm(0, 200)}, {write(4)}, {write(2, start_us=20)}", retries=0)
    states(run, 30 * US)
    switch = run.fabric.switches["s0"]
    assert switch.dropped == {"watchdog": 6}
    assert switch.lossless_drops == 6
    assert list(switch.lossless_drop_places.values()) == [6]
    assert run.port("s0-h1").data_frames == 0
    assert run.port("s0-h1").held_bytes == 0


def test_dropped_messages_get_through_once_the_storm_is_over() -> None:
    run = stage(f"{storm(0, 40)}, {write(4)}")
    states(run)
    assert {message.status for message in run.messages} == {"SUCCESS"}
    assert run.fabric.switches["s0"].dropped["watchdog"] >= 4
    assert min(run.data["s0-h1"]) >= 40 * US


def test_forwarding_sends_through_the_pause() -> None:
    run = stage(f"{storm(0, 200)}, {write(4)}, {write(1, start_us=30)}", action="forward")
    states(run)
    assert run.fabric.switches["s0"].dropped == {}
    found_ps = FIRST_PS + DETECTION_PS
    assert run.data["s0-h1"][:4] == [found_ps + number * 83_880 for number in range(4)]
    assert run.data["s0-h1"][4] == 30 * US + 915_000  # at once
    assert {message.status for message in run.messages} == {"SUCCESS"}
    assert run.now_ps < 200 * US


@pytest.mark.parametrize("action", ["drop", "forward"])
def test_a_pause_that_ends_in_time_is_no_storm(action: str) -> None:
    duration_us = (FIRST_PS + DETECTION_PS - CONTROL_PS - 1) / US
    run = stage(f"{storm(0, duration_us)}, {write(4)}", action)
    assert [state for _, state in states(run)] == [State.SUSPECT, State.OPERATIONAL]
    assert run.fabric.switches["s0"].dropped == {}
    assert run.data["s0-h1"][0] == FIRST_PS + DETECTION_PS - 1


def test_a_pause_in_which_nothing_waits_is_no_storm() -> None:
    assert states(stage(f"{storm(0, 40)}, {write(1, start_us=50)}")) == []


def test_a_storm_that_comes_again_while_restoring_is_acted_on_at_once() -> None:
    run = stage(f"{storm(0, 40)}, {storm(43, 20)}, {write(4)}, {write(1, start_us=80)}")
    again_ps, over_ps = 43 * US + CONTROL_PS, 63 * US + CONTROL_PS
    assert states(run)[1:] == [
        (FIRST_PS + DETECTION_PS, State.STORM),
        (40 * US + CONTROL_PS, State.RESTORING),
        (again_ps, State.STORM),
        (over_ps, State.RESTORING),
        (over_ps + RESTORATION_PS, State.OPERATIONAL),
    ]
    assert watch(run).watchdog.storms == 1


def test_another_priority_is_left_alone() -> None:
    other = "{kind: write, pairs: [[h0, h1]], size: 4KiB, count: 8, priority: 5, start: 15us}"
    run = stage(f"{storm(0, 200)}, {write(1)}, {other}", retries=0)
    states(run)
    assert run.fabric.switches["s0"].dropped == {"watchdog": 1}
    assert sorted(message.status for message in run.messages) == ["RETRY_EXC_ERR", *["SUCCESS"] * 8]


def test_a_port_that_is_paused_by_a_switch_is_watched_too() -> None:
    """The storm spreads from s1 to s0; both find it, each in its own time, and nothing waits for ever."""
    run = Stage(f"""
name: watched
fabric:
  profile: roce
  flow_control: pfc
  congestion_control: none
  topology: {{kind: line, switches: 2}}
  xoff: 20KB
  watchdog: {{detection: 10us, restoration: 5us, action: drop}}
host: {{nic: {{ack_timeout_code: 4}}}}
traffic: [{storm(0, 40)}, {{kind: write, pairs: [[h0, h1]], size: 256KiB, start: 1us}}]
""")
    run.run(each_event=hold_memory)
    assert {message.status for message in run.messages} == {"SUCCESS"}
    storms = {each._port.name: each.watchdog.storms for each in run.fabric.attachments.watches}
    assert storms["s1-h1"] == 1
    assert storms["s0-s1"] == 0  # it goes on as soon as s1 has thrown away what it held
