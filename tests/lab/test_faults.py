"""What a person does to a link in the middle of a run: it is noticed, it is repaired, and the books agree."""

from __future__ import annotations

import os
import shutil
import threading
import time
from typing import Any

import pytest

from emu import opcodes
from emu.frame import Frame
from emu.framing.roce import RoceFraming
from emu.measure.result import comparable
from emu.wire import patience
from tests.lab.detour import with_a_flipped_bit, with_less_ttl
from tests.lab.outside import BACK, LINK, Outside, steer, told, undisturbed
from tests.wire.pair import FOREIGN

pytestmark = [
    pytest.mark.lab,
    pytest.mark.usefixtures("little_patience"),
]

EATER = "filter add dev {} egress bpf da bytecode"
needs_tc = pytest.mark.skipif(
    shutil.which("tc", path="/usr/sbin:/sbin:/usr/bin:/bin") is None, reason="tc (iproute2) is missing"
)


@pytest.fixture
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PATIENCE_S", 0.1)


@pytest.mark.parametrize("end", [LINK, BACK])
def test_a_link_down_for_a_while_costs_what_the_kernel_says_and_is_made_good(end: str) -> None:
    outside = Outside((10, lambda them: them.set_down(end)), (6_000, lambda them: them.set_up(end)))
    result = outside.run()
    assert result["complete"] is result["disturbed"] is True
    assert (result["messages"]["completed"], result["messages"]["failed"]) == (8, 0)
    assert result["frames"]["lost_on_wire"] == outside.accounted() > 0
    assert result["virtual_ns"] > 6_000_000
    assert result["flows"][0]["retransmitted"] > 0
    assert result["frames"]["foreign"] == 0
    assert all(LINK in warning or BACK in warning for warning in result["warnings"])
    assert any("could not be sent" in warning or "did not come out" in warning for warning in result["warnings"])


def test_a_link_that_stays_down_ends_the_run_with_the_retries_used_up() -> None:
    outside = Outside((10, lambda them: them.set_down(LINK)))
    result = outside.run()
    assert result["complete"] is result["disturbed"] is True
    assert result["messages"]["statuses"] == {"RETRY_EXC_ERR": 1}
    assert result["frames"]["lost_on_wire"] == outside.accounted() > 0
    assert any(f"wire {LINK}: a frame could not be sent: its interface is down" in text for text in result["warnings"])


def test_a_person_sets_a_link_down_at_any_time() -> None:
    def meanwhile(them: Outside) -> None:
        def pull() -> None:
            time.sleep(0.1)
            them.at(LINK, "ip", "link", "set", them.interface(LINK), "down")

        person.append(threading.Thread(target=pull))
        person[0].start()

    person: list[threading.Thread] = []
    outside = Outside((10, meanwhile), traffic="count: 100000")
    result = outside.run()
    person[0].join()
    assert result["complete"] is result["disturbed"] is True
    assert result["messages"]["failed"] == 1
    assert 0 < result["messages"]["completed"] < 100_000
    assert result["frames"]["lost_on_wire"] == outside.accounted() > 0
    assert any(LINK in warning for warning in result["warnings"])


def test_down_and_up_between_two_frames_loses_nothing() -> None:
    def blink(them: Outside) -> None:
        them.set_down(LINK)
        them.set_up(LINK)

    outside = Outside((10, blink))
    result = outside.run()
    assert result["disturbed"]
    assert (result["frames"]["lost_on_wire"], outside.accounted()) == (0, 0)
    (warning,) = result["warnings"]  # told to the first that sends or reads there
    assert warning in (f"wire {LINK}: its interface went down", f"wire {BACK}: the interface at its far end went down")
    assert told(result) == told(undisturbed())


@needs_tc
def test_what_a_program_eats_in_silence_is_told_and_made_good() -> None:
    def eat(them: Outside) -> None:
        interface = them.interface(LINK)
        them.at(LINK, "tc", "qdisc", "add", "dev", interface, "clsact")
        them.at(LINK, "tc", *EATER.format(interface).split(), "1,6 0 0 4")

    def stop(them: Outside) -> None:
        them.at(LINK, "tc", "filter", "del", "dev", them.interface(LINK), "egress")

    outside = Outside((10, eat), (6_000, stop))
    result = outside.run()
    assert result["messages"]["completed"] == 8
    assert result["complete"] is result["disturbed"] is True
    assert (outside.refused(), outside.accounted()) == (0, 0)
    assert result["frames"]["lost_on_wire"] == outside.wire(LINK).lost > 0
    assert result["warnings"] == [f"wire {LINK}: a frame that went in did not come out"]


@pytest.mark.parametrize("name", ["h0-leaf0", LINK, BACK, "leaf1-h3", "h1-leaf0"])
@pytest.mark.parametrize("copies", [1, 50])
def test_a_foreign_frame_is_counted_and_changes_nothing(name: str, copies: int) -> None:
    def inject(them: Outside) -> None:
        for _ in range(copies):
            them.wire(name).sender.send(FOREIGN)

    result = Outside((10, inject)).run()
    assert result["frames"]["foreign"] == copies
    assert result["disturbed"]
    assert len(result["warnings"]) == 1
    assert f"wire {name}: a foreign frame of {len(FOREIGN)} bytes" in result["warnings"][0]
    assert told(result) == told(undisturbed())


def inject_a_write(them: Outside, name: str) -> None:
    """One from h1 to a queue pair that h2 does not have."""
    source, destination = (them.fabric.nics[host].address for host in ("h1", "h2"))
    framing = RoceFraming()
    envelope = framing.envelope(source, destination, source_qp=0x11, destination_qp=0xBAD)
    frame = Frame(envelope, opcodes.WRITE_ONLY, 0, bytes(64), reth=(0, 0, 64))
    them.wire(name).sender.send(framing.encode(frame))


@pytest.mark.parametrize("name", ["h0-leaf0", "h1-leaf0"])
def test_a_foreign_write_is_let_in_if_wanted_and_ends_where_no_queue_pair_is(name: str) -> None:
    outside = Outside((10, lambda them: inject_a_write(them, name)), traffic="count: 100", accept_foreign=True)
    result = outside.run()  # raises InvariantBroken if its books do not agree
    assert result["deterministic"] is False
    assert result["frames"]["foreign"] == 1
    assert result["drops"]["by_reason"] == outside.fabric.nics["h2"].dropped == {"unknown_qp": 1}
    assert result["frames"]["delivered"] == result["frames"]["sent"] + 1
    assert result["frames"]["on_the_way"] == 0
    assert (result["messages"]["completed"], result["messages"]["failed"]) == (100, 0)


def test_a_foreign_write_let_in_when_the_traffic_is_over_is_still_on_its_way() -> None:
    """Idle links are looked at every few thousand events only: here, that is after the last."""
    result = Outside((10, lambda them: inject_a_write(them, "h1-leaf0")), accept_foreign=True).run()
    assert (result["frames"]["foreign"], result["frames"]["on_the_way"]) == (1, 1)
    assert result["frames"]["delivered"] == result["frames"]["sent"]


@pytest.mark.parametrize("name", ["h0-leaf0", LINK, "leaf1-h3"])
def test_a_change_that_the_icrc_allows_is_read_and_changes_nothing_else(name: str) -> None:
    outside = Outside((10, lambda them: them.change_one(name, with_less_ttl)))
    result = outside.run()  # the workload compares the memory of both hosts
    assert outside.wire(name).changed == 1
    assert result["disturbed"]
    assert result["warnings"] == [f"wire {name}: a frame came out changed; its ICRC is right, so it was read again"]
    assert result["drops"]["by_reason"] == {}
    assert told(result) == told(undisturbed())


@pytest.mark.parametrize("name", ["h0-leaf0", LINK, "leaf1-h3"])
@pytest.mark.parametrize("switching", ["cut_through", "store_and_forward"])
def test_a_flipped_bit_is_dropped_at_the_end_of_its_way_and_sent_again(name: str, switching: str) -> None:
    outside = Outside((10, lambda them: them.change_one(name, with_a_flipped_bit)), more=f", switching: {switching}")
    result = outside.run()
    source, destination = name.split("-")
    dropped_at = destination if switching == "store_and_forward" else "h3"
    devices: dict[str, Any] = {**outside.fabric.nics, **outside.fabric.switches}
    assert {device: counts.dropped for device, counts in devices.items() if counts.dropped} == {
        dropped_at: {"bad_crc": 1}
    }
    assert result["drops"]["by_reason"] == {"bad_crc": 1}
    assert result["warnings"] == [f"wire {name}: a frame came out changed; its link CRC counts as bad"]
    assert (result["messages"]["completed"], result["messages"]["failed"]) == (8, 0)
    assert result["flows"][0]["retransmitted"] >= 1
    assert result["frames"]["lost_on_wire"] == 0


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one CPU delivers to itself")
def test_delivery_by_another_cpu_changes_nothing() -> None:
    """With receive packet steering frames come out some time after they were sent."""
    steered = Outside((10, steer), traffic="count: 30")
    result = steered.run()
    assert any(steered.wire(name).slow_calls > 1 for name in steered.fabric.links)
    assert comparable(result) == comparable(undisturbed(traffic="count: 30"))
