"""The command's first step: from here on a signal ends it as it should, also while the rest is still to be loaded."""

from __future__ import annotations

import os
import signal
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INTERRUPTED = 130


def main() -> int:
    """Run the command of this process's arguments; the exit code."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)  # who started us anew held them back until somebody listens
    from emu.cli import main as run  # noqa: PLC0415 - what this takes is what may be interrupted

    return run()


def _end(number: int, _: FrameType | None) -> None:
    """Nothing was made yet: there is nothing to undo."""
    os.write(2, b"emu: interrupted\n")
    os._exit(INTERRUPTED)
