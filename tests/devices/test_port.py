"""A port's times, and its books of where a message's time went."""

from __future__ import annotations

from emu.engine import Engine
from emu.parts import pack, unpack
from tests.devices.bench import control_frame, data_frame, egress, message

SER_PS = (8 + 12 + 4096 + 4 + 2 + 8) * 20  # a Middle of 4096 B at 400 Gb/s
ACK_SER_PS = (8 + 12 + 4 + 4 + 2 + 8) * 20


def test_the_far_end_acts_when_the_first_bit_is_through_the_pipeline() -> None:
    engine = Engine()
    port, sink = egress(engine)
    port.enqueue(data_frame(message()))
    engine.run()
    assert [when for when, _ in sink.arrived] == [25_000 + 260_000]


def test_a_far_end_that_stores_waits_for_the_last_bit() -> None:
    engine = Engine()
    port, sink = egress(engine, stores=True)
    port.enqueue(data_frame(message()))
    engine.run()
    assert [when for when, _ in sink.arrived] == [25_000 + 260_000 + SER_PS]


def test_frames_leave_one_after_the_other_in_order() -> None:
    engine = Engine()
    port, sink = egress(engine, propagation_ps=0, hop_ps=0)
    frames = [data_frame(message(), psn=psn) for psn in range(4)]
    for frame in frames:
        port.enqueue(frame)
    assert port.max_held_bytes == 3 * (SER_PS // 20)
    engine.run()
    assert sink.arrived == [(number * SER_PS, frame) for number, frame in enumerate(frames)]
    assert port.busy_ps == 4 * SER_PS
    assert port.held_bytes == 0


def test_a_frame_that_comes_as_the_wire_falls_idle_starts_at_once() -> None:
    engine = Engine()
    port, sink = egress(engine, propagation_ps=0, hop_ps=0)
    port.enqueue(data_frame(message()))
    engine.at(SER_PS, port.enqueue, data_frame(message()))
    engine.run()
    assert [when for when, _ in sink.arrived] == [0, SER_PS]


def test_odd_rates_round_up_to_whole_picoseconds() -> None:
    engine = Engine()
    port, _ = egress(engine, rate_gbps=33)
    assert port.serialization_ps(100) == 24_243  # 24242.42 ps
    assert port.serialization_ps(33) == 8_000


def test_a_wait_behind_another_message_is_queueing() -> None:
    engine = Engine()
    port, _ = egress(engine)
    first, second = data_frame(message(1)), data_frame(message(2))
    port.enqueue(first)
    engine.at(30_000, port.enqueue, second)
    second.parts = pack(30_000, 0, 0, 0, 0, 0, 0)
    engine.run()
    assert unpack(second.parts) == (30_000, 0, 25_000, 260_000, SER_PS - 30_000, 0, 0, 0)


def test_a_wait_behind_the_same_message_is_that_frames_serialization() -> None:
    engine = Engine()
    port, _ = egress(engine)
    both = message()
    first, second = data_frame(both), data_frame(both)
    port.enqueue(first)
    port.enqueue(second)
    engine.run()
    assert unpack(second.parts) == (0, SER_PS, 25_000, 260_000, 0, 0, 0, 0)


def test_a_wait_behind_a_control_frame_is_marked() -> None:
    engine = Engine()
    port, _ = egress(engine)
    frame = data_frame(message())
    port.enqueue(control_frame())
    engine.at(300, port.enqueue, frame)
    frame.parts = pack(300, 0, 0, 0, 0, 0, 0)
    engine.run()
    assert unpack(frame.parts) == (300, 0, 25_000, 260_000, 0, ACK_SER_PS - 300, 0, 0)


def test_a_control_frame_and_a_stranger_between_two_of_a_message() -> None:
    """The walk goes on with the earlier frame; what came between is queueing, the control frame's share marked."""
    engine = Engine()
    port, _ = egress(engine)
    mine = message(1)
    first, second = data_frame(mine), data_frame(mine)
    for frame in (first, control_frame(), data_frame(message(2), payload=1024), second):
        port.enqueue(frame)
    other_ps = (8 + 12 + 1024 + 4 + 2 + 8) * 20
    engine.run()
    assert unpack(second.parts) == (0, SER_PS, 25_000, 260_000, other_ps, ACK_SER_PS, 0, 0)


def test_a_later_frame_that_did_not_wait_behind_its_own_message_keeps_its_own_parts() -> None:
    engine = Engine()
    port, _ = egress(engine)
    mine = message()
    port.enqueue(data_frame(mine))
    late = data_frame(mine)
    late.parts = pack(0, 0, 0, 2 * SER_PS, 0, 0, 0)
    engine.at(2 * SER_PS, port.enqueue, late)
    engine.run()
    assert unpack(late.parts) == (0, 0, 25_000, 2 * SER_PS + 260_000, 0, 0, 0, 0)


def test_counts() -> None:
    engine = Engine()
    port, _ = egress(engine)
    port.enqueue(data_frame(message()))
    port.enqueue(control_frame())
    engine.run()
    assert (port.data_frames, port.control_frames) == (1, 1)
    assert port.busy_ps == SER_PS + ACK_SER_PS
    assert port.tx_bytes == (SER_PS + ACK_SER_PS) // 20
