"""A switch's packet memory: parts set aside for each ingress account, and the rest shared, first come first served.

How much of the shared part one account may take is the account's own dynamic threshold (pfc.py)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from emu.errors import InvariantBroken, ScenarioError


class Tenant(Protocol):
    """What holds bytes in the memory, as the books see it."""

    @property
    def name(self) -> str: ...
    @property
    def set_aside_bytes(self) -> int: ...
    @property
    def held_bytes(self) -> int: ...
    @property
    def shared_held_bytes(self) -> int: ...


class SwitchMemory:
    """`total_bytes` of memory; `shared_bytes` of it are nobody's own, and `used_bytes` of those are taken."""

    __slots__ = ("shared_bytes", "total_bytes", "used_bytes")

    def __init__(self, total_bytes: int) -> None:
        if total_bytes <= 0:
            raise ScenarioError(f"a switch with a buffer of {total_bytes} bytes holds no frame")
        self.total_bytes = total_bytes
        self.shared_bytes = total_bytes
        self.used_bytes = 0

    @property
    def free_bytes(self) -> int:
        """What of the shared part nobody has taken."""
        return self.shared_bytes - self.used_bytes

    def set_aside(self, size_bytes: int, for_whom: str) -> None:
        """Keep a part for one tenant alone; while nothing is held. Raises ScenarioError if there is not so much."""
        if self.used_bytes:
            raise InvariantBroken(f"{for_whom}: memory is set aside while {self.used_bytes} bytes of it are held")
        if size_bytes > self.shared_bytes:
            raise ScenarioError(
                f"{for_whom}: {size_bytes} bytes of headroom and reserved memory do not fit the buffer:"
                f" {self.shared_bytes} of {self.total_bytes} are left"
            )
        self.shared_bytes -= size_bytes


def check_memory(memory: SwitchMemory, tenants: Iterable[Tenant], queued_bytes: int) -> None:
    """Raises InvariantBroken unless the books agree with each other and with what the queues hold."""
    tenants = tuple(tenants)
    set_aside = sum(tenant.set_aside_bytes for tenant in tenants)
    taken = sum(tenant.shared_held_bytes for tenant in tenants)
    held = sum(tenant.held_bytes for tenant in tenants)
    if memory.shared_bytes + set_aside != memory.total_bytes:
        raise InvariantBroken(f"memory: {memory.shared_bytes} shared + {set_aside} set aside != {memory.total_bytes}")
    if taken != memory.used_bytes or not 0 <= taken <= memory.shared_bytes:
        raise InvariantBroken(f"memory: {taken} shared bytes held, {memory.used_bytes} of {memory.shared_bytes} booked")
    if held != queued_bytes:
        raise InvariantBroken(f"memory: {held} bytes booked, {queued_bytes} queued")
    for tenant in tenants:
        own = tenant.held_bytes - tenant.shared_held_bytes
        if not 0 <= own <= tenant.set_aside_bytes:
            raise InvariantBroken(f"memory: {tenant.name} holds {own} of its own {tenant.set_aside_bytes} bytes")
