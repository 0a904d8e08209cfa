"""Ctrl-C, SIGTERM and a closed terminal end a run between two events, with its books in order."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from emu.engine import Engine

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def stop_on_signals(engine: Engine) -> Iterator[list[int]]:
    """Let the first of these signals stop the engine after the present event; a second does what it did before.

    Gives the list of signals that came. Does nothing outside the main thread; an ignored signal stays ignored.
    """
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return
    before = {number: signal.getsignal(number) for number in ENDING}
    before = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}

    def stop(number: int, _: FrameType | None) -> None:
        came.append(number)
        engine.stop()
        signal.signal(number, before[signal.Signals(number)])

    try:
        for number in before:
            signal.signal(number, stop)
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
