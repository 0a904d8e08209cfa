"""Devices on a bench: one port or switch at a time, frames made by hand, arrivals noted."""

from __future__ import annotations

from emu.addresses import address_of
from emu.devices.egress import EgressPort
from emu.devices.passage import Passage
from emu.devices.port import FarEnd
from emu.engine import Engine
from emu.frame import Envelope, Frame, Message
from emu.framing.native import NativeFraming
from emu.opcodes import ACKNOWLEDGE, WRITE_MIDDLE
from emu.taps import Taps

GBPS = 10**9
FRAMING = NativeFraming(8)


def envelope(to: int = 1, qp: int = 0x20) -> Envelope:
    """Headers from host 0 to host `to`."""
    return FRAMING.envelope(address_of("h0", 0), address_of(f"h{to}", to), source_qp=0x11, destination_qp=qp)


def data_frame(message: Message, payload: int = 4096, *, to: int = 1, psn: int = 0) -> Frame:
    """A data frame of some message, as if it had left its NIC already."""
    frame = Frame(envelope(to), WRITE_MIDDLE, psn, bytes(payload), message=message)
    frame.hop = 1
    message.hops = message.hops or [Passage()]
    return frame


def control_frame() -> Frame:
    """An acknowledgement."""
    return Frame(envelope(), ACKNOWLEDGE, 0, aeth=(0x1F, 1))


def message(number: int = 0) -> Message:
    """A message posted at time 0."""
    return Message(None, number, 4096, 0)


class Sink:
    """A far end that notes what it got and when."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.arrived: list[tuple[int, Frame]] = []

    def deliver(self, frame: Frame) -> None:
        """Note it."""
        self.arrived.append((self.engine.now_ps, frame))


def egress(
    engine: Engine, *, rate_gbps: int = 400, propagation_ps: int = 25_000, hop_ps: int = 260_000, stores: bool = False
) -> tuple[EgressPort, Sink]:
    """A switch's port joined to a sink that is a switch."""
    sink = Sink(engine)
    port = EgressPort(engine, "a-b", rate_gbps * GBPS, Taps())
    port.join(FarEnd(sink.deliver, stores, hop_ps, 0), propagation_ps, None)
    return port, sink
