"""The books are checked, and a wrong entry is noticed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from emu.errors import InvariantBroken
from emu.fabric import Fabric
from emu.run import conservation
from emu.run.assembly import Assembly
from emu.scenario.load import parse

TEXT = """
name: books
fabric: {profile: roce, topology: {kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 2}}
traffic: [{kind: all_to_all, size: 64KiB}]
"""


def ran(until_ps: int | None = None) -> Assembly:
    """A small all-to-all, ended at `until_ps` or when it is done."""
    assembly = Assembly(parse(TEXT, "books.yaml", ()))
    assembly.join(None)
    assembly.engine.run(until_ps)
    return assembly


def test_all_that_was_sent_is_delivered_when_the_run_is_over() -> None:
    count = conservation.check(ran())
    assert count.sent == count.delivered > 12 * 16
    assert (count.lost_on_wire, count.dropped_in_switches, count.on_the_way) == (0, 0, 0)


@pytest.mark.parametrize("until_ps", [0, 400_000, 1_000_000, 2_345_678, 5_000_000])
def test_the_books_agree_at_any_instant(until_ps: int) -> None:
    count = conservation.check(ran(until_ps))
    assert count.sent == count.delivered + count.on_the_way
    assert until_ps == 0 or count.on_the_way


def lose_in_a_switch(fabric: Fabric) -> None:
    fabric.switches["spine0"].received += 1
    fabric.switches["leaf0"].received -= 1


def lose_a_frame(fabric: Fabric) -> None:
    fabric.nics["h0"].received -= 1


def lose_a_byte(fabric: Fabric) -> None:
    fabric.nics["h3"].received_bytes -= 1


@pytest.mark.parametrize("spoil", [lose_in_a_switch, lose_a_frame, lose_a_byte])
def test_a_wrong_entry_is_an_invariant_broken(spoil: Callable[[Fabric], None]) -> None:
    assembly = ran()
    spoil(assembly.fabric)
    with pytest.raises(InvariantBroken):
        conservation.check(assembly)
