"""What a queue pair needs of the protection domain and the device that it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from emu.addresses import Address
from emu.devices.nic import Nic
from emu.engine import Engine
from emu.frame import Envelope
from emu.taps import Taps
from emu.transport.memory import MemoryTable
from emu.transport.received import ResponderConfig
from emu.transport.requester_config import RequesterConfig
from emu.transport.work import Payload, Scatter
from emu.verbs.wr import SGE

EnvelopeFactory = Callable[[Address, Address, int, int, int | None], tuple[Envelope, Envelope | None]]
"""Source, destination, source QP number, destination QP number, priority (None: the fabric's): the headers that their
frames share, and those of their congestion notifications, if there are such."""


class Device(Protocol):
    """An opened device."""

    engine: Engine
    nic: Nic
    envelopes: EnvelopeFactory
    config: RequesterConfig
    responder: ResponderConfig
    taps: Taps

    @property
    def name(self) -> str: ...
    @property
    def address(self) -> Address: ...


class Domain(Protocol):
    """A protection domain."""

    @property
    def context(self) -> Device: ...
    @property
    def memory(self) -> MemoryTable: ...
    def gather(self, places: Sequence[SGE]) -> Payload: ...
    def scatter(self, places: Sequence[SGE]) -> Scatter: ...
