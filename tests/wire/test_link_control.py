"""A link's own frames on a veth, eaten, changed and late: books agree, faults are told of, and links recover."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from emu.devices.credits import LinkCredits
from emu.framing.control import ETHERTYPE_LINK_CONTROL, Control, Pfc
from emu.framing.native import NativeFraming
from emu.measure.result import comparable
from emu.wire import patience
from tests.lab.detour import detour
from tests.lab.fabrics import process_at
from tests.lab.outside import BACK, LINK, Outside, steer
from tests.wire.mischief import (
    CREDITS,
    PFC,
    TEXTS,
    Change,
    all_done,
    eaten,
    flipped,
    is_control,
    is_data,
    paused,
    says,
    tamper,
    undisturbed,
)

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("little_patience")]

PATH = "/usr/sbin:/sbin:/usr/bin:/bin"
EATER = "filter add dev {} egress bpf da bytecode"
EATS = "4,40 0 0 12,21 0 1 {},6 0 0 4,6 0 0 0"  # what is of that EtherType is stolen, all else goes on
needs_tc = pytest.mark.skipif(shutil.which("tc", path=PATH) is None, reason="tc (iproute2) is missing")


@needs_tc
@pytest.mark.parametrize("kind", TEXTS)
def test_control_eaten_by_a_program_for_a_while(kind: int) -> None:
    """Credits heal at a refresh; what a lost pause costs is dropped loudly, and a lost XON is waited for."""

    def eat(them: Outside) -> None:
        interface = them.interface(BACK)
        them.at(BACK, "tc", "qdisc", "add", "dev", interface, "clsact")
        them.at(BACK, "tc", *EATER.format(interface).split(), EATS.format(kind))

    def stop(them: Outside) -> None:
        them.at(BACK, "tc", "filter", "del", "dev", them.interface(BACK), "egress")

    outside = Outside((2, eat), (14, stop), text=TEXTS[kind])
    result = outside.run()
    wire, port = outside.wire(BACK), outside.fabric.links[BACK][1]
    assert all_done(result)
    assert result["disturbed"]
    assert wire.lost == port.lost_link_frames > 0
    assert result["warnings"] == [f"wire {BACK}: a frame that went in did not come out"] + [
        warning for warning in result["warnings"] if "lossless" in warning or "dropped" in warning
    ]
    assert result["frames"]["lost_on_wire"] == 0
    if kind == ETHERTYPE_LINK_CONTROL:
        assert result["drops"]["lossless"] == 0
        assert result["virtual_ns"] > undisturbed(CREDITS)["virtual_ns"]


@pytest.mark.parametrize("change", [eaten, flipped])
@pytest.mark.parametrize("times", [1, 3, 20])
def test_credits_heal_at_the_next_refresh(change: Change, times: int) -> None:
    outside = Outside((3, lambda them: hit.extend([tamper(them, BACK, is_control, change, times)])), text=CREDITS)
    hit: list[list[bytes]] = []
    result = outside.run()
    assert all_done(result)
    assert outside.fabric.links[BACK][1].lost_link_frames == len(hit[0]) == times
    assert (outside.wire(BACK).lost, outside.wire(BACK).changed) == ((times, 0) if change is eaten else (0, times))
    assert result["disturbed"] and len(result["warnings"]) == 1
    assert (result["drops"]["lossless"], result["frames"]["lost_on_wire"]) == (0, 0)
    assert not any(map(unhealed, links_with_credits(outside)))


def links_with_credits(outside: Outside) -> list[LinkCredits]:
    ends = [end for pair in outside.fabric.attachments.pairs for end in pair]
    return [end for end in ends if isinstance(end, LinkCredits)]


def unhealed(end: LinkCredits) -> int:
    return sum(map(end._unhealed, range(len(end.senders))))


@pytest.mark.parametrize("name", [LINK, "h0-leaf0", "leaf1-h3"])
@pytest.mark.parametrize("times", [1, 2, 25])
def test_data_lost_where_credits_are_is_granted_again(name: str, times: int) -> None:
    outside = Outside((3, lambda them: hit.extend([tamper(them, name, is_data, eaten, times)])), text=CREDITS)
    hit: list[list[bytes]] = []
    result = outside.run()
    assert all_done(result)
    assert result["frames"]["lost_on_wire"] == outside.wire(name).lost == len(hit[0]) == times
    assert sum(flow["retransmitted"] for flow in result["flows"]) > 0
    assert result["warnings"] == [f"wire {name}: a frame that went in did not come out"]
    ends = links_with_credits(outside)
    assert sum(end._lost[0] for end in ends) > 0
    assert not any(map(unhealed, ends))


def test_all_credits_of_a_link_lost_for_good_end_the_run() -> None:
    outside = Outside((3, lambda them: tamper(them, BACK, is_control, eaten)), text=CREDITS)
    result = outside.run()
    assert result["complete"] and result["disturbed"]
    assert result["messages"]["statuses"].keys() >= {"RETRY_EXC_ERR"}


def xoff(control: Control) -> bool:
    return isinstance(control, Pfc) and control.quanta[3] > 0


def xon(control: Control) -> bool:
    return isinstance(control, Pfc) and control.quanta[3] == 0


@pytest.mark.parametrize("change", [eaten, flipped])
def test_a_lost_xon_ends_by_the_pause_running_out(change: Change) -> None:
    hit: list[list[bytes]] = []
    outside = Outside((3, lambda them: hit.extend([tamper(them, BACK, says(xon), change, 1)])), text=PFC)
    result = outside.run()
    assert all_done(result)
    assert len(hit[0]) == outside.fabric.links[BACK][1].lost_link_frames == 1
    assert result["disturbed"]
    assert (result["drops"]["lossless"], result["frames"]["lost_on_wire"]) == (0, 0)
    paused_ns, before_ns = (paused(each) for each in (result, undisturbed(PFC)))
    assert before_ns + 1_000 < paused_ns <= before_ns + 5_120 + 1_000


@pytest.mark.parametrize("change", [eaten, flipped])
def test_a_lost_xoff_is_said_again_and_what_it_costs_is_loud(change: Change) -> None:
    hit: list[list[bytes]] = []
    outside = Outside((1, lambda them: hit.extend([tamper(them, BACK, says(xoff), change, 1)])), text=PFC)
    result = outside.run()  # raises InvariantBroken if its books do not agree
    assert all_done(result)
    assert len(hit[0]) == outside.fabric.links[BACK][1].lost_link_frames == 1
    assert result["disturbed"]
    dropped = sum(switch.dropped.get("no_room", 0) for switch in outside.fabric.switches.values())
    assert dropped == result["drops"]["lossless"]
    assert (dropped > 0) == any("lossless" in warning for warning in result["warnings"])


@pytest.fixture
def much_patience(little_patience: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others may keep the other process from running."""
    for name in ("PATIENCE_S", "SHORT_PATIENCE_S", "IN_VAIN_S"):
        monkeypatch.setattr(patience, name, 10.0)


@contextmanager
def led_around(text: str, change: str, delay_ms: float = 0) -> Iterator[Outside]:
    """From 1 us on BACK goes by another process, that changes or delays what it says."""
    with ExitStack() as undo:

        def lay(them: Outside) -> None:
            node = BACK.partition("-")[0]
            undo.enter_context(detour(process_at(node), them.interface(BACK), change, delay_ms))

        yield Outside((1, lay), text=text)


@pytest.mark.usefixtures("much_patience")
@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("delay_ms", [0, 2])
def test_control_that_comes_late_changes_nothing(kind: int, delay_ms: float) -> None:
    with led_around(TEXTS[kind], "nothing", delay_ms) as outside:
        result = outside.run()
    if delay_ms:
        assert outside.wire(BACK).slow_calls > outside.fabric.links[BACK][1].link_frames / 2
    assert comparable(result) == comparable(undisturbed(TEXTS[kind]))


@pytest.mark.usefixtures("much_patience")
@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("delay_ms", [0, 2])
def test_control_damaged_by_another_process_is_lost(kind: int, delay_ms: float) -> None:
    with led_around(TEXTS[kind], "control", delay_ms) as outside:
        result = outside.run()
    assert all_done(result)
    assert (outside.wire(BACK).changed, outside.wire(BACK).lost, outside.wire(BACK).foreign) == (1, 0, 0)
    assert outside.fabric.links[BACK][1].lost_link_frames == 1
    assert f"wire {BACK}: a frame came out changed; its link CRC counts as bad" in result["warnings"]


@pytest.mark.usefixtures("much_patience")
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one CPU delivers to itself")
@pytest.mark.parametrize("kind", TEXTS)
def test_delivery_by_another_cpu_changes_nothing(kind: int) -> None:
    """With receive packet steering all frames come out some time after they were sent, control among data."""
    outside = Outside((1, steer), text=TEXTS[kind])
    result = outside.run()
    assert any(outside.wire(name).slow_calls > 1 for name in outside.fabric.links)
    assert comparable(result) == comparable(undisturbed(TEXTS[kind]))


def on_another_sl(data: bytes) -> bytes:
    """As if it had been sent so: its CRCs are right."""
    framing = NativeFraming(8)
    frame = framing.decode(data)
    frame.envelope.priority = frame.envelope.lane = 1
    frame.envelope.templates.clear()
    return framing.encode(frame)


def test_data_that_changes_its_vl_is_damaged() -> None:
    """Or credits of one VL would be used, and others given back."""
    outside = Outside(
        (3, lambda them: tamper(them, LINK, is_data, on_another_sl, 1)), text=CREDITS.replace("130}", "130, vls: 2}")
    )
    result = outside.run()
    assert all_done(result)
    assert result["drops"]["by_reason"] == {"bad_crc": 1}
    assert result["warnings"] == [f"wire {LINK}: a frame came out changed; its link CRC counts as bad"]
