"""Ctrl-C, SIGTERM and a closed terminal end a run between two events, with its books in order."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType

from emu.engine import Engine

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class EndingSignals:
    """In a `with`, once armed: the first of these signals stops the engine, a second does what it did before.

    A result that is complete is not lost to a signal that comes while it is told or while things are taken down.
    Does nothing outside the main thread; an ignored signal stays ignored.
    """

    def __init__(self, engine: Engine) -> None:
        self.came: list[int] = []
        self._engine = engine
        self._before: dict[int, signal._HANDLER] = {}

    def __enter__(self) -> EndingSignals:
        return self

    def arm(self) -> None:
        """From now on."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in ENDING:
            handler = signal.getsignal(number)
            if handler is not signal.SIG_IGN:
                self._before[number] = handler
                signal.signal(number, self._stop)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _stop(self, number: int, _: FrameType | None) -> None:
        self.came.append(number)
        self._engine.stop()
        signal.signal(number, self._before[number])
