"""The memory wire hands over the frame itself and does nothing else."""

from __future__ import annotations

from emu.wire.base import Wire
from emu.wire.memory import MemoryWire
from tests.wire.stub import StubFraming, make_frame


def test_the_object_is_handed_over_and_its_bytes_are_never_made() -> None:
    framing = StubFraming()
    wire: Wire = MemoryWire("h0-leaf0")
    frame = make_frame(framing, 1)
    assert wire.send(frame)
    assert wire.receive(frame) is frame
    wire.poll()
    wire.finish()
    assert (framing.encoded, frame.data) == (0, None)
    assert (wire.lost, wire.foreign, wire.disturbed, wire.warnings) == (0, 0, False, [])
