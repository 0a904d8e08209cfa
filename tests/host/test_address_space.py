"""Bytes at addresses: what is mapped is there, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.errors import ScenarioError
from emu.host.address_space import AddressSpace

BASE = 1 << 40


def test_a_mapped_buffer_is_the_buffer_itself() -> None:
    space, buffer = AddressSpace(0, 0), bytearray(b"abcdef")
    space.map(BASE, buffer)
    space.map(BASE + 100, memoryview(buffer)[2:4])
    assert space.write(BASE + 1, b"XYZ")
    assert buffer == b"aXYZef"
    assert space.read(BASE + 100, 2) == b"YZ"
    view = space.view(BASE, 2)
    assert view is not None
    view[:] = b"__"
    assert space.read(BASE, 6) == b"__YZef"


def test_what_is_read_does_not_change_later() -> None:
    space = AddressSpace(BASE, 4096)
    address = space.allocate(4)
    before = space.read(address, 4)
    space.write(address, b"late")
    assert before == bytes(4)


@pytest.mark.parametrize("address", [0, BASE - 1, BASE - 8, BASE + 5, BASE + 8, BASE + 16, BASE + 1000])
def test_an_access_outside_is_reported_and_changes_nothing(address: int) -> None:
    space, buffer = AddressSpace(0, 0), bytearray(8)
    space.map(BASE, buffer)
    space.map(BASE + 24, bytearray(8))
    for _ in range(2):  # the second time after the buffer was found
        assert space.read(address, 4) is None
        assert space.view(address, 4) is None
        assert not space.write(address, b"abcd")
        assert space.read(BASE + 4, 4) == bytes(4)
    assert buffer == bytes(8)


def test_neighbours_are_two_buffers() -> None:
    space = AddressSpace(0, 0)
    space.map(BASE, bytearray(8))
    space.map(BASE + 8, bytearray(8))
    assert space.read(BASE + 4, 8) is None
    assert space.read(BASE + 8, 8) == bytes(8)


@pytest.mark.parametrize("start", [BASE - 1, BASE, BASE + 7, BASE + 17, BASE + 23])
def test_buffers_do_not_overlap(start: int) -> None:
    space = AddressSpace(0, 0)
    space.map(BASE, bytearray(8))
    space.map(BASE + 20, bytearray(8))
    with pytest.raises(ScenarioError):
        space.map(start, bytearray(4))


def test_the_window_is_given_out_once() -> None:
    space = AddressSpace(BASE + 1, 200)
    assert space.reserve(10) == BASE + 64
    assert space.read(BASE + 64, 1) is None  # reserved, not mapped
    assert space.allocate(1) == BASE + 128
    assert space.allocate(4, align_bytes=4) == BASE + 132
    with pytest.raises(ScenarioError, match="9 are left"):
        space.allocate(64)
    assert space.allocate(9) == BASE + 192


@given(st.data())
def test_as_a_dict_of_bytes_has_it(data: st.DataObject) -> None:
    space, held, owner = AddressSpace(0, 0), dict[int, int](), dict[int, int]()
    start = BASE
    for number in range(data.draw(st.integers(1, 4), "buffers")):
        start += data.draw(st.integers(0, 3), "gap")
        length = data.draw(st.integers(1, 6), "length")
        space.map(start, bytearray(length))
        held |= dict.fromkeys(range(start, start + length), 0)
        owner |= dict.fromkeys(range(start, start + length), number)
        start += length
    for step in range(data.draw(st.integers(1, 20), "accesses")):
        address, length = BASE + data.draw(st.integers(-2, start - BASE + 2)), data.draw(st.integers(1, 5))
        there = range(address, address + length)
        allowed = len({owner.get(at) for at in there}) == 1 and address in owner
        if data.draw(st.booleans(), "write"):
            assert space.write(address, bytes([step + 1]) * length) is allowed
            if allowed:
                held |= dict.fromkeys(there, step + 1)
        else:
            assert space.read(address, length) == (bytes(held[at] for at in there) if allowed else None)
