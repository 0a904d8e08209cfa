"""What a program is told of one queue, in order: each completion once the bytes that it tells of are there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from emu.frame import Message
from emu.host.landing import LandingPlace


class Telling:
    """Without GPU-direct the NIC is done with bytes that have yet to be copied to the GPU's memory."""

    __slots__ = ("_line", "_places", "_tell")

    def __init__(self, places: LandingPlace, tell: Callable[[Any], object]) -> None:
        self._places = places
        self._tell = tell
        self._line: deque[tuple[Message | None, Any]] = deque()

    def put(self, message: Message | None, what: Any) -> None:
        """A CQE was seen; `message`: whose bytes have to be here first, if any have."""
        self._line.append((message, what))
        if len(self._line) == 1:
            self._go_on()

    def _go_on(self) -> None:
        while self._line:
            message, what = self._line[0]
            if message is not None and message.delivered_ps < 0:
                self._places.when_delivered(message, self._go_on)
                return
            self._line.popleft()
            self._tell(what)
