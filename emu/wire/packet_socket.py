"""AF_PACKET sockets: one serves both directions at one end of a veth pair."""

from __future__ import annotations

import select
import socket
from struct import Struct

ETH_P_ALL = 3
LARGEST_READ_BYTES = 9344  # MTU 9216, an Ethernet header, and room to notice what is longer
RECEIVE_BUFFER_BYTES = 1 << 22  # asked for; what was granted is read back

# linux/if_packet.h and asm-generic/socket.h: not in Python's socket module
SOL_PACKET = 263
PACKET_STATISTICS = 6
PACKET_IGNORE_OUTGOING = 23
SO_RCVBUFFORCE = 33
_STATISTICS = Struct("II")  # struct tpacket_stats: packets, drops


def open_packet_socket(receive_buffer_bytes: int | None = None) -> socket.socket:
    """A packet socket of this thread's namespace that hears nothing until it is bound.

    With a protocol from the start it would listen on every interface, and binding it would wait for RCU (8 ms).
    `receive_buffer_bytes` is the exact size of its receive buffer; without it, as large as this user may have.
    """
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    try:
        opened.setblocking(False)
        opened.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        _size_buffer(opened, receive_buffer_bytes)
    except BaseException:
        opened.close()
        raise
    return opened


def bind_to(opened: socket.socket, interface: str) -> None:
    """Let the socket hear everything that `interface` receives, and send there."""
    opened.bind((interface, ETH_P_ALL))


def dropped_frames(opened: socket.socket) -> int:
    """Frames the kernel had no room for in the receive buffer since the last call."""
    drops: int = _STATISTICS.unpack(opened.getsockopt(SOL_PACKET, PACKET_STATISTICS, _STATISTICS.size))[1]
    return drops


def wait_for_frame(opened: socket.socket, timeout_s: float) -> None:
    """Wait until there is something to read, or news of its interface, for at most `timeout_s` (1 ms at least)."""
    poll = select.poll()
    poll.register(opened, select.POLLIN)
    poll.poll(max(1, round(timeout_s * 1000)))


def interface_is_gone(opened: socket.socket) -> bool:
    """Whether the interface that the socket was bound to was deleted."""
    return not opened.getsockname()[0]


def _size_buffer(opened: socket.socket, receive_buffer_bytes: int | None) -> None:
    # The kernel grants twice what it is asked for, to account for its own overhead (socket(7)).
    wanted_bytes = (RECEIVE_BUFFER_BYTES if receive_buffer_bytes is None else receive_buffer_bytes) // 2
    try:
        opened.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, wanted_bytes)
    except PermissionError:  # needs CAP_NET_ADMIN outside any user namespace; rmem_max is the limit then
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, wanted_bytes)
