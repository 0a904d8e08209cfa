"""What keeps a file from being written that is this machine's doing, not a mistake in its name; and the remedy."""

from __future__ import annotations

import errno

ELSEWHERE = "write elsewhere"
FREE = f"free some space, or {ELSEWHERE}"
REMEDIES = {
    errno.ENOSPC: FREE,
    errno.EDQUOT: FREE,
    errno.EFBIG: f"raise the limit on a file's size (ulimit -f), or {ELSEWHERE}",
    errno.EIO: ELSEWHERE,
    errno.ENOMEM: "free some memory",
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
    errno.ENFILE: "raise the limit on open files (sysctl fs.file-max)",
}


def remedy(error: OSError) -> str | None:
    """What to do about it, or None if the machine is not to blame."""
    return REMEDIES.get(error.errno or 0)
