"""Ctrl-C, SIGTERM and SIGHUP while a command runs: one interrupts it; none changes how it ends."""

from __future__ import annotations

import signal
import threading
from time import monotonic
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE_S = 5.0  # what was made is being undone: a signal this soon after one that interrupted wishes the same


class Signals:
    """`catch`, then `settle` once the exit code is known, then `release`. Does nothing outside the main thread.

    `for_good`: the process is the command's own, and has nothing to do after it but end.
    """

    def __init__(self, *, for_good: bool) -> None:
        self._for_good = for_good
        self._before: dict[signal.Signals, signal._HANDLER] = {}
        self._interrupted_at_s = -PATIENCE_S
        self._settled = False

    def catch(self) -> None:
        """From here on a signal raises KeyboardInterrupt; one that is ignored, as nohup does it, stays ignored."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in ENDING:
            handler = signal.getsignal(number)
            if handler is not signal.SIG_IGN:
                self._before[number] = handler
                signal.signal(number, self._interrupt)

    def settle(self) -> None:
        """From here on a signal changes nothing.

        Not even while the interpreter shuts down, where Python would give each signal back its deadly default: so the
        system keeps them from a process that ends.
        """
        self._settled = True
        if self._for_good and self._before:
            signal.pthread_sigmask(signal.SIG_BLOCK, self._before)
            for number in self._before:
                signal.signal(number, signal.SIG_IGN)

    def release(self) -> None:
        """Give every signal back to who had it before; for good, it is `settle`."""
        if self._for_good:
            self.settle()
            return
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _interrupt(self, number: int, _: FrameType | None) -> None:
        now_s = monotonic()
        if self._settled or now_s - self._interrupted_at_s < PATIENCE_S:
            return
        self._interrupted_at_s = now_s
        raise KeyboardInterrupt(signal.Signals(number).name)
