"""What a NIC received on its way into memory: across the bus, and by way of host memory without GPU-direct."""

from __future__ import annotations

from collections.abc import Callable

from emu.devices.nic import Nic
from emu.engine import Engine
from emu.frame import Buffer, Frame, Message
from emu.host.bounce import Bounces
from emu.host.dma import DmaEngine
from emu.host.tree import Tree
from emu.opcodes import ATOMIC_ACKNOWLEDGE
from emu.parts import COPY_OUT, HOST, HOST_PLACE, LAND, STALL, unpack
from emu.pcie.tlp import Tlp


class Landing:
    """The note of a message's last packets: it is there when the last of their bytes is."""

    __slots__ = ("_end", "_message", "_parts", "_place", "_taken_ps")

    def __init__(self, place: LandingPlace, message: Message, parts: int, end: int, taken_ps: int) -> None:
        self._place = place
        self._message = message
        self._parts = parts  # its age's when the NIC had taken it
        self._end = end  # the address behind its last byte
        self._taken_ps = taken_ps

    def arrived(self, tlp: Tlp) -> None:
        """One of them is in memory."""
        if tlp.address + tlp.length == self._end:
            self._place.landed(self._message, self._parts, self._taken_ps)


class Copied:
    """The note of a copy from host memory to the GPU's."""

    __slots__ = ("_done", "_end")

    def __init__(self, end: int, done: Callable[[], object]) -> None:
        self._end = end
        self._done = done

    def arrived(self, tlp: Tlp) -> None:
        """A part of it is there."""
        if tlp.address + tlp.length == self._end:
            self._done()


class LandingPlace:
    """One host's. Bytes of a message are visible once all of them lie in the GPU's memory."""

    __slots__ = ("_bounces", "_copy_ps", "_cpu", "_engine", "_pieces", "_nic", "_nic_dma")

    def __init__(self, engine: Engine, nic: Nic, tree: Tree, bounces: Bounces | None, copy_ps: int) -> None:
        self._engine = engine
        self._nic = nic
        self._nic_dma: DmaEngine = tree.nic
        self._cpu: DmaEngine = tree.cpu
        self._bounces = bounces  # None: straight into the GPU's memory
        self._copy_ps = copy_ps
        self._pieces: dict[Message, list[tuple[int, Buffer]]] = {}  # of messages that have begun: what to copy on

    def land(self, address: int, frame: Frame, *, ends: bool) -> None:
        """The frame's payload for that address (-1: none of it); with `ends` its message is whole."""
        message, payload = frame.message, frame.payload
        if frame.opcode == ATOMIC_ACKNOWLEDGE and frame.extension:
            payload = frame.extension[0].to_bytes(8, "little")
        length = len(payload) if address >= 0 else 0
        place, note = address, None
        if self._bounces is not None and length:
            place = self._bounces.address_of(self._nic.memory, address, length)
            if message is not None:
                self._pieces.setdefault(message, []).append((address, payload))
        if ends and message is not None and message.last_bit_ps < 0:  # else a copy of an unreliable one
            now_ps = self._engine.now_ps
            message.last_bit_ps = now_ps - self._nic.timing.receive_ps
            self._engine.hold()  # a requester may see its CQE before the data can be seen here
            if not length:
                self.landed(message, frame.parts, now_ps)
                return
            note = Landing(self, message, frame.parts, place + length, now_ps)
        if length:
            self._nic_dma.write(place, payload, note)

    def landed(self, message: Message, parts: int, taken_ps: int) -> None:
        """All of it is where the NIC may write."""
        now_ps = self._engine.now_ps
        parts += (now_ps - taken_ps) << HOST
        if message.steps is not None:
            message.steps[LAND] = now_ps - taken_ps
            if message.steps[STALL]:  # of it counts what was not made up for while its frames waited for others
                message.steps[STALL] = unpack(parts)[HOST_PLACE] - sum(message.steps[:STALL]) - message.steps[LAND]
        pieces = self._pieces.pop(message, None)
        if not pieces:
            self._deliver(message, parts)
            return
        self._engine.at(now_ps + self._copy_ps, self._copy, (message, parts, pieces, now_ps))

    def _copy(self, copy: tuple[Message, int, list[tuple[int, Buffer]], int]) -> None:
        message, parts, pieces, since_ps = copy

        def done() -> None:
            took_ps = self._engine.now_ps - since_ps
            if message.steps is not None:
                message.steps[COPY_OUT] = took_ps
            self._deliver(message, parts + (took_ps << HOST))

        for number, (address, payload) in enumerate(pieces):
            is_last = number == len(pieces) - 1
            self._cpu.write(address, payload, Copied(address + len(payload), done) if is_last else None)

    def _deliver(self, message: Message, parts: int) -> None:
        message.parts = parts
        self._nic.deliver(message)
