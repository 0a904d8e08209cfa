"""Working inside other network namespaces: threads that go there, and the settings that keep them silent."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

from emu.errors import MachineError
from emu.lab.rights import remedy

CLONE_NEWNET = 0x40000000
OWN = "/proc/thread-self/ns/net"
_LIBC = ctypes.CDLL(None, use_errno=True)
T = TypeVar("T")

# IPv6 off before an interface comes, else the kernel sends neighbour and router solicitations of its own.
QUIET_SETTINGS = {
    "ipv6/conf/all/disable_ipv6": b"1",
    "ipv6/conf/default/disable_ipv6": b"1",
    "ipv4/ip_forward": b"0",
}


@contextlib.contextmanager
def entered(pid: int) -> Iterator[None]:
    """This thread is inside the network namespace of that process meanwhile.

    Raises MachineError, also if that is the namespace it is in already: what is done there is not meant for our own.
    """
    with _opened(OWN) as home:
        _enter_that_of(pid)
        try:
            if os.path.samestat(os.stat(OWN), os.fstat(home)):
                raise MachineError(
                    f"process {pid} is in our own network namespace: nothing may be set there, try again"
                )
            yield
        finally:
            _set_namespace(home)


def in_own_thread(work: Callable[[], T]) -> T:
    """What `work` returns or raises, in a thread of its own.

    Ctrl-C interrupts the main thread alone, so work that changes namespaces is never left half-way.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # raised again below, where someone can handle it
            errors.append(error)

    thread = threading.Thread(target=run, name="emu-namespaces")
    try:
        thread.start()
    except RuntimeError as error:
        raise MachineError(f"no thread to work in namespaces ({error}): allow more of them (ulimit -u)") from None
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def keep_quiet() -> None:
    """Stop the namespace that this thread is in from sending or forwarding anything by itself."""
    for setting, value in QUIET_SETTINGS.items():
        try:
            file = os.open(f"/proc/sys/net/{setting}", os.O_WRONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # a kernel without IPv6
        except OSError as error:
            raise MachineError(
                f"/proc/sys/net/{setting} cannot be written ({error.strerror}): mount /proc/sys writable"
                " (in a container with --privileged), or use --wire memory"
            ) from None
        try:
            os.write(file, value)
        finally:
            os.close(file)


@contextlib.contextmanager
def _opened(namespace: str) -> Iterator[int]:
    file = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield file
    finally:
        os.close(file)


def _enter_that_of(pid: int) -> None:
    """By a file that stands for the process itself, where the kernel can (5.8): it takes no look into /proc."""
    try:
        process = os.pidfd_open(pid)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise MachineError(f"process {pid} cannot be found ({error.strerror}): try again") from None
    else:
        try:
            if _LIBC.setns(process, CLONE_NEWNET) == 0:
                return
        finally:
            os.close(process)
    with _opened(f"/proc/{pid}/ns/net") as there:
        _set_namespace(there)


def _set_namespace(namespace: int) -> None:
    if _LIBC.setns(namespace, CLONE_NEWNET):
        reason = os.strerror(ctypes.get_errno())
        raise MachineError(f"a network namespace cannot be entered ({reason}): {remedy()}")
