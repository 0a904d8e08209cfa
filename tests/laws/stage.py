"""A scenario built in memory, its links watched frame by frame; if asked, its books are held after every event."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from unittest.mock import patch

from emu.devices.credits import LinkCredits
from emu.devices.egress import EgressPort
from emu.devices.port import Port
from emu.errors import InvariantBroken
from emu.fabric import Fabric
from emu.frame import ControlFrame, Frame, Message
from emu.framing.control import Control
from emu.run import books, conservation
from emu.run.assembly import Assembly
from emu.scenario.load import parse

Told = tuple[int, Control]
"""When the first bit of a link's own frame left, in picoseconds, and what it said."""


class Stage:
    """One run. `data`, `others` and `told`: by link, when frames with data, without, and the link's own left."""

    def __init__(self, text: str, *settings: str) -> None:
        self.messages: list[Message] = []
        self.assembly = Assembly(parse(text, "law.yaml", settings), self.messages.append)
        self.data: dict[str, list[int]] = defaultdict(list)
        self.others: dict[str, list[int]] = defaultdict(list)
        self.told: dict[str, list[Told]] = defaultdict(list)
        self.assembly.join(None)
        self.assembly.taps.frame_sent = self._sent

    @property
    def fabric(self) -> Fabric:
        """Its devices."""
        return self.assembly.fabric

    @property
    def now_ps(self) -> int:
        """The clock."""
        return self.assembly.engine.now_ps

    def port(self, link: str) -> Port:
        """The sender of one direction of a link."""
        return self.fabric.links[link][1]

    def credits(self, link: str) -> LinkCredits:
        """The end with credits beside that sender."""
        flow = self.port(link).flow
        assert isinstance(flow, LinkCredits)
        return flow

    def run(self, until_ps: int | None = None, *, each_event: Callable[[Stage], object] | None = None) -> Stage:
        """To the end of the traffic, or until then; `each_event` is called after every event, and at the end."""
        engine = self.assembly.engine
        with closing(engine):
            if each_event is None:
                engine.run(until_ps)
            else:
                engine.on_progress = lambda: each_event(self)
                with patch("emu.engine.LOOK_EVERY_EVENTS", 1):
                    engine.run(until_ps)
        conservation.check(self.assembly)
        return self

    def _sent(self, when_ps: int, link: str, frame: Frame) -> None:
        if isinstance(frame, ControlFrame):
            self.told[link].append((when_ps, frame.control))
        else:
            (self.data if frame.carries_data else self.others)[link].append(when_ps)


def hold_credits(stage: Stage) -> None:
    """Both ends of every link add up, on every VL. Raises InvariantBroken."""
    for pair in stage.fabric.attachments.pairs:
        for end in pair:
            assert isinstance(end, LinkCredits)
            for vl in range(len(end.senders)):
                end.check(vl)


def hold_buffers(stage: Stage) -> None:
    """What credits say is in switches' buffers waits there, or is on its way out. Raises InvariantBroken."""
    held: Counter[tuple[int, int]] = Counter()  # blocks, by ingress and VL
    for frame, ingress in _inside(stage):
        held[id(ingress), frame.envelope.lane] += ingress.blocks_of(frame)
    for pair in stage.fabric.attachments.pairs:
        for end in pair:
            assert isinstance(end, LinkCredits)
            for vl, receiver in enumerate(end.receivers):
                if receiver.occupied != held[id(end), vl]:
                    raise InvariantBroken(f"{receiver.occupied} blocks booked, {held[id(end), vl]} there")


def _inside(stage: Stage) -> Iterator[tuple[Frame, LinkCredits]]:
    """Frames that switches hold, and in which ingress's buffer each is."""
    ports = [port for switch in stage.fabric.switches.values() for port in switch.ports.values()]
    for *_, action, frame in stage.assembly.engine.queue:
        if getattr(action, "__func__", None) is EgressPort.enqueue:
            yield frame, frame.ingress  # put off, as it leaves faster than it came
    for port in ports:
        for frame in port.queued():
            yield frame, frame.ingress
        if port.leaving is not None:
            assert isinstance(port._leaving, LinkCredits)
            yield port.leaving, port._leaving


def hold_memory(stage: Stage) -> None:
    """Every switch's memory adds up. Raises InvariantBroken."""
    books.check(stage.fabric, stage.assembly.engine)


class Thief:
    """Stands where a port hands frames to its wire, and loses those that it was told to."""

    def __init__(self, port: Port, takes: Callable[[Frame], bool]) -> None:
        self.taken: list[Frame] = []
        self._takes = takes
        port._send = self._pass_on

    def rest(self) -> None:
        """Lose nothing more."""
        self._takes = lambda _: False

    def _pass_on(self, frame: Frame) -> bool:
        if self._takes(frame):
            self.taken.append(frame)
            return False
        return True
