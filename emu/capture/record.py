"""One captured frame, and the limits that keep damaged or hostile files from costing memory or time."""

from __future__ import annotations

from typing import NamedTuple

FRAME_LIMIT_BYTES = 262_144  # libpcap's MAXIMUM_SNAPLEN: no file of its holds a longer frame
BLOCK_LIMIT_BYTES = 2 * FRAME_LIMIT_BYTES  # a frame and its options; what is longer is skipped piece by piece
INTERFACE_LIMIT = 262_144  # both directions of the largest fabric's 100,000 links fit
NAME_LIMIT = 64  # characters kept of an interface's name

NANOSECONDS = 10**9


class Record(NamedTuple):
    """A frame as captured: `data` is shorter than `original_bytes` where a snap length cut it.

    `time_ns` counts from the file's epoch: 1970, or 0 of virtual time in our own captures.
    """

    time_ns: int
    interface: str
    link_type: int
    data: bytes
    original_bytes: int
