"""Which of the frames on a wire are the bytes that came out: told by the number of bytes that differ."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from itertools import islice

from emu.errors import WireError
from emu.frame import ControlFrame, Frame, Framing
from emu.framing.control import ControlFraming
from emu.framing.native import NativeFraming
from emu.pcie.tlp import Tlp

LINK_CONTROL = ControlFraming()
CANDIDATES = 8  # frames lost in a row before a changed one: more than these and it counts as foreign


def differing_bytes(one: bytes, other: bytes) -> int:
    """How many bytes must change to make one the other; what one has more counts as changed."""
    shared = min(len(one), len(other))
    changes = int.from_bytes(one[:shared], "big") ^ int.from_bytes(other[:shared], "big")
    return abs(len(one) - len(other)) + shared - changes.to_bytes(shared, "big").count(0)


def nearest(frames: Iterable[Frame], data: bytes) -> int | None:
    """The place of the frame that `data` is, or was before something changed it; None: of none of them.

    Frames of one flow differ in little (PSN, ICRC), so the nearest is meant, and not merely a near one.
    """
    best, least = None, 0
    for place, frame in enumerate(islice(frames, CANDIDATES)):
        sent = frame.data or b""
        difference = differing_bytes(sent, data)
        if difference <= len(sent) // 2 and (best is None or difference < least):
            best, least = place, difference
    return best


def as_changed(frame: Frame, data: bytes, framing: Framing) -> Frame:
    """The frame as its changed bytes say: parsed anew if its ICRC is right, else the old one marked bad.

    Nobody forwards a link's own frames or moves others to another VL, so whatever did either has damaged them. Nor may
    anything change a TLP.
    """
    try:
        if isinstance(frame, (ControlFrame, Tlp)):
            raise WireError("a frame of the link's own, or a TLP, came out changed")
        changed = framing.decode(data)
        if framing.name == NativeFraming.name and changed.envelope.lane != frame.envelope.lane:
            raise WireError("a frame came out on another VL")
    except WireError:
        changed = copy.copy(frame)
        changed.bad = True
    else:
        _take_over(changed, frame)
    changed.data = data
    return changed


def decode_either(data: bytes, framing: Framing) -> Frame:
    """The frame of a stranger: of the network, or of a link's flow control. Raises WireError for neither."""
    try:
        return framing.decode(data)
    except WireError:
        return LINK_CONTROL.decode(data)


def _take_over(changed: Frame, frame: Frame) -> None:
    # What no header carries: whose message it is, and what its way so far was.
    changed.message = frame.message
    changed.carries_data = frame.carries_data
    changed.wire_bytes = frame.wire_bytes
    changed.ser_ps = frame.ser_ps
    changed.hop = frame.hop
    changed.parts = frame.parts
    changed.eligible_ps = frame.eligible_ps
    changed.waits_mark = frame.waits_mark
    changed.ingress = frame.ingress
