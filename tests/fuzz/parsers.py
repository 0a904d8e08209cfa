"""Every parser on the same bytes: each gives what it read, or a WireError of one line."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from emu.capture.record import Record
from emu.capture.summary import Summary
from emu.errors import WireError
from emu.frame import ControlFrame, Frame
from emu.framing.control import ControlFraming
from emu.framing.dissect import LINK_ERF, LINK_ETHERNET, LINK_INFINIBAND, dissect
from tests.fuzz.corpus import NATIVE, ROCE

FRAMINGS = (ROCE, NATIVE, ControlFraming())
LINK_TYPES = (LINK_ETHERNET, LINK_ETHERNET, LINK_ETHERNET, LINK_INFINIBAND, LINK_ERF)
MOST_SHOWN = 400  # characters of a line for people


def parse(numbers: random.Random, data: bytes, tally: Counter[str]) -> list[Frame]:
    """The frames that framings take these bytes for; usually one, or none."""
    found = []
    for framing in FRAMINGS:
        try:
            frame = framing.decode(data)
        except WireError as error:
            _check(error)
            continue
        tally[f"read as {framing.name}"] += 1
        _check_again(frame)
        found.append(frame)
    tally["read" if found else "refused"] += 1
    try:
        seen = dissect(numbers.choice(LINK_TYPES), data)
    except WireError as error:
        _check(error)
    else:
        assert len(seen.payload) <= len(data)
        assert len(seen.info) < MOST_SHOWN
    return found


def _check(error: WireError) -> None:
    assert 0 < len(str(error)) < MOST_SHOWN / 2
    assert "\n" not in str(error)


def _check_again(frame: Frame) -> None:
    """What was taken can be sent again, and is the same then."""
    framing, data = frame.envelope.framing, frame.data
    frame.data = None
    again = framing.decode(framing.encode(frame))
    frame.data = data
    if isinstance(frame, ControlFrame):
        assert isinstance(again, ControlFrame)
        assert again.control == frame.control
        return
    assert (again.opcode, again.psn, again.payload) == (frame.opcode, frame.psn, frame.payload)
    assert (again.reth, again.aeth, again.extension) == (frame.reth, frame.aeth, frame.extension)


def summarise(frames: Sequence[bytes]) -> None:
    """What `emu decode` tells of a capture of all these: flows, messages, answers."""
    summary = Summary(with_rows=False, limit=100)
    records = [Record(number * 1000, "if0", LINK_ETHERNET, data, len(data)) for number, data in enumerate(frames)]
    summary.add(record for record in records if len(record.data) >= 14)  # a shorter one ends the reading
    result = summary.result()
    assert result["frames"] == sum(result["networks"].values())
