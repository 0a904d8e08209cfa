"""Who a run belongs to: a process told apart from all others that had, or will have, its number."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Owner:
    """A process by number, start (clock ticks since boot) and the PID namespace in which the number counts."""

    pid: int
    start_ticks: int
    pid_namespace: int

    @classmethod
    def this_process(cls) -> Owner:
        """The process that asks."""
        return cls(os.getpid(), _start_ticks("self"), _own_pid_namespace())

    @classmethod
    def parse(cls, text: str) -> Owner | None:
        """The owner that `str` wrote, or None if it did not."""
        fields = text.split(":")
        if len(fields) != 3 or not all(field.isdecimal() for field in fields):
            return None
        return cls(*map(int, fields))

    def __str__(self) -> str:
        return f"{self.pid}:{self.start_ticks}:{self.pid_namespace}"

    @property
    def is_of_this_namespace(self) -> bool:
        """Whether its number counts here."""
        return self.pid_namespace == _own_pid_namespace()

    @property
    def is_dead(self) -> bool:
        """Whether it surely ended; a process of another PID namespace cannot be seen, so it never counts as dead."""
        if not self.is_of_this_namespace:
            return False
        try:
            return _start_ticks(self.pid) != self.start_ticks
        except FileNotFoundError:
            return True
        except OSError:  # hidden from us: someone else's
            return False


def _own_pid_namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino


def _start_ticks(pid: int | str) -> int:
    """Field 22 of proc(5)'s stat; the command's name before it may hold spaces and brackets.

    Raises FileNotFoundError if there is no such process, or only its exit status is left of it.
    """
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except ProcessLookupError:
        raise FileNotFoundError(pid) from None
    if fields[0] in "ZX":
        raise FileNotFoundError(pid)
    return int(fields[19])
