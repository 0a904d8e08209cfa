"""Where a message's time went, booked as its frames pass.

The rule walks back from the message's last bit in: hops and cables as passed; a wait behind a frame of the same
message goes on with that frame (its serialization is serialization); a wait behind others is queueing; behind a
control frame, queueing, marked; for credit or pause, flow control. The same sum is done forwards here, so that
nothing has to be kept: each frame carries the parts of its age, and each hop remembers the parts of the message's
previous frame there.
"""

from __future__ import annotations

from emu.frame import NO_PARTS, Parts

NIC, FLOW_CONTROL = 0, 6  # places in `Parts`


class Passage:
    """What a hop remembers of a message: the last of its frames to leave there. Times in picoseconds."""

    __slots__ = ("busy_ps", "control_ps", "end_ps", "parts", "port", "ser_ps")

    def __init__(self) -> None:
        self.port: object = None  # which port it was, by identity
        self.parts = NO_PARTS  # of the message's age when the frame's first bit left
        self.ser_ps = 0
        self.end_ps = 0  # when its last bit had left
        self.busy_ps = 0  # all serialization at the port by then
        self.control_ps = 0  # of it, control frames'


def spread(parts: Parts, gap_ps: int, busy_ps: int, control_ps: int, idle_part: int) -> Parts:
    """Add a wait of `gap_ps` to the parts: what control frames took, what other data took, and idle time."""
    nic, serial, prop, switch, queue, control, flow = parts
    queue += busy_ps - control_ps
    control += control_ps
    idle_ps = gap_ps - busy_ps
    if idle_part == NIC:
        return (nic + idle_ps, serial, prop, switch, queue, control, flow)
    return (nic, serial, prop, switch, queue, control, flow + idle_ps)
