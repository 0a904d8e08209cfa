"""Namespaces without root: an ordinary user's command runs again inside a user, mount and network namespace.

`python -m emu.lab.rootless COMMAND...` runs any command there, if that is needed and possible.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from emu.errors import MachineError
from emu.lab.proc import check_proc
from emu.lab.rights import OTHERWISE, missing_rights, owns_network

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
MS_REC_PRIVATE = 0x4000 | 0x40000
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PROBE_TIMEOUT_S = 10.0
WAYS_OUT = "run it with sudo, or with --wire memory, which needs no namespaces"

# What may forbid user namespaces: setting, the value that does, and the command that allows them.
SETTINGS = (
    ("user/max_user_namespaces", "0", "sudo sysctl user.max_user_namespaces=15000"),
    ("kernel/unprivileged_userns_clone", "0", "sudo sysctl kernel.unprivileged_userns_clone=1"),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    ),
)
SETTINGS_FOLDER = Path("/proc/sys")
PROBE = "from emu.lab.rootless import enter; enter()"
_LIBC = ctypes.CDLL(None, use_errno=True)


def is_privileged() -> bool:
    """Whether this process may make and configure network namespaces as it is. Raises MachineError: no /proc."""
    check_proc(f", {OTHERWISE}")
    return not missing_rights() and owns_network()


def available() -> str | None:
    """None if user namespaces can be had here, else the reason and the remedy. Tried out in another process."""
    code = f"import sys; sys.path[:] = {sys.path!r}\n{PROBE}"
    try:
        probe = subprocess.run(
            [sys.executable, "-c", code],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PROBE_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"making a user namespace does not end; {WAYS_OUT}"
    if probe.returncode == 0:
        return None
    said = (probe.stderr.strip().splitlines() or ["no reason given"])[-1].removeprefix("OSError: ")
    return f"{_cause() or f'user namespaces cannot be made here ({said})'}; or {WAYS_OUT}"


def ensure_privileges() -> None:
    """Return if this process may make namespaces; else run `emu` again, with the same arguments, where it may.

    Raises MachineError if that cannot be had.
    """
    if is_privileged():
        return
    reason = available()
    if reason is not None:
        missing = f" (this process lacks {', '.join(missing_rights())})" if os.geteuid() == 0 else ""
        raise MachineError(f"network namespaces need root or a user namespace{missing}: {reason}")
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # closed by whoever started us
            with suppress(OSError):
                stream.flush()
    # Not `-m emu`: that would look for it in the current folder first.
    code = f"import sys; sys.path[:] = {sys.path!r}\nfrom emu.start import main; sys.exit(main())"
    try:
        enter()
    except OSError as error:
        raise MachineError(f"no user namespace ({error.strerror}): {WAYS_OUT}") from None
    # A signal that comes while the interpreter starts would end it with a traceback; emu.start lets it through.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    execute_or_exit([sys.executable, "-c", code, *sys.argv[1:]])


def enter() -> None:
    """Move this process, which has one thread, into new user, mount and network namespaces, as their root.

    One that has all rights already, but in a user namespace, needs no further one. Raises OSError.
    """
    user, group = os.geteuid(), os.getegid()
    new_user = CLONE_NEWUSER if missing_rights() else 0
    _checked(_LIBC.unshare(new_user | CLONE_NEWNS | CLONE_NEWNET), "unshare")
    if new_user:
        _write("/proc/self/setgroups", "deny")  # without it the group map may not be written: user_namespaces(7)
        _write("/proc/self/uid_map", f"0 {user} 1")
        _write("/proc/self/gid_map", f"0 {group} 1")
    _checked(_LIBC.mount(b"none", b"/", None, ctypes.c_ulong(MS_REC_PRIVATE), None), "making mounts private")
    # /sys still shows the interfaces of the namespace we came from.
    _checked(_LIBC.mount(b"sysfs", b"/sys", b"sysfs", ctypes.c_ulong(0), None), "mounting /sys")


def main(command: Sequence[str]) -> None:
    """Run the command, inside namespaces of its own if we need them and can have them; else say why and just run it."""
    if not command:
        print("usage: python -m emu.lab.rootless COMMAND...", file=sys.stderr)
        raise SystemExit(2)
    if not is_privileged():
        reason = available()
        if reason is None:
            enter()
        else:
            print(f"no namespaces: {reason}", file=sys.stderr, flush=True)
    execute_or_exit(command)


def execute_or_exit(command: Sequence[str]) -> None:
    """Run the command in place of this process; exit code 3 if there is none of that name."""
    try:
        os.execvp(command[0], list(command))
    except OSError as error:
        print(f"{command[0]} does not run: {error.strerror}", file=sys.stderr)
        raise SystemExit(MachineError.exit_code) from None


def _cause() -> str | None:
    """The setting that forbids user namespaces to this user, and how to allow them."""
    for setting, forbidding, remedy in SETTINGS:
        try:
            value = (SETTINGS_FOLDER / setting).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if value == forbidding:
            return f"{setting.replace('/', '.')} is {value}, which forbids it: {remedy}"
    return None


def _write(path: str, text: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


def _checked(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


if __name__ == "__main__":
    main(sys.argv[1:])
