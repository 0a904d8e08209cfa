"""A wire over a socket pair for every test that asks for one."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from emu.wire import veth
from tests.wire.pair import Pair


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    """Nothing is sent yet, and nothing was dropped for want of room."""
    monkeypatch.setattr(veth, "dropped_frames", lambda _: 0)
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with near, far:
        near.setblocking(False)
        far.setblocking(False)
        yield Pair(near, far)
