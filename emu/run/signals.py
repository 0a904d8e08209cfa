"""Ctrl-C, SIGTERM and a closed terminal end a run between two events, with its books in order."""

from __future__ import annotations

import signal
import threading
from time import monotonic
from types import FrameType, TracebackType

from emu.engine import Engine

IMPATIENCE_S = 2.0  # a second signal within this is the same wish, and may not cost the result
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class EndingSignals:
    """In a `with`, once armed: the first of these signals stops the engine; one much later does what it did before.

    A result is not lost to a signal that comes while things are taken down or while it is told: after one that came,
    those of the same wish are still caught, and the first later one gives all back to who had them before.
    Does nothing outside the main thread; an ignored signal stays ignored.
    """

    def __init__(self, engine: Engine) -> None:
        self.came: list[int] = []
        self._engine = engine
        self._before: dict[int, signal._HANDLER] = {}
        self._first_s = 0.0

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
        if not self.came:
            self._give_back()

    def _give_back(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self.came and monotonic() - self._first_s > IMPATIENCE_S:
            self._give_back()
            before = self._before[number]
            if callable(before):
                before(number, frame)
            else:
                signal.raise_signal(number)
            return
        if not self.came:
            self._first_s = monotonic()
        self.came.append(number)
        self._engine.stop()
