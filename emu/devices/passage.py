"""What each hop remembers of a message, so that the walk back from its last bit can be done forwards.

The rule walks back from the message's last bit in: hops and cables as passed; a wait behind a frame of the same
message goes on with that frame (its serialization is serialization); a wait behind others is queueing; behind a
control frame, queueing, marked; for credit or pause, flow control. The same sum is done forwards, so that nothing
has to be kept: each frame carries the parts of its age, and each hop remembers those of the message's previous
frame there.
"""

from __future__ import annotations


class Passage:
    """The last frame of a message to leave by a hop. Times in picoseconds."""

    __slots__ = ("end_ps", "parts", "port", "waits")

    def __init__(self) -> None:
        self.port: object = None  # which port it was, by identity
        self.end_ps = 0  # when its last bit had left
        self.parts = 0  # of the message's age then, by cause: emu/parts.py
        self.waits = 0  # what waits at that port had been by then
