"""Where a message's time went, booked as its frames pass.

The rule walks back from the message's last bit in: hops and cables as passed; a wait behind a frame of the same
message goes on with that frame (its serialization is serialization); a wait behind others is queueing; behind a
control frame, queueing, marked; for credit or pause, flow control. The same sum is done forwards here, so that
nothing has to be kept: each frame carries the parts of its age, and each hop remembers the parts of the message's
previous frame there.
"""

from __future__ import annotations

from typing import NamedTuple

from emu.frame import Parts

NIC, FLOW_CONTROL = 0, 6  # places in `Parts`


class Passage(NamedTuple):
    """A frame's leaving by a port, or a moment at which something began to wait there. Times in picoseconds."""

    port: object  # which port it was, by identity
    parts: Parts  # of the message's age when the frame's first bit left
    ser_ps: int
    end_ps: int  # when its last bit had left
    busy_ps: int  # all serialization at the port by then
    control_ps: int  # of it, control frames'


def spread(parts: Parts, gap_ps: int, busy_ps: int, control_ps: int, idle_part: int) -> Parts:
    """Add a wait of `gap_ps` to the parts: what control frames took, what other data took, and idle time."""
    nic, serial, prop, switch, queue, control, flow = parts
    queue += busy_ps - control_ps
    control += control_ps
    idle_ps = gap_ps - busy_ps
    if idle_part == NIC:
        return (nic + idle_ps, serial, prop, switch, queue, control, flow)
    return (nic, serial, prop, switch, queue, control, flow + idle_ps)
