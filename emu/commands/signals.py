"""Ctrl-C, SIGTERM and SIGHUP while a command runs: one interrupts it; none changes how it ends."""

from __future__ import annotations

import signal
import sys
import threading
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
AGAIN_S = 0.01
PATIENCE_S = 5.0  # what was made is being undone: a signal this soon after one that interrupted wishes the same


class Signals:
    """`catch`, then `settle` once the exit code is known, then `release`. Does nothing outside the main thread.

    `for_good`: the process is the command's own, and has nothing to do after it but end.
    """

    def __init__(self, *, for_good: bool) -> None:
        self._for_good = for_good
        self._before: dict[signal.Signals, signal._HANDLER] = {}
        self._interrupted_at_s = -PATIENCE_S
        self._last = signal.SIGINT
        self._settled = False
        self._hook = sys.unraisablehook

    def catch(self) -> None:
        """From here on a signal raises KeyboardInterrupt; one that is ignored, as nohup does it, stays ignored."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in ENDING:
            handler = signal.getsignal(number)
            if handler is not signal.SIG_IGN:
                self._before[number] = handler
                signal.signal(number, self._interrupt)
        self._hook, sys.unraisablehook = sys.unraisablehook, self._swallowed

    def settle(self) -> None:
        """From here on a signal changes nothing.

        Not even while the interpreter shuts down, where Python would give each signal back its deadly default: so the
        system keeps them from a process that ends.
        """
        self._settled = True
        self._forget()
        if self._for_good and self._before:
            signal.pthread_sigmask(signal.SIG_BLOCK, self._before)
            for number in self._before:
                signal.signal(number, signal.SIG_IGN)

    def release(self) -> None:
        """Give every signal back to who had it before; for good, it is `settle`."""
        if self._for_good:
            self.settle()
            return
        self._forget()
        for number, handler in self._before.items():
            signal.signal(number, handler)
        sys.unraisablehook = self._hook

    def _interrupt(self, number: int, _: FrameType | None) -> None:
        now_s = monotonic()
        if self._settled or now_s - self._interrupted_at_s < PATIENCE_S:
            return
        self._interrupted_at_s, self._last = now_s, signal.Signals(number)
        raise KeyboardInterrupt(self._last.name)

    def _swallowed(self, unraisable: UnraisableHookArgs) -> None:
        """Where nothing can be raised (a destructor, a callback of the import system) an interrupt is lost: repeat it.

        Not from here, where nothing can be raised either.
        """
        if not isinstance(unraisable.exc_value, KeyboardInterrupt):
            self._hook(unraisable)
        elif not self._settled:
            self._before.setdefault(signal.SIGALRM, signal.getsignal(signal.SIGALRM))
            signal.signal(signal.SIGALRM, self._repeat)
            signal.setitimer(signal.ITIMER_REAL, AGAIN_S)

    def _forget(self) -> None:
        if signal.SIGALRM in self._before:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _repeat(self, *_: object) -> None:
        self._interrupted_at_s = -PATIENCE_S
        signal.raise_signal(self._last)  # whoever listens to it by now
