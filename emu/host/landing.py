"""What a NIC received on its way into memory: across the bus, and by way of host memory without GPU-direct."""

from __future__ import annotations

from collections.abc import Callable

from emu.devices.nic import Nic
from emu.engine import Engine
from emu.errors import InvariantBroken
from emu.frame import Buffer, Frame, Message
from emu.host.bounce import Bounces
from emu.host.dma import DmaEngine
from emu.host.tree import Tree
from emu.parts import COPY_OUT, HOST, HOST_PLACE, LAND, STALL, unpack
from emu.pcie.tlp import Tlp
from emu.transport.work import Places


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

    __slots__ = (
        "_bounces",
        "_copy_ps",
        "_cpu",
        "_engine",
        "_memory",
        "_nic",
        "_nic_dma",
        "_pieces",
        "_watched",
        "ended",
    )

    def __init__(self, engine: Engine, nic: Nic, tree: Tree, bounces: Bounces | None, copy_ps: int) -> None:
        self._engine = engine
        self._nic = nic
        self._memory = tree.gpu_memory.space
        self._nic_dma: DmaEngine = tree.nic
        self._cpu: DmaEngine = tree.cpu
        self._bounces = bounces  # None: straight into the GPU's memory
        self._copy_ps = copy_ps
        self._pieces: dict[Message, list[Places]] = {}  # of messages that have begun: what to copy on
        self._watched: dict[Message, Callable[[], object]] = {}
        self.ended: Message | None = None  # with the last frame, if that was a message's last

    def land(self, places: Places, frame: Frame, *, ends: bool) -> None:
        """The frame's payload for those places; with `ends` its message is whole.

        The transport's machine has put it there already. So what crosses the bus is what is there: it changes nothing,
        not even where something newer has come meanwhile.
        """
        message, now_ps = frame.message, self._engine.now_ps
        is_new = message is not None and message.last_bit_ps < 0  # else a copy of an unreliable one
        if self._bounces is not None and message is not None and is_new and places:
            self._pieces.setdefault(message, []).append(places)
        ends = ends and is_new
        self.ended = message if ends else None
        if message is not None and ends:
            message.last_bit_ps = now_ps - self._nic.timing.receive_ps
            self._engine.hold()  # a requester may see its CQE before the data can be seen here
            if not places:
                self.landed(message, frame.parts, now_ps)
        for number, (address, length) in enumerate(places):
            place, note = address, None
            if self._bounces is not None:
                place = self._bounces.address_of(self._nic.memory, address, length)
            if message is not None and ends and number == len(places) - 1:
                note = Landing(self, message, frame.parts, place + length, now_ps)
            self._nic_dma.write(place, self._bytes_at(address, length), note)

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

    def _bytes_at(self, address: int, length: int) -> Buffer:
        view = self._memory.view(address, length)
        if view is None:
            raise InvariantBroken(f"{length} bytes landed at {address:#x}, where nothing is registered")
        return view

    def _copy(self, copy: tuple[Message, int, list[Places], int]) -> None:
        message, parts, frames, since_ps = copy
        pieces = [piece for places in frames for piece in places]

        def done() -> None:
            took_ps = self._engine.now_ps - since_ps
            if message.steps is not None:
                message.steps[COPY_OUT] = took_ps
            self._deliver(message, parts + (took_ps << HOST))

        for number, (address, length) in enumerate(pieces):
            is_last = number == len(pieces) - 1
            data = self._bytes_at(address, length)
            self._cpu.write(address, data, Copied(address + length, done) if is_last else None)

    def _deliver(self, message: Message, parts: int) -> None:
        message.parts = parts
        self._nic.deliver(message)
        action = self._watched.pop(message, None)
        if action is not None:
            action()

    def when_delivered(self, message: Message, action: Callable[[], object]) -> None:
        """Call it once the message, which has come, is visible."""
        self._watched[message] = action
