"""Veth pairs, created straight into the namespaces of both nodes."""

from __future__ import annotations

import errno
from types import TracebackType

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from emu.addresses import mac_text
from emu.errors import MachineError
from emu.lab.rights import OTHERWISE, remedy

MTU_BYTES = 9216
REMEDIES = {
    errno.EOPNOTSUPP: f"load the kernel's veth module (modprobe veth), {OTHERWISE}",
    errno.ENOMEM: f"free some memory, {OTHERWISE}",
}


class Cables:
    """One netlink socket that lays every cable of a lab; to be used in a `with`."""

    def __init__(self) -> None:
        self._netlink = IPRoute(groups=0)  # group 0: nobody tells us what others do to their links

    def __enter__(self) -> Cables:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._netlink.close()

    def lay(self, a: tuple[str, int, int], b: tuple[str, int, int]) -> None:
        """A veth pair whose ends are (interface, PID of a process in its namespace, MAC). Raises MachineError."""
        ends = [
            {"ifname": interface, "net_ns_pid": pid, "address": mac_text(mac), "mtu": MTU_BYTES}
            for interface, pid, mac in (a, b)
        ]
        try:
            self._netlink.link("add", kind="veth", peer=ends[1], **ends[0])
        except NetlinkError as error:
            instead = remedy() if error.code == errno.EPERM else f"see emu doctor, {OTHERWISE}"
            raise MachineError(
                f"veth pair {a[0]} - {b[0]} cannot be made ({error.args[1]}): {REMEDIES.get(error.code, instead)}"
            ) from None
