"""Holders: light processes that keep a node's namespaces alive until the pipe to them closes, however it closes."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import select
import shutil
import signal
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from time import monotonic, sleep

from emu.errors import MachineError
from emu.lab.namespace import entered
from emu.lab.rights import OTHERWISE, remedy

MNEXEC_REMEDY = f"install it (apt-get install mininet on Debian and Ubuntu), {OTHERWISE}"
PROBE_TIMEOUT_S = 5.0
READY_TIMEOUT_S = 30.0
RELEASE_TIMEOUT_S = 2.0


class Holder:
    """A process alone in its network and mount namespace that reads a pipe only we can write, and ends with it."""

    __slots__ = ("_environment", "_pipe", "name", "pid")

    def __init__(self, name: str, pid: int, pipe: int, environment: Mapping[str, str]) -> None:
        self.name = name
        self.pid = pid
        self._pipe = pipe
        self._environment = environment

    def greet(self, text: bytes) -> None:
        """Send what it will echo once it is in its namespaces."""
        os.write(self._pipe, text)

    def check(self) -> None:
        """Raises MachineError unless /proc says of its number that it is the process that we started."""
        try:
            with open(f"/proc/{self.pid}/environ", "rb") as file:
                found = set(file.read().split(b"\0"))
        except OSError:
            found = set()
        if not {f"{name}={value}".encode() for name, value in self._environment.items()} <= found:
            raise MachineError(f"process {self.pid}, which held the namespaces of {self.name}, is gone: try again")

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """This thread is inside its network namespace meanwhile. Raises MachineError."""
        self.check()
        with entered(self.pid):
            yield

    def let_go(self) -> None:
        """Close the pipe: the holder ends by itself."""
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1

    def reap(self) -> None:
        """Wait until it has ended, for at most 2 s; then end it."""
        deadline = monotonic() + RELEASE_TIMEOUT_S
        try:
            while os.waitpid(self.pid, os.WNOHANG)[0] == 0:
                if monotonic() > deadline:
                    os.kill(self.pid, signal.SIGKILL)  # ours and not reaped, so the number is still its own
                    os.waitpid(self.pid, 0)
                    return
                sleep(0.0005)
        except ChildProcessError:
            return  # reaped by someone who waits for all children


@functools.cache
def find_mnexec() -> str:
    """The path of a `mnexec` that can make namespaces here. Raises MachineError if there is none, or it hangs."""
    path = shutil.which("mnexec", path=os.environ.get("PATH", os.defpath) + ":/usr/bin:/usr/local/bin")
    if path is None:
        raise MachineError(f"mnexec is missing, which makes Mininet's namespaces: {MNEXEC_REMEDY}")
    try:
        probe = subprocess.run(
            [path, "-n", "true"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise MachineError(f"{path} -n true does not end: {remedy()}") from None
    except OSError as error:
        raise MachineError(f"{path} does not run ({error.strerror}): {MNEXEC_REMEDY}") from None
    if probe.returncode:
        said = " ".join(probe.stderr.split()) or f"exit code {probe.returncode}"
        raise MachineError(f"mnexec cannot make a network namespace ({said}): {remedy()}")
    return path


def spawn(names: Iterable[str], environment: Mapping[str, str], holders: dict[str, Holder]) -> None:
    """Start a holder for each name, all at once, and wait until each is in its namespaces.

    They are added to `holders` one by one, so that the caller can let go of them if this raises (MachineError).
    """
    mnexec, cat = find_mnexec(), shutil.which("cat") or "/bin/cat"
    answers, answer = os.pipe()
    try:
        try:
            leaked = _inheritable_files()
            for name in names:
                holders[name] = _start([mnexec, "-n", cat], {**environment, "EMU_NODE": name}, name, answer, leaked)
        finally:
            os.close(answer)
        for number, holder in enumerate(holders.values()):
            _greet(holder, b"%d\n" % number)
        _await_answers(answers, len(holders))
    finally:
        os.close(answers)


def _start(command: list[str], environment: Mapping[str, str], name: str, answer: int, leaked: Iterable[int]) -> Holder:
    reading, writing = os.pipe()
    actions: list[tuple[int, int, int] | tuple[int, int]] = [
        (os.POSIX_SPAWN_DUP2, reading, 0),
        (os.POSIX_SPAWN_DUP2, answer, 1),
        (os.POSIX_SPAWN_DUP2, answer, 2),
        *((os.POSIX_SPAWN_CLOSE, file) for file in leaked),
    ]
    try:
        # A session of its own: what a terminal sends us (Ctrl-C, hang-up) does not reach it.
        pid = os.posix_spawn(
            command[0],
            command,
            environment,
            file_actions=actions,
            setsid=True,
            setsigmask=[],
            setsigdef=[signal.SIGPIPE],
        )
    except OSError as error:
        os.close(writing)
        raise MachineError(f"no process for {name} ({error.strerror}): allow more of them (ulimit -u)") from None
    finally:
        os.close(reading)
    return Holder(name, pid, writing, environment)


def _inheritable_files() -> list[int]:
    """What our parent left open for its descendants: holders have no business with it."""
    files = []
    for entry in os.listdir("/proc/self/fd"):
        try:
            if int(entry) > 2 and not fcntl.fcntl(int(entry), fcntl.F_GETFD) & fcntl.FD_CLOEXEC:
                files.append(int(entry))
        except OSError:
            continue  # the listing's own
    return files


def _greet(holder: Holder, text: bytes) -> None:
    try:
        holder.greet(text)
    except BrokenPipeError:
        return  # it ended already; why, it says in its answer


def _await_answers(answers: int, expected: int) -> None:
    deadline = monotonic() + READY_TIMEOUT_S
    poll = select.poll()
    poll.register(answers, select.POLLIN)
    heard = b""
    while heard.count(b"\n") < expected:
        if not poll.poll(max(0, round((deadline - monotonic()) * 1000))):
            raise MachineError(f"namespaces are not ready after {READY_TIMEOUT_S:.0f} s: {remedy()}")
        read = os.read(answers, 65536)
        if not read:
            break
        heard += read
    said = [line for line in heard.decode(errors="replace").splitlines() if not line.isdecimal()]
    if said or heard.count(b"\n") < expected:
        reason = said[0] if said else "it ended at once"
        raise MachineError(f"mnexec cannot make a network namespace ({reason}): {remedy()}")
