"""Sequences of frames of every shape, by hypothesis: the machines alone, and what shrinks is what is shown."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from emu import opcodes
from emu.frame import Frame
from emu.framing.extension import LAYOUTS
from emu.transport.psn import PSN_MASK
from tests.fuzz.machines import Machines

MTU_BYTES = 256
WORDS = st.integers(0, 2**32 - 1)
LONGS = st.integers(0, 2**64 - 1)
OPERATIONS = st.sampled_from(sorted(opcodes.OPERATIONS))
LENGTHS = st.sampled_from((0, 1, 3, MTU_BYTES - 1, MTU_BYTES, MTU_BYTES + 1, 700))
AHEAD = st.one_of(st.just(0), st.just(0), st.integers(-3, 3), st.integers(-(2**23), 2**23))
Shape = tuple[int, int, int, bool, tuple[int, int, int, int, int]]
SHAPES = st.tuples(
    OPERATIONS,
    AHEAD,
    LENGTHS,
    st.booleans(),
    st.tuples(st.integers(0, 6), st.one_of(st.integers(-8, 3100), LONGS), WORDS, st.integers(0, 255), LONGS),
)
"""Opcode, distance from the number that is due, payload, AckReq; region, place, length, syndrome, operand."""


def frame_of(machines: Machines, shape: Shape) -> Frame:
    """A frame of that shape, aimed at the machines."""
    opcode, ahead, length, ack_request, (which, place, word, syndrome, operand) = shape
    region = machines.store.regions[which]
    asks = opcode not in opcodes.RESPONSES and opcode != opcodes.ACKNOWLEDGE
    number = machines.rc._expected if asks else machines.requester._acked
    payload = bytes(length) if opcodes.HAS_PAYLOAD[opcode] else b""
    frame = Frame(machines.envelope, opcode, number + ahead & PSN_MASK, payload, ack_request=ack_request)
    names = opcodes.EXTENSIONS[opcode]
    if "RETH" in names:
        frame.reth = ((region.addr + place) % 2**64, region.rkey, len(payload) or word % 4096 if ack_request else word)
    if "AETH" in names:
        frame.aeth = (syndrome, word & PSN_MASK)
    fields: list[int] = []
    for name in names:
        if name == "AtomicETH":
            fields += ((region.addr + place) % 2**64, region.rkey, operand, word)
        elif name not in ("RETH", "AETH", "CNPReserved"):
            fields += (operand % 16 if name == "FETH" else operand % 2**24,) * LAYOUTS[name].fields
    if "FETH" in names:
        fields = [operand % 4, operand % 16]
    frame.extension = tuple(fields) or None
    return frame


@given(st.integers(0, 2**16), st.lists(SHAPES, max_size=40))
def test_frames_of_every_shape_do_no_harm(seed: int, shapes: list[Shape]) -> None:
    machines = Machines(random.Random(seed), MTU_BYTES)
    for shape in shapes:
        frame = frame_of(machines, shape)
        framing = frame.envelope.framing
        machines.take(framing.decode(framing.encode(frame)))
    machines.store.check_all()
