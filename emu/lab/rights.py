"""What this process may do in its namespaces as it is, and the remedy if that is too little."""

from __future__ import annotations

import errno
import os
from fcntl import ioctl
from pathlib import Path

CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_NET_RAW": 13, "CAP_SYS_ADMIN": 21}  # linux/capability.h
NS_GET_USERNS = 0xB701  # linux/nsfs.h
OTHERWISE = "or use --wire memory"


def missing_rights() -> list[str]:
    """Capabilities that a lab needs and this process has not. Raises OSError without /proc."""
    for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("CapEff:"):
            held = int(line.split()[1], 16)
            return [name for name, bit in CAPABILITIES.items() if not held >> bit & 1]
    return list(CAPABILITIES)


def owns_network() -> bool:
    """Whether its capabilities count in the network namespace it is in: not in that of an outer user namespace."""
    with open("/proc/self/ns/net", "rb") as namespace:
        try:
            os.close(ioctl(namespace, NS_GET_USERNS))
        except OSError as error:
            return error.errno != errno.EPERM  # an older kernel (before 4.9) does not know
    return True


def remedy() -> str:
    """What to do where namespaces cannot be had."""
    if os.geteuid():
        return f"run as root, or where user namespaces are allowed (emu doctor), {OTHERWISE}"
    missing = missing_rights()
    without = f" (without {', '.join(missing)})" if missing else ""
    return f"this root{without} may not, so give it the right (in a container with --privileged), {OTHERWISE}"
