"""Link control among data on one wire, over a socket pair: due out of order, lost, changed, or like another."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emu.frame import ControlFrame, Frame
from emu.framing.control import FCP_NORMAL, Control, Fcp, Pause, control_frame, encode, pfc
from emu.wire import patience
from tests.wire.pair import Pair

MAC, STRANGER = 0x02_01_00_00_00_01, 0x02_00_00_00_BA_D0
XOFF = pfc(MAC, {3: 0xFFFF})


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PATIENCE_S", "SHORT_PATIENCE_S"):
        monkeypatch.setattr(patience, name, 0.0)


def sent(pair: Pair, *what: Control | int) -> list[Frame]:
    """Data by PSN, and control: all in flight."""
    frames = [pair.frame(each) if isinstance(each, int) else control_frame(each) for each in what]
    pair.hold(*frames)
    return frames


def received(pair: Pair, *frames: Frame) -> list[Frame | None]:
    return [pair.wire.receive(frame) for frame in frames]


def test_control_is_due_before_data_sent_before_it(pair: Pair) -> None:
    first, second, said, third = sent(pair, 1, 2, XOFF, 3)
    assert received(pair, said, first, second, third) == [said, first, second, third]
    assert (pair.wire.lost, pair.wire.foreign, pair.wire.disturbed) == (0, 0, False)


def test_data_lost_before_control_is_lost_when_it_is_due(pair: Pair) -> None:
    first, second, said = sent(pair, 1, 2, XOFF)
    (_, data, control) = pair.swallow(3)
    for each in (data, control):
        pair.near.send(each)
    assert received(pair, said, first, second) == [said, None, second]
    assert (pair.wire.lost, pair.wire.foreign, len(pair.wire.warnings)) == (1, 0, 1)


def test_of_two_that_say_the_same_one_is_lost(pair: Pair) -> None:
    first, second = sent(pair, XOFF, XOFF)
    pair.swallow()
    assert received(pair, first, second) == [first, None]  # nobody can tell which
    assert (pair.wire.lost, pair.wire.late, pair.wire.foreign) == (1, 0, 0)
    (third,) = sent(pair, XOFF)
    assert received(pair, third) == [third]


@pytest.mark.parametrize("control", [XOFF, Pause(MAC, 9), Fcp(FCP_NORMAL, 1, 2, 3, MAC)])
@pytest.mark.parametrize("place", [6, 15, 16, 18, 20])
def test_control_that_was_changed_is_damaged_also_if_it_can_be_read(pair: Pair, control: Control, place: int) -> None:
    (said,) = sent(pair, control)
    (data,) = pair.swallow()
    pair.near.send(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
    (changed,) = received(pair, said)
    assert isinstance(changed, ControlFrame)
    assert changed.bad and not said.bad
    assert (pair.wire.changed, pair.wire.lost, pair.wire.foreign) == (1, 0, 0)
    assert pair.wire.warnings == ["wire h0-leaf0: a frame came out changed; its link CRC counts as bad"]


@pytest.mark.parametrize("control", [pfc(STRANGER, {3: 0xFFFF}), Pause(STRANGER, 0), Fcp(0, 1, 2, 4, STRANGER)])
@pytest.mark.parametrize("ours", [XOFF, Fcp(FCP_NORMAL, 1, 2, 3, MAC), 1])
def test_a_strangers_control_is_not_taken_for_ours(pair: Pair, control: Control, ours: Control | int) -> None:
    taken: list[Frame] = []
    pair.wire.on_foreign = taken.append
    pair.near.send(encode(control))
    (said,) = sent(pair, ours)
    assert received(pair, said) == [said]
    (stranger,) = taken
    assert isinstance(stranger, ControlFrame)
    assert stranger.control == control
    assert (pair.wire.foreign, pair.wire.changed, pair.wire.lost) == (1, 0, 0)


FATES = st.lists(
    st.tuples(st.sampled_from(["data", "control"]), st.sampled_from(["whole", "whole", "eaten", "changed"])),
    max_size=30,
).filter(lambda fates: longest_loss(fate for _, fate in fates) < 6)


def longest_loss(fates: Iterable[str]) -> int:
    """More losses in a row than that, and a changed frame behind them counts as foreign (likeness.CANDIDATES)."""
    longest = run = 0
    for fate in fates:
        run = run + 1 if fate == "eaten" else 0
        longest = max(longest, run)
    return longest


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(FATES, st.integers(0, 4))
def test_every_frame_meets_its_own_fate_whatever_is_due_first(
    pair: Pair, fates: list[tuple[str, str]], ahead: int
) -> None:
    """Control is due before up to `ahead` frames of data that were sent before it."""
    wire = pair.wire
    lost, changed = wire.lost, wire.changed
    frames = sent(pair, *(Fcp(0, 0, at, at, MAC) if kind == "control" else at for at, (kind, _) in enumerate(fates)))
    for (_, fate), data in zip(fates, pair.swallow(len(frames)), strict=True):
        if fate != "eaten":
            pair.near.send(data if fate == "whole" else data[:-1] + bytes([data[-1] ^ 0xFF]))
    due = sorted(range(len(frames)), key=lambda at: at - (ahead + 0.5 if fates[at][0] == "control" else 0))
    for at in due:
        arrived, fate = wire.receive(frames[at]), fates[at][1]
        if fate == "whole":
            assert arrived is frames[at]
        elif fate == "eaten":
            assert arrived is None
        else:
            assert arrived is not None
            assert arrived.bad
    assert wire.lost - lost == sum(fate == "eaten" for _, fate in fates)
    assert wire.changed - changed == sum(fate == "changed" for _, fate in fates)
    assert (wire.late, wire.foreign, len(wire.in_flight), len(wire._early)) == (0, 0, 0, 0)
