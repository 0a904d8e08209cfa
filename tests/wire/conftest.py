"""A wire over a socket pair for every test that asks for one."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from emu.wire import patience, veth
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


@pytest.fixture
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is lost for good costs hardly any time."""
    monkeypatch.setattr(patience, "PATIENCE_S", 0.02)
    monkeypatch.setattr(patience, "SHORT_PATIENCE_S", 0.002)
    monkeypatch.setattr(patience, "IN_VAIN_S", 0.5)
