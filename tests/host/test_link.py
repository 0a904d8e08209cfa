"""When packets leave a link and arrive, and what is counted."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from emu.engine import Engine
from emu.frame import Frame
from emu.host.forwarder import Forwarder
from emu.host.link import FarEnd, PcieLink
from emu.pcie.framing import TlpFraming
from emu.pcie.tlp import Tlp
from emu.taps import Taps
from emu.wire import patience
from emu.wire.memory import MemoryWire
from emu.wire.veth import VethWire
from tests.host.bench import BASE, LINK_PS, RATE_BPS, ROOT_PS, Sink, link, read_of, write_of
from tests.wire.pair import Gate

BYTE_PS = 20
SER_PS = (64 + 24) * BYTE_PS


def joined(engine: Engine, *, forwards: bool = False, delay_ps: int = 0, read_ps: int = 0) -> tuple[PcieLink, Sink]:
    line, sink = link(engine), Sink(engine)
    line.join(FarEnd(sink.receive, forwards, delay_ps, read_ps))
    return line, sink


def test_an_endpoint_acts_on_the_whole_packet() -> None:
    engine = Engine()
    line, sink = joined(engine, delay_ps=5)
    line.send(write_of(64))
    engine.run()
    assert sink.times == [LINK_PS + SER_PS + 5]


def test_a_forwarder_acts_on_the_header() -> None:
    engine = Engine()
    line, sink = joined(engine, forwards=True, delay_ps=ROOT_PS)
    line.send(write_of(64))
    engine.run()
    assert sink.times == [LINK_PS + ROOT_PS]


def test_a_memory_is_called_when_a_reads_data_is_ready() -> None:
    engine = Engine()
    line, sink = joined(engine, read_ps=1000)
    line.send(read_of(64))
    line.send(write_of(64))
    engine.run()
    assert sink.times == [LINK_PS + 24 * BYTE_PS + 1000, LINK_PS + 24 * BYTE_PS + SER_PS]


def test_packets_leave_one_after_the_other_each_at_one_event() -> None:
    engine = Engine()
    line, sink = joined(engine)
    sent = [write_of(64), write_of(1), write_of(64)]
    for tlp in sent:
        line.send(tlp)
    assert line.busy_until_ps == 2 * SER_PS + 28 * BYTE_PS
    engine.at(10 * SER_PS, lambda _: line.send(write_of(64)))
    engine.run()
    ends = [SER_PS, SER_PS + 28 * BYTE_PS, 2 * SER_PS + 28 * BYTE_PS, 11 * SER_PS]
    assert sink.times == [end + LINK_PS for end in ends]
    assert [tlp for _, tlp in sink.arrived[:3]] == sent
    assert (line.tlps, line.tx_bytes, line.payload_bytes) == (4, 3 * 88 + 28, 3 * 64 + 1)
    assert line.busy_ps == 3 * SER_PS + 28 * BYTE_PS
    assert engine.events_run == line.tlps + 1


def test_a_byte_time_that_is_no_whole_number_is_rounded_up_for_the_packet() -> None:
    line = link(Engine(), rate_bps=454_800_241_977)
    assert line.serialization_ps(88) == -(-88 * 8 * 10**12 // 454_800_241_977) == 1548


def test_the_tap_sees_when_the_first_bit_leaves_though_that_is_later() -> None:
    engine, taps, seen = Engine(), Taps(), []
    line = PcieLink(engine, "nic-root", RATE_BPS, LINK_PS, taps)
    line.join(FarEnd(Sink(engine).receive))
    taps.frame_sent = lambda when_ps, name, frame: seen.append((when_ps, name, frame))
    first, second = write_of(64), write_of(64)
    line.send(first)
    line.send(second)
    assert seen == [(0, "nic-root", first), (SER_PS, "nic-root", second)]


@pytest.mark.parametrize(
    ("from_bps", "to_bps"), [(RATE_BPS, RATE_BPS), (RATE_BPS, RATE_BPS // 4), (RATE_BPS // 4, RATE_BPS)]
)
def test_cut_through_between_any_rates(from_bps: int, to_bps: int) -> None:
    """docs/timing.md: F_k = max(F_(k-1), L_(k-1) - ser_k) + latency."""
    engine = Engine()
    first, second, sink = link(engine, rate_bps=from_bps), link(engine, rate_bps=to_bps), Sink(engine)
    root = Forwarder("root", ROOT_PS)
    root.claim(BASE, 4096, second)
    first.join(root.far_end())
    second.join(FarEnd(sink.receive))
    for _ in range(3):
        first.send(write_of(64))
    engine.run()
    in_ps, out_ps = first.serialization_ps(88), second.serialization_ps(88)
    onward_ps = LINK_PS + ROOT_PS + LINK_PS
    slower_ps = max(in_ps, out_ps)
    assert sink.times == [onward_ps + slower_ps * (n + 1) for n in range(3)]


class Refusing(MemoryWire):
    def send(self, frame: Frame) -> bool:
        return False


def test_a_wire_that_refuses_loses_the_packet() -> None:
    engine = Engine()
    line, sink = link(engine), Sink(engine)
    line.join(FarEnd(sink.receive), Refusing("nic-root"))
    line.send(write_of(64))
    engine.run()
    assert (sink.arrived, line.tlps, line.lost_tlps, engine.pending(Tlp)) == ([], 1, 1, [])


class Crossing:
    """A link over a socket pair that stands in for the veth."""

    def __init__(self, near: socket.socket, far: socket.socket) -> None:
        self.engine, self.near = Engine(), near
        self.line, self.sink = link(self.engine), Sink(self.engine)
        self.wire = VethWire("nic-root", near, far, TlpFraming())
        self.gate = Gate.before(self.wire)
        self.line.join(FarEnd(self.sink.receive), self.wire)


@pytest.fixture
def crossing() -> Iterator[Crossing]:
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with near, far:
        near.setblocking(False)
        far.setblocking(False)
        yield Crossing(near, far)


def test_bytes_cross_as_the_packet_is_sent(crossing: Crossing) -> None:
    first, second = write_of(64), write_of(64)
    crossing.line.send(first)
    crossing.gate.shut = True  # the second's have not come out yet
    crossing.line.send(second)
    crossing.gate.shut = False
    assert (crossing.wire.crossed, len(crossing.wire.in_flight)) == (1, 1)
    crossing.engine.run()
    assert crossing.sink.arrived == [(LINK_PS + SER_PS, first), (LINK_PS + 2 * SER_PS, second)]
    assert crossing.line.lost_tlps == 0


def test_a_packet_that_does_not_come_out_is_lost(crossing: Crossing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PATIENCE_S", 0.01)
    crossing.gate.shut = True
    crossing.line.send(write_of(64))
    crossing.gate.shut = False
    crossing.gate.swallow()
    crossing.engine.run()
    assert (crossing.sink.arrived, crossing.line.lost_tlps, crossing.wire.lost) == ([], 1, 1)


@pytest.mark.parametrize("place", [14, -1], ids=["kind", "payload"])
def test_a_packet_that_comes_out_changed_is_lost(crossing: Crossing, place: int) -> None:
    crossing.gate.shut = True
    crossing.line.send(write_of(64))
    crossing.gate.shut = False
    data = bytearray(crossing.gate.swallow()[0])
    data[place] ^= 1
    crossing.near.send(data)
    crossing.engine.run()
    assert (crossing.sink.arrived, crossing.line.lost_tlps, crossing.wire.changed) == ([], 1, 1)
