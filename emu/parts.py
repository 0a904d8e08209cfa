"""Where the time of a message went: eight sums of picoseconds side by side in one integer.

Frames carry one of these over every hop. As one integer, several sums grow by one addition; as a tuple they would
have to be taken apart and put together again, a million times a second.
"""

from __future__ import annotations

PARTS = (
    "nic",
    "serialization",
    "propagation",
    "switching",
    "queueing",
    "control_frame_wait",
    "flow_control_wait",
    "host",
)
STEPS = ("copy", "ask", "post", "ring", "fetch", "gather", "stall", "land", "copy_out", "answer", "turn")
"""What the host's part is made of where there is a host path, and last the NIC's: waits for its rate and for its order.

Copies to and from host memory; asking a CPU; writing the WQE; the doorbell; the WQE's and the payload's way to the NIC;
the wire idle for want of payload; the bytes' way into memory; and what a READ or atomic waits for the far memory.
"""
COPY, ASK, POST, RING, FETCH, GATHER, STALL, LAND, COPY_OUT, ANSWER, TURN = range(len(STEPS))
HOST_PLACE = PARTS.index("host")
FIELD_BITS = 64  # a sum fits: the longest run allowed is 10^18 ps
NIC, SERIALIZATION, PROPAGATION, SWITCHING, QUEUEING, CONTROL, FLOW_CONTROL, HOST = (
    place * FIELD_BITS for place in range(len(PARTS))
)
"""How far a part's picoseconds are shifted to the left."""

FIELD_MASK = (1 << FIELD_BITS) - 1


def pack(*values_ps: int) -> int:
    """One integer of the parts in their order; those not given are 0."""
    return sum(value_ps << place * FIELD_BITS for place, value_ps in enumerate(values_ps))


def unpack(parts: int) -> tuple[int, ...]:
    """The parts in their order, in picoseconds."""
    return tuple(parts >> place * FIELD_BITS & FIELD_MASK for place in range(len(PARTS)))


def weight(part: int, idle_part: int) -> int:
    """What each picosecond of a wait adds if it is of that part, and not of the one that idle time counts as.

    A wait of `gap_ps` is then `gap_ps << idle_part`, plus the weighted picoseconds that the wire was busy meanwhile.
    """
    return (1 << part) - (1 << idle_part)
