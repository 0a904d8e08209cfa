"""Numbers as programs give them: within the width that the wire has for them, and of the enumeration they belong to."""

from __future__ import annotations

from enum import Enum, IntFlag
from typing import TypeVar

from emu.errors import VerbsError

Choice = TypeVar("Choice", bound=Enum)
Flags = TypeVar("Flags", bound=IntFlag)


def within(name: str, value: int, bits: int) -> None:
    """Raises VerbsError where it is no unsigned number of so many bits."""
    if not isinstance(value, int) or not 0 <= value < 1 << bits:
        text = f"{value:#x}" if isinstance(value, int) else repr(value)
        raise VerbsError(f"{name} {text}: an unsigned number of {bits} bits")


def coerced(kind: type[Choice], value: object, what: str) -> Choice:
    """One of an enumeration, also given as its number. Raises VerbsError for one that there is not."""
    if type(value) is kind:
        return value
    try:
        return kind(value)
    except ValueError:
        raise VerbsError(f"{value!r} is not {what}") from None


def flags(kind: type[Flags], value: int, what: str) -> Flags:
    """Flags, also given as a number. Raises VerbsError for some that there are not."""
    known = 0
    for flag in kind:
        known |= flag.value  # the number: the complement of flags is other flags
    if not isinstance(value, int) or value & ~known:
        raise VerbsError(f"{value!r} has {what} that there are not")
    return kind(value)
