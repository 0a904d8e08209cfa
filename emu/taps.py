"""What a run lets measurement see: callables that cost one truth test where nobody watches."""

from __future__ import annotations

from collections.abc import Callable

from emu.frame import Frame, Message


class Taps:
    """Each tap is None until somebody watches. Times are picoseconds."""

    __slots__ = (
        "connection_settled",
        "frame_sent",
        "host_step",
        "message_completed",
        "message_delivered",
        "message_posted",
    )

    def __init__(self) -> None:
        self.message_posted: Callable[[Message], object] | None = None
        self.message_delivered: Callable[[Message], object] | None = None  # visible at the destination
        self.message_completed: Callable[[Message], object] | None = None  # its CQE seen, good or bad
        self.connection_settled: Callable[[str, str, int, str], object] | None = None  # from, to, time taken, why not
        self.host_step: Callable[[str, str, str], object] | None = None  # of a host's part: which, what, where
        self.frame_sent: Callable[[int, str, Frame], object] | None = None  # time, link, frame: first bit leaves
