"""Injection at the far end of one direction of a link, between its wire and the node: loss, corruption, copies, delay.

A frame's bytes have crossed the wire by then. What is dropped is lost before the link's flow control counts it; what is
copied, delayed or overtaken waits behind that, as part of what the node's buffer holds: lossless stays lossless.
"""

from __future__ import annotations

import copy
from collections import Counter
from heapq import heappush

from emu.devices.ingress import Forwarder, Ingress
from emu.devices.line import Line
from emu.devices.nic import Nic
from emu.devices.switch import Switch
from emu.engine import URGENT, Engine, Event
from emu.frame import ControlFrame, Frame
from emu.parts import PROPAGATION
from emu.units import US
from emu.wire.inject import EFFECTS, Dice, Fate

REORDER_LIMIT_PS = 10 * US
"""How long a frame waits for a successor to overtake it, which may never come."""
ICRC_BYTES = 4


class Injection:
    """Stands in the way of what comes out of one line. `counts`: what was done, by effect."""

    __slots__ = (
        "_deliver",
        "_dice",
        "_engine",
        "_fates",
        "_hear",
        "_held",
        "_ingress",
        "_late",
        "_late_until_ps",
        "_line",
        "_node",
        "copied_bytes",
        "copies",
        "counts",
        "forwarder",
    )

    def __init__(self, engine: Engine, line: Line, dice: Dice, node: Switch | Nic, ingress: Ingress) -> None:
        """From now on, for what is sent from now on. The line is joined already."""
        self._engine, self._line, self._dice, self._ingress = engine, line, dice, ingress
        self._node = node
        self._fates: dict[Frame, Fate] = {}  # of frames on their way from the wire to the node
        self._held: dict[Frame, tuple[int, Event]] = {}  # to be overtaken: since when, and the end of their patience
        self._late: dict[ControlFrame, Fate] = {}  # of the link's own, to be heard late
        self._late_until_ps = 0  # when the last of them is heard
        self.forwarder: Forwarder | None = node if isinstance(node, Switch) else None
        self.counts: Counter[str] = Counter(dict.fromkeys(EFFECTS, 0))
        self.copies = 0  # frames that came in without having been sent; none of the link's own
        self.copied_bytes = 0
        self._hear = line.hear
        self._deliver = line.deliver if ingress.interpose(self) else self.receive
        line.deliver, line.hear = self.take, self.hear

    def take(self, frame: Frame) -> None:
        """A frame comes out of the wire."""
        fate = self._dice.cast(frame)
        if fate is not None:
            if fate.drop:
                self.counts["drop"] += 1
                self._line.lose(frame)
                return
            if fate.corrupt:
                self.counts["corrupt"] += 1
                _spoil(frame, fate.bit)
            if fate.copies or fate.reorder or fate.delay_ps:
                self._fates[frame] = fate
        self._deliver(frame)

    def receive(self, frame: Frame) -> None:
        """A frame comes to the node: from the link's flow control, or from a delay."""
        fate = self._fates.get(frame)
        if fate is not None and fate.delay_ps:
            self.counts["delay"] += 1
            delay_ps, fate.delay_ps = fate.delay_ps, 0
            frame.parts += delay_ps << PROPAGATION
            self._engine.at(self._engine.now_ps + delay_ps, self.receive, frame)
        elif fate is not None and fate.reorder:
            self.counts["reorder"] += 1
            self._hold(frame)
        else:
            self._pass_on(frame)
            while self._held:
                overtaken, (_, event) = next(iter(self._held.items()))
                queue = self._engine.queue  # an event of the same place and time keeps the heap one
                queue[queue.index(event)] = (*event[:2], _nothing, None)
                self.overdue(overtaken)

    def refuse(self, frame: Frame, *, lossless: bool, place: str) -> None:
        """There was no room for a frame at the switch."""
        self._fates.pop(frame, None)
        if self.forwarder is not None:
            self.forwarder.refuse(frame, lossless=lossless, place=place)

    def overdue(self, frame: Frame) -> None:
        """A frame that was to be overtaken waits no longer."""
        since_ps, _ = self._held.pop(frame)
        frame.parts += self._engine.now_ps - since_ps << PROPAGATION
        self._pass_on(frame)

    def hear(self, frame: ControlFrame) -> None:
        """The last bit of a frame of the link's own is in. What was told late is not overtaken: all behind it waits."""
        fate = self._dice.cast(frame) or Fate()
        if fate.drop or fate.corrupt:
            self.counts["drop" if fate.drop else "corrupt"] += 1
            self._line.lose_control(frame)
        elif fate.delay_ps or self._late:
            self.counts["delay"] += fate.delay_ps > 0
            self._late_until_ps = max(self._late_until_ps, self._engine.now_ps + fate.delay_ps)
            self._late[frame] = fate
            self._ingress.on_counts(frame.control)
            engine = self._engine
            heappush(engine.queue, (self._late_until_ps, engine.tick() + URGENT, self._hear_late, frame))
        else:
            self._hear(frame)
            for _ in range(fate.copies):
                self.counts["duplicate"] += 1
                self._ingress.on_control(frame.control)

    def _hear_late(self, frame: ControlFrame) -> None:
        self._line.heard_link_frames += 1
        copies = self._late.pop(frame).copies
        self.counts["duplicate"] += copies
        for _ in range(1 + copies):
            self._ingress.on_late(frame.control)

    def _hold(self, frame: Frame) -> None:
        engine = self._engine
        event: Event = (engine.now_ps + REORDER_LIMIT_PS, engine.tick(), self.overdue, frame)
        heappush(engine.queue, event)
        self._held[frame] = engine.now_ps, event

    def _pass_on(self, frame: Frame) -> None:
        """To the node, and behind it its copies, which took no time on the wire."""
        fate = self._fates.pop(frame, None)
        copies = [copy.copy(frame) for _ in range(fate.copies)] if fate is not None else ()
        self._node.receive(frame)
        for each in copies:
            self.counts["duplicate"] += 1
            self.copies += 1
            self.copied_bytes += each.wire_bytes
            if self._ingress.copy_in(each):
                self._node.receive(each)


def _spoil(frame: Frame, number: int) -> None:
    """Turn one bit of its payload or of what follows, so that its ICRC or VCRC is wrong."""
    data = bytearray(frame.data if frame.data is not None else frame.envelope.framing.encode(frame))
    place, bit = divmod(number % (8 * (len(frame.payload) + ICRC_BYTES)), 8)
    data[-1 - place] ^= 1 << bit
    frame.data = bytes(data)
    frame.bad = True


def _nothing(_: object) -> None:
    """What is left of an event that must not happen."""
