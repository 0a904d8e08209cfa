"""Why a packet socket did not take a frame, in words; other errors are bugs and pass on."""

from __future__ import annotations

import errno

REASONS = {
    errno.ENOBUFS: "the far end is down",
    errno.ENETDOWN: "its interface is down",
    errno.ENXIO: "its interface was deleted",
    errno.ENODEV: "its interface was deleted",
    errno.EMSGSIZE: "its MTU was lowered",
    errno.EAGAIN: "something keeps its frames from leaving",
}


def reason_of(error: OSError) -> str:
    """Why the send was refused. Raises the error itself if it is none that a link's state explains."""
    reason = REASONS.get(error.errno or errno.EAGAIN)  # a BlockingIOError may come without a number
    if reason is None:
        raise error
    return reason
