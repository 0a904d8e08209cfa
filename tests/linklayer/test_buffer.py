"""The switch's memory: what is set aside, and books that must agree."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from emu.errors import InvariantBroken, ScenarioError
from emu.linklayer.buffer import SwitchMemory, check_memory


@dataclass
class Tenant:
    """Something with bytes in the memory."""

    set_aside_bytes: int
    held_bytes: int
    shared_held_bytes: int
    name: str = "a"


def memory(shared: int = 900, used: int = 50) -> SwitchMemory:
    made = SwitchMemory(1000)
    made.set_aside(1000 - shared, "a")
    made.used_bytes = used
    return made


def test_parts_are_set_aside_until_none_is_left() -> None:
    made = SwitchMemory(1000)
    made.set_aside(600, "a")
    assert made.free_bytes == 400
    with pytest.raises(ScenarioError, match=r"b: 401 bytes .* 400 of 1000 are left"):
        made.set_aside(401, "b")
    made.set_aside(400, "b")
    assert made.free_bytes == 0


@pytest.mark.parametrize("total", [0, -1])
def test_a_buffer_holds_something(total: int) -> None:
    with pytest.raises(ScenarioError, match=f"a buffer of {total} bytes"):
        SwitchMemory(total)


def test_nothing_is_set_aside_under_load() -> None:
    with pytest.raises(InvariantBroken, match="while 50 bytes of it are held"):
        memory().set_aside(1, "b")


def test_books_that_agree() -> None:
    check_memory(memory(), [Tenant(100, 150, 50)], 150)
    check_memory(memory(), [Tenant(60, 70, 20), Tenant(40, 30, 30)], 100)


@pytest.mark.parametrize(
    ("made", "tenant", "queued", "message"),
    [
        (memory(), Tenant(99, 150, 50), 150, "900 shared"),
        (memory(used=51), Tenant(100, 150, 50), 150, "50 shared bytes held, 51 of 900"),
        (memory(used=901), Tenant(100, 1001, 901), 1001, "901 shared bytes held"),
        (memory(), Tenant(100, 150, 50), 149, "150 bytes booked, 149 queued"),
        (memory(), Tenant(100, 151, 50), 151, "a holds 101 of its own 100"),
        (memory(), Tenant(100, 49, 50), 49, "a holds -1"),
    ],
)
def test_books_that_do_not(made: SwitchMemory, tenant: Tenant, queued: int, message: str) -> None:
    with pytest.raises(InvariantBroken, match=message):
        check_memory(made, [tenant], queued)
