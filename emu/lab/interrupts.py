"""Ctrl-C while something is half made: kept until it can be undone."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """In a `with`, signals that someone handles wait until `check` is called or the block ends."""

    def __init__(self) -> None:
        self._handlers: dict[int, signal._HANDLER] = {}
        self._came: list[int] = []

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                handler = signal.getsignal(number)
                if callable(handler):
                    self._handlers[number] = handler
                    signal.signal(number, self._keep)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        if kind is None:
            self.check()

    def check(self) -> None:
        """Let the first signal that came be handled: usually raises KeyboardInterrupt."""
        if self._came:
            number = self._came.pop(0)
            handler = self._handlers[number]
            if callable(handler):
                handler(number, None)

    def _keep(self, number: int, frame: FrameType | None) -> None:
        self._came.append(number)
