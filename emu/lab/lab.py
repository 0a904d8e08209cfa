"""A topology as a real fabric: a network namespace a node, a veth pair a link, a packet socket at each end."""

from __future__ import annotations

import errno
import secrets
import socket
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from time import monotonic, sleep
from types import TracebackType

from emu.addresses import MAC_BASE, address_of
from emu.errors import MachineError
from emu.frame import Framing
from emu.lab.cables import Cables
from emu.lab.holder import Holder, spawn
from emu.lab.interface import bring_up, carries, switch_offloads_off
from emu.lab.interrupts import Interrupts
from emu.lab.limits import enough_files, one_cpu
from emu.lab.namespace import in_own_thread, keep_quiet
from emu.lab.nodes import Mininet, fabric_net
from emu.lab.owner import Owner
from emu.lab.proc import check_proc
from emu.lab.rights import OTHERWISE, remedy
from emu.topology import Link, PortName, Topology, reverse_name
from emu.wire.packet_socket import bind_to, interface_is_gone, open_packet_socket
from emu.wire.veth import VethWire

CLOSING_THREADS = 64  # a close waits 12 ms for RCU; many wait for the same grace period
CARRIER_TIMEOUT_S = 5.0
GONE_TIMEOUT_S = 2.0
OTHER_MAC_BASE = MAC_BASE + (1 << 32)  # of switches' ports and of hosts' further ports


class Lab:
    """`with Lab(topology) as lab`: builds it, and undoes all of it on every way out.

    Raises MachineError if this machine cannot. `receive_buffer_bytes` is the size of each socket's receive buffer,
    as large as allowed if not given. The process stays on one CPU meanwhile, where frames cross at once.
    """

    mininet: Mininet

    def __init__(
        self, topology: Topology, *, run_id: str | None = None, receive_buffer_bytes: int | None = None
    ) -> None:
        self.topology = topology
        self.run_id = run_id or new_run_id()
        self.build_seconds = 0.0
        self._receive_buffer_bytes = receive_buffer_bytes
        self._holders: dict[str, Holder] = {}
        self._sockets: dict[PortName, socket.socket] = {}
        self._undo = ExitStack()

    def __enter__(self) -> Lab:
        started = monotonic()
        with Interrupts() as interrupts:
            try:
                self._build(interrupts)
                interrupts.check()
            except OSError as error:
                self._undo.close()
                raise MachineError(f"the fabric's namespaces cannot be set up: {_told(error)}") from None
            except BaseException:
                self._undo.close()
                raise
        self.build_seconds = monotonic() - started
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with Interrupts():
            self._undo.close()

    def wires(self, link: Link, framing: Framing, names: tuple[str, str] | None = None) -> tuple[VethWire, VethWire]:
        """The link's two directions, a to b and b to a, under their own names or these."""
        a, b = self._sockets[link.a], self._sockets[link.b]
        there, back = names or (link.name, reverse_name(link))
        return VethWire(there, a, b, framing), VethWire(back, b, a, framing)

    def socket_at(self, port: PortName) -> socket.socket:
        """The packet socket of a port."""
        return self._sockets[port]

    def pid_of(self, node: str) -> int:
        """A process in the node's namespaces, as for `mnexec -a` and `nsenter -t`."""
        return self._holders[node].pid

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes that keep the namespaces."""
        return tuple(holder.pid for holder in self._holders.values())

    def _build(self, interrupts: Interrupts) -> None:
        check_proc(f", {OTHERWISE}")  # before anything is touched
        undo, topology = self._undo, self.topology
        undo.enter_context(enough_files(2 * len(topology.links) + len(topology.nodes)))
        environment = {"EMU_RUN": self.run_id, "EMU_OWNER": str(Owner.this_process())}
        undo.callback(self._release)
        spawn((node.name for node in topology.nodes), environment, self._holders)
        interrupts.check()
        in_own_thread(self._quiet_namespaces)
        undo.callback(self._end_shells)
        self.mininet = fabric_net(topology, self._holders, environment)
        interrupts.check()
        self._lay_cables(interrupts)
        in_own_thread(self._open_sockets)
        self._await_carriers()
        undo.enter_context(one_cpu())

    def _quiet_namespaces(self) -> None:
        for holder in self._holders.values():
            with holder.entered():
                keep_quiet()

    def _lay_cables(self, interrupts: Interrupts) -> None:
        host_macs = {name: address_of(name, number).mac for number, name in enumerate(self.topology.hosts)}
        with Cables() as cables:
            for number, link in enumerate(self.topology.links):
                ends = []
                for side, port in enumerate((link.a, link.b)):
                    other_mac = OTHER_MAC_BASE + 2 * number + side
                    mac = host_macs.get(port.node, other_mac) if port.number == 0 else other_mac
                    ends.append((port.interface, self._holders[port.node].pid, mac))
                cables.lay(*ends)
                interrupts.check()

    def _open_sockets(self) -> None:
        ports: dict[str, list[PortName]] = {node.name: [] for node in self.topology.nodes}
        for link in self.topology.links:
            ports[link.a.node].append(link.a)
            ports[link.b.node].append(link.b)
        for node, own in ports.items():
            with self._holders[node].entered():
                for port in own:
                    opened = self._sockets[port] = open_packet_socket(self._receive_buffer_bytes)
                    switch_offloads_off(opened, port.interface)
                    bring_up(opened, port.interface)  # before it is bound: a socket of a dead interface says ENETDOWN
                    bind_to(opened, port.interface)

    def _await_carriers(self) -> None:
        deadline = monotonic() + CARRIER_TIMEOUT_S
        for port, opened in self._sockets.items():
            while not carries(opened, port.interface):
                if monotonic() > deadline:
                    raise MachineError(f"{port.interface} has no carrier after {CARRIER_TIMEOUT_S:.0f} s: try again")
                sleep(0.0005)

    def _end_shells(self) -> None:
        if hasattr(self, "mininet"):
            for node in (*self.mininet.hosts, *self.mininet.switches):
                node.terminate()

    def _release(self) -> None:
        """Close the sockets, end the holders, and wait until the kernel has taken the namespaces away.

        It does so some time after their last user ended, all that are due at once and in their order. So one socket
        watches: once the far end of its link is gone, everything released before the far end is, too.
        """
        sockets, holders = dict(self._sockets), dict(self._holders)
        self._sockets.clear()
        self._holders.clear()
        watched, watch = sockets.popitem() if sockets else (None, None)
        _close_all(sockets.values())
        near = holders.pop(watched.node, None) if watched else None
        far = holders.pop(self._far_node(watched), None) if watched else None
        _end(holders.values())
        _end([far] if far else [])
        if watch:
            _await_absence(watch)
            watch.close()
        _end([near] if near else [])

    def _far_node(self, port: PortName) -> str:
        return next(
            far.node for link in self.topology.links for own, far in ((link.a, link.b), (link.b, link.a)) if own == port
        )


def new_run_id() -> str:
    """Short, and no other run's."""
    return f"emu-{secrets.token_hex(4)}"


def _told(error: OSError) -> str:
    """What the machine refused, and the remedy."""
    reason = error.strerror or str(error)
    if error.errno in (errno.EPERM, errno.EACCES):
        return f"{reason}: {remedy()}"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return f"{reason}: allow more open files (ulimit -n), {OTHERWISE}"
    if error.errno in (errno.ENOMEM, errno.ENOBUFS):
        return f"{reason}: free some memory, {OTHERWISE}"
    return f"{reason}: see emu doctor, {OTHERWISE}"


def _close_all(sockets: Collection[socket.socket]) -> None:
    if not sockets:
        return
    try:
        with ThreadPoolExecutor(min(CLOSING_THREADS, len(sockets)), "emu-closing") as pool:
            for opened in sockets:
                pool.submit(opened.close)
    finally:
        for opened in sockets:  # those left if no more threads could be had
            opened.close()


def _end(holders: Collection[Holder]) -> None:
    for holder in holders:
        holder.let_go()
    for holder in holders:
        holder.reap()


def _await_absence(watch: socket.socket) -> None:
    deadline = monotonic() + GONE_TIMEOUT_S
    while not interface_is_gone(watch) and monotonic() < deadline:
        sleep(0.001)
