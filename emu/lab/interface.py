"""Settings of a network interface by ioctl on a socket we have anyway, rather than a netlink socket a namespace."""

from __future__ import annotations

import ctypes
import errno
import socket
from fcntl import ioctl
from struct import Struct

# linux/sockios.h, linux/if.h, linux/ethtool.h
SIOCGIFFLAGS = 0x8913
SIOCSIFFLAGS = 0x8914
SIOCETHTOOL = 0x8946
IFF_UP = 0x1
IFF_RUNNING = 0x40
IFF_NOARP = 0x80
ETHTOOL_GLINK = 0x0A
OFFLOADS = {
    "rx checksums": 0x15,  # ETHTOOL_SRXCSUM
    "tx checksums": 0x17,  # ETHTOOL_STXCSUM
    "scatter-gather": 0x19,  # ETHTOOL_SSG
    "TSO": 0x1F,  # ETHTOOL_STSO
    "GSO": 0x24,  # ETHTOOL_SGSO
    "GRO": 0x2C,  # ETHTOOL_SGRO
}
_FLAGS = Struct("16sH22x")  # struct ifreq with ifr_flags
_POINTER = Struct("16sP16x")  # struct ifreq with ifr_data
_VALUE = Struct("II")  # struct ethtool_value: command, data


def bring_up(opened: socket.socket, interface: str) -> None:
    """Set it up, without ARP."""
    set_flags(opened, interface, IFF_UP | IFF_NOARP)


def set_flags(opened: socket.socket, interface: str, flags: int) -> None:
    """Set its flags to exactly these, as far as they may be set."""
    ioctl(opened, SIOCSIFFLAGS, _FLAGS.pack(interface.encode(), flags))


def flags_of(opened: socket.socket, interface: str) -> int:
    """Its flags: IFF_UP and the others."""
    flags: int = _FLAGS.unpack(ioctl(opened, SIOCGIFFLAGS, _FLAGS.pack(interface.encode(), 0)))[1]
    return flags


def carries(opened: socket.socket, interface: str) -> bool:
    """Whether frames sent there go out.

    Until the kernel has noticed, some time after both ends were set up, that there is a carrier, the end that came
    first drops all it is to send, without an error.
    """
    if not flags_of(opened, interface) & IFF_RUNNING:
        _ethtool(opened, interface, ETHTOOL_GLINK)  # newer kernels notice when asked
        return False
    # The flag comes before the queue: this call waits for the lock that is held until that is there, too.
    return bool(_ethtool(opened, interface, ETHTOOL_GLINK))


def switch_offloads_off(opened: socket.socket, interface: str) -> None:
    """Let frames cross as they are: no checksum left to hardware that is not there, no joining, no splitting."""
    for command in OFFLOADS.values():
        try:
            _ethtool(opened, interface, command)
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:  # a kernel that lacks the offload has it off
                raise


def offloads_on(opened: socket.socket, interface: str) -> list[str]:
    """Names of the offloads that are on."""
    return [name for name, command in OFFLOADS.items() if _ethtool(opened, interface, command - 1)]  # S... and G...


def _ethtool(opened: socket.socket, interface: str, command: int) -> int:
    """Set the command's value to 0, or get its value."""
    value = ctypes.create_string_buffer(_VALUE.pack(command, 0), _VALUE.size)
    ioctl(opened, SIOCETHTOOL, _POINTER.pack(interface.encode(), ctypes.addressof(value)))
    result: int = _VALUE.unpack(value.raw)[1]
    return result
