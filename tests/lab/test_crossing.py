"""Frames over real veth pairs: in time, through stock buffers, and with everything that can happen to a link."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections import deque
from collections.abc import Iterator
from typing import cast

import pytest

from emu.errors import InvariantBroken
from emu.frame import Frame
from emu.lab.interface import IFF_UP, carries, flags_of, offloads_on, set_flags
from emu.lab.lab import Lab
from emu.wire import patience
from emu.wire.veth import VethWire
from tests.lab.fabrics import PAIR, inside
from tests.wire.pair import Gate
from tests.wire.stub import StubFraming, make_frame

pytestmark = pytest.mark.lab

LINK = PAIR.links[0]
STOCK_BYTES = 212_992
STEERING = "/sys/class/net/leaf0-eth1/queues/rx-0/rps_cpus"
EATER = "filter add dev h0-eth0 egress bpf da bytecode"


class Crossing:
    """A link, its wire from h0 to leaf0, and the way back."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.framing = StubFraming()
        self.there, self.back = lab.wires(LINK, self.framing)

    def frame(self, psn: int, size_bytes: int = 4096) -> Frame:
        return make_frame(self.framing, psn, psn.to_bytes(4, "big") * (size_bytes // 4))

    def cross(self, wire: VethWire, *psns: int) -> list[bool]:
        """Whether each frame came out, sent one by one."""
        came = []
        for psn in psns:
            frame = self.frame(psn)
            came.append(wire.send(frame) and wire.receive(frame) is frame)
        return came

    def hold(self, gate: Gate, *frames: Frame) -> None:
        """Send frames that stay in the far end's socket for now."""
        gate.shut = True
        wire = self.there if self.there.receiver is cast(object, gate) else self.back
        assert all([wire.send(frame) for frame in frames])
        gate.shut = False

    def at(self, node: str, *command: str) -> str:
        return inside(self.lab.pid_of(node), *command)

    def await_carrier(self) -> None:
        """Wait until both ends send again."""
        deadline = time.monotonic() + 5
        for port in (LINK.a, LINK.b):
            while not carries(self.lab.socket_at(port), port.interface):
                assert time.monotonic() < deadline
                time.sleep(0.001)

    def dropped_by_the_kernel(self) -> int:
        """tx_dropped of both ends."""
        file = "/sys/class/net/{}/statistics/tx_dropped"
        return sum(int(self.at(port.node, "cat", file.format(port.interface))) for port in (LINK.a, LINK.b))


@pytest.fixture
def crossing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Crossing]:
    monkeypatch.setattr(patience, "PATIENCE_S", 0.1)
    with Lab(PAIR) as lab:
        yield Crossing(lab)


def test_the_very_first_frames_arrive() -> None:
    for _ in range(10):
        with Lab(PAIR) as lab:
            crossing = Crossing(lab)
            assert crossing.cross(crossing.there, 1) == crossing.cross(crossing.back, 1) == [True]


def test_ten_thousand_frames_are_never_late(crossing: Crossing) -> None:
    for psn in range(5_000):
        frames = crossing.frame(psn, 64), crossing.frame(psn, 4096)
        for wire, frame in zip((crossing.there, crossing.back), frames, strict=True):
            assert wire.send(frame)
            assert wire.receive(frame) is frame
    for wire in (crossing.there, crossing.back):
        wire.finish()
        assert (wire.late, wire.lost, wire.foreign, wire.disturbed) == (0, 0, 0, False)


@pytest.mark.parametrize("size_bytes", [64, 4096, 9180])
def test_a_stock_buffer_holds_any_number_in_flight(size_bytes: int) -> None:
    with Lab(PAIR, receive_buffer_bytes=STOCK_BYTES) as lab:
        crossing = Crossing(lab)
        frames = [crossing.frame(psn, size_bytes) for psn in range(1_000)]
        assert all([crossing.there.send(frame) for frame in frames])
        assert not crossing.there.in_flight  # all have crossed
        assert all([crossing.back.send(frame) for frame in frames])
        for wire in (crossing.there, crossing.back):
            wire.finish()
            assert (wire.lost, wire.late, wire.foreign, wire.crossed) == (0, 0, 0, 1_000)


@pytest.mark.parametrize("size_bytes", [64, 4096, 9180])
def test_a_stock_buffer_holds_any_number_behind_a_lost_one(size_bytes: int) -> None:
    with Lab(PAIR, receive_buffer_bytes=STOCK_BYTES) as lab:
        crossing = Crossing(lab)
        gate = Gate.before(crossing.there)
        lost, *frames = (crossing.frame(psn, size_bytes) for psn in range(1_001))
        crossing.hold(gate, lost)
        gate.swallow()
        assert all([crossing.there.send(frame) for frame in frames])
        assert list(crossing.there.in_flight) == [lost, *frames]
        assert crossing.there.receive(lost) is None
        assert [crossing.there.receive(frame) for frame in frames] == frames
        crossing.there.finish()
        assert (crossing.there.lost, crossing.there.late, crossing.there.foreign) == (1, 0, 0)


def test_a_buffer_that_overruns_is_noticed() -> None:
    with Lab(PAIR, receive_buffer_bytes=STOCK_BYTES) as lab:
        crossing = Crossing(lab)
        crossing.hold(Gate.before(crossing.there), *(crossing.frame(psn) for psn in range(100)))
        with pytest.raises(InvariantBroken, match="overran"):
            crossing.there.finish()


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one CPU delivers to itself")
@pytest.mark.parametrize("ahead", [1, 8, 1_000])
def test_frames_that_another_cpu_delivers_come_later_and_all(ahead: int) -> None:
    """With receive packet steering a veth delivers some time after the send; a stock buffer holds 24 such frames."""
    with Lab(PAIR, receive_buffer_bytes=STOCK_BYTES) as lab:
        crossing = Crossing(lab)
        (ours,) = os.sched_getaffinity(0)
        if "refused" in crossing.at("leaf0", "sh", "-c", f"echo {1 << (ours == 0):x} > {STEERING} || echo refused"):
            pytest.skip("steering may not be set here")
        frames, due = [crossing.frame(psn) for psn in range(2_000)], deque[Frame]()
        for frame in frames:
            assert crossing.there.send(frame)
            due.append(frame)
            if len(due) > ahead:
                assert crossing.there.receive(due[0]) is due.popleft()
        assert [crossing.there.receive(frame) for frame in due] == list(due)
        crossing.there.finish()
        assert crossing.there.crossed < 2_000
        assert (crossing.there.lost, crossing.there.foreign, crossing.there.disturbed) == (0, 0, False)


def test_own_end_down_loses_what_it_refuses_and_what_is_there_still_arrives(crossing: Crossing) -> None:
    early = [crossing.frame(psn) for psn in range(3)]
    towards = [crossing.frame(psn) for psn in range(3)]
    crossing.hold(Gate.before(crossing.there), *early)
    crossing.hold(Gate.before(crossing.back), *towards)
    before = crossing.dropped_by_the_kernel()
    crossing.at("h0", "ip", "link", "set", "h0-eth0", "down")
    assert [crossing.there.receive(frame) for frame in early] == early
    assert [crossing.back.receive(frame) for frame in towards] == towards
    assert not any(crossing.cross(crossing.there, *range(3, 8)))
    assert not any(crossing.cross(crossing.back, *range(3, 8)))
    assert crossing.there.refused == crossing.there.lost == 5
    assert crossing.back.lost == 5
    accounted = crossing.there.refused + crossing.dropped_by_the_kernel() - before
    assert crossing.there.lost + crossing.back.lost == accounted
    crossing.at("h0", "ip", "link", "set", "h0-eth0", "up")
    crossing.await_carrier()
    assert crossing.cross(crossing.there, 8) == crossing.cross(crossing.back, 8) == [True]
    crossing.there.finish()
    crossing.back.finish()
    assert crossing.there.disturbed
    assert crossing.back.disturbed
    assert crossing.there.foreign == crossing.back.foreign == 0


@pytest.mark.parametrize("node", ["h0", "leaf0"])
@pytest.mark.parametrize("first", ["there", "back"])
def test_down_and_up_again_between_two_frames_loses_nothing(crossing: Crossing, node: str, first: str) -> None:
    port = LINK.a if node == "h0" else LINK.b
    crossing.at(node, "ip", "link", "set", port.interface, "down")
    crossing.at(node, "ip", "link", "set", port.interface, "up")
    crossing.await_carrier()
    wires = [crossing.there, crossing.back]
    for wire in wires if first == "there" else reversed(wires):
        assert crossing.cross(wire, *range(10)) == [True] * 10
        assert (wire.lost, wire.late, wire.crossed >= 9) == (0, 0, True)
    assert crossing.there.disturbed or crossing.back.disturbed
    (warning,) = crossing.there.warnings + crossing.back.warnings
    assert "went down" in warning


def test_far_end_down(crossing: Crossing) -> None:
    """Until the kernel has noticed a send is refused with ENOBUFS, afterwards dropped in silence: either counts."""
    far, interface = crossing.lab.socket_at(LINK.b), LINK.b.interface
    lost, refused = 0, 0
    for attempt in range(100):
        before = crossing.there.lost, crossing.there.refused, crossing.dropped_by_the_kernel()
        set_flags(far, interface, flags_of(far, interface) & ~IFF_UP)
        assert not any(crossing.cross(crossing.there, 2 * attempt, 2 * attempt + 1))
        lost, refused = crossing.there.lost - before[0], crossing.there.refused - before[1]
        assert lost == crossing.dropped_by_the_kernel() - before[2] == 2
        assert crossing.there.refusals[errno.ENOBUFS] == crossing.there.refused
        set_flags(far, interface, flags_of(far, interface) | IFF_UP)
        crossing.await_carrier()
        if refused:
            break
    assert refused > 0
    assert any("the far end is down" in warning for warning in crossing.there.warnings)


def test_a_deleted_link(crossing: Crossing) -> None:
    flying = crossing.frame(0)
    crossing.hold(Gate.before(crossing.there), flying)
    crossing.at("leaf0", "ip", "link", "del", "leaf0-eth1")
    assert crossing.there.receive(flying) is flying
    assert not any([*crossing.cross(crossing.there, 1), *crossing.cross(crossing.back, 1)])
    assert crossing.there.lost == crossing.back.lost == 1
    assert "deleted" in crossing.there.warnings[-1]
    crossing.there.finish()
    crossing.back.finish()


@pytest.mark.skipif(shutil.which("tc", path="/usr/sbin:/sbin:/usr/bin:/bin") is None, reason="tc (iproute2) is missing")
def test_a_silent_eater_is_never_silent(crossing: Crossing) -> None:
    crossing.at("h0", "tc", "qdisc", "add", "dev", "h0-eth0", "clsact")
    crossing.at("h0", "tc", *EATER.split(), "1,6 0 0 4")
    started = time.monotonic()
    assert not any(crossing.cross(crossing.there, *range(5)))
    assert 0.14 < time.monotonic() - started < 0.4  # 100 ms once, then 10 ms each
    assert (crossing.there.lost, crossing.there.refused, crossing.there.disturbed) == (5, 0, True)
    assert crossing.cross(crossing.back, 1) == [True]
    crossing.at("h0", "tc", "filter", "del", "dev", "h0-eth0", "egress")
    assert crossing.cross(crossing.there, 6) == [True]
    crossing.there.finish()


def test_foreign_frames_are_told_from_ours(crossing: Crossing) -> None:
    opened = crossing.lab.socket_at(LINK.a)
    taken: list[Frame] = []
    crossing.there.on_foreign = taken.append
    ours = crossing.frame(1)
    opened.send(crossing.framing.encode(crossing.frame(99)))
    assert crossing.there.send(ours)
    opened.send(bytes(60))
    assert crossing.there.receive(ours) is ours
    crossing.there.finish()
    assert crossing.there.foreign == 2
    assert [frame.psn for frame in taken] == [99]
    assert crossing.back.foreign == 0


def test_what_a_person_sends_from_inside_is_foreign(crossing: Crossing) -> None:
    code = "import socket; s = socket.socket(17, 3, 0); s.bind(('h0-eth0', 0)); s.send(bytes(64))"
    crossing.at("h0", "python3", "-c", code)
    crossing.there.poll()
    assert (crossing.there.foreign, crossing.there.lost) == (1, 0)


def test_changed_bytes(crossing: Crossing) -> None:
    original, send = crossing.frame(1), crossing.there._send
    crossing.there._send = lambda data: send(data[:14] + b"\x01" + data[15:])  # type: ignore[misc,assignment]
    crossing.there.send(original)
    crossing.there._send = lambda data: send(data[:-1] + bytes([data[-1] ^ 1]))  # type: ignore[misc,assignment]
    crossing.there.send(damaged := crossing.frame(2))
    crossing.there._send = send
    again = crossing.there.receive(original)
    assert again is not None
    assert (again.psn, again.envelope.tos, again.bad) == (1, 1, False)
    bad = crossing.there.receive(damaged)
    assert bad is not None
    assert (bad.psn, bad.bad) == (2, True)
    assert crossing.cross(crossing.there, 3) == [True]


def test_offloads_are_off(crossing: Crossing) -> None:
    for port in (LINK.a, LINK.b):
        assert offloads_on(crossing.lab.socket_at(port), port.interface) == []
