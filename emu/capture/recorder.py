"""Records what is sent on chosen links: when the first bit leaves, and the bytes, whatever becomes of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

from emu.capture import erf
from emu.capture.writer import InterfaceBlock, PcapngWriter
from emu.engine import Engine
from emu.errors import MachineError
from emu.frame import ControlFrame, Frame
from emu.framing.control import FCP_OFFSET
from emu.framing.dissect import ERF_INFINIBAND, ERF_INFINIBAND_LINK, LINK_ERF, LINK_ETHERNET
from emu.framing.native import LRH_OFFSET
from emu.pcie.tlp import Tlp
from emu.scenario.capture import EVERY_LINK
from emu.taps import Taps
from emu.topology import Link, reverse_name
from emu.units import NS

APPLICATION = "emu"
FCP_RECORD_BYTES = 66  # LRH, GRH, BTH, ICRC, VCRC: Wireshark 4.0 looks for all of them in a flow-control packet too


class Recorder:
    """Use with `with`; one pcapng file, an interface for each direction of the links, times rounded down to ns.

    Ethernet frames are as on the veth, without FCS. Native ones are ERF records of LRH to VCRC, or of a flow-control
    packet and padding, without what carries them over a veth. TLPs are Ethernet frames in either case.

    Raises ScenarioError, MachineError as PcapngWriter does, but not once a run has begun: a frame that finds no room
    ends the recording, not the run, and `failure` says why.
    """

    def __init__(self, path: Path, *, replace: bool = False) -> None:
        self._writer = PcapngWriter(path, replace=replace)
        self._interfaces: dict[str, int] = {}
        self._native = False
        self._engine: Engine | None = None
        self._ahead: list[tuple[int, int, int, Frame, bytes]] = []  # a heap, by time, of what leaves later than now
        self._tick = count().__next__
        self.path = path
        self.frames = 0
        self.failure: MachineError | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.finish()
        self._writer.close()

    def watch(
        self,
        taps: Taps,
        links: Iterable[Link],
        *,
        native: bool,
        title: str,
        inside: Sequence[InterfaceBlock] = (),
        engine: Engine | None = None,
    ) -> None:
        """Begin: from now on what leaves on these links, in either direction, is recorded.

        And on those `inside` hosts: what leaves there is told of ahead of its time, and `engine` says what time it is.
        """
        self._native, self._engine = native, engine
        blocks = [*_interface_blocks(links, LINK_ERF if native else LINK_ETHERNET), *inside]
        self._interfaces = {block.name: number for number, block in enumerate(blocks)}
        comment = f"{title}: virtual time from 0; lost and changed frames as they were sent"
        self._writer.begin(blocks, comment=comment, application=APPLICATION)
        before = taps.frame_sent

        def both(time_ps: int, direction: str, frame: Frame) -> None:
            if before is not None:
                before(time_ps, direction, frame)
            self.record(time_ps, direction, frame)

        taps.frame_sent = self.record if before is None else both

    def record(self, time_ps: int, direction: str, frame: Frame) -> None:
        """The frame's first bit leaves then, if its link is one of ours: now, or a TLP's later."""
        interface = self._interfaces.get(direction)
        if interface is None:
            return
        data = frame.data
        if data is None:  # nothing needed its bytes so far
            data = frame.data = frame.envelope.framing.encode(frame)
        now_ps = time_ps if self._engine is None else self._engine.now_ps
        if self._ahead:
            self._catch_up(now_ps)
        if time_ps > now_ps:
            heappush(self._ahead, (time_ps, self._tick(), interface, frame, data))
        else:
            self._write(interface, time_ps, frame, data)

    def finish(self) -> None:
        """The run is over: what was to leave later is written, too."""
        self._catch_up(max((time_ps for time_ps, *_ in self._ahead), default=0))

    def _catch_up(self, now_ps: int) -> None:
        ahead = self._ahead
        while ahead and ahead[0][0] <= now_ps:
            time_ps, _, interface, frame, data = heappop(ahead)
            self._write(interface, time_ps, frame, data)

    def _write(self, interface: int, time_ps: int, frame: Frame, data: bytes) -> None:
        if self.failure is not None:
            return
        try:
            self._put(interface, time_ps // NS, frame, data)
        except MachineError as error:
            self.failure = error
            self._interfaces = {}  # nothing more: what comes later would leave a gap
            self._ahead.clear()
            self._writer.close()  # at once, so that what is left of the room is not taken by half a frame
        else:
            self.frames += 1

    def _put(self, interface: int, time_ns: int, frame: Frame, data: bytes) -> None:
        if not self._native or isinstance(frame, Tlp):
            self._writer.write(interface, time_ns, b"", data)
            return
        if isinstance(frame, ControlFrame):
            kind, packet = ERF_INFINIBAND_LINK, memoryview(data[FCP_OFFSET:].ljust(FCP_RECORD_BYTES, b"\0"))
        else:
            kind, packet = ERF_INFINIBAND, memoryview(data)[LRH_OFFSET:]
        self._writer.write(interface, time_ns, erf.header(time_ns, kind, len(packet), len(packet)), packet)


def chosen(links: Iterable[Link], names: str | Collection[str]) -> list[Link]:
    """The links that are named by either direction; all of them for `all` or nothing."""
    if not names or names == EVERY_LINK:
        return list(links)
    return [link for link in links if link.name in names or reverse_name(link) in names]


def _interface_blocks(links: Iterable[Link], link_type: int) -> Iterator[InterfaceBlock]:
    for link in links:
        for name, here, there in ((link.name, link.a, link.b), (reverse_name(link), link.b, link.a)):
            yield InterfaceBlock(name, f"{here.interface} to {there.interface}", link_type, link.rate_bps)
