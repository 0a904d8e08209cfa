"""InfiniBand's credits at one end of a link: what came in here and may come, what may leave here, and the FCPs between.

The counts of what came in advance as the node acts on a frame, one hop latency after its first bit (a NIC: at its last
bit), and so do the peer's counts in FCPs. No limit that leaves here is another by that, as no window is wider than 2048
blocks; only a peer that holds less than the largest frame's cost is told that much later (docs/timing.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappush
from typing import Any

from emu.devices.ingress import Beside, Forwarder, Ingress
from emu.devices.port import Port
from emu.devices.starvation import Starvation
from emu.engine import URGENT, Engine, Timer
from emu.frame import ControlFrame, Frame
from emu.framing.control import FCP_INITIALISE, FCP_NORMAL, Fcp, control_frame
from emu.linklayer.credits import (
    BLOCK_BYTES,
    CreditConfig,
    CreditReceiver,
    CreditSender,
    check_credits,
)

_MASK = 0xFFF
_WINDOW = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditLink:
    """What both ends of a link with credits have in common."""

    config: CreditConfig
    vls: int
    framing_overhead_bytes: int  # of a frame's wire bytes, what is not LRH to VCRC
    refresh_ps: int | None  # after so long an FCP leaves anyway; None: never
    fcp_wire_bytes: int


class LinkCredits(Ingress):
    """One end: for each VL a sender, for what leaves by the port beside, and a receiver, for what comes in."""

    __slots__ = (
        "_act_later_ps",
        "_counted",
        "_is_silent",
        "_last_fcp_ps",
        "_link",
        "_lost",
        "_mac",
        "_receive",
        "_receive_ps",
        "_refresh",
        "_round_up",
        "_sent",
        "_starvation",
        "_stranger",
        "_switch",
        "has_lost",
        "peer",
        "receivers",
        "senders",
    )

    grants_credits = True

    def __init__(self, engine: Engine, number: int, port: Beside, link: CreditLink, mac: int) -> None:
        super().__init__(engine, number, port)
        self._link = link
        self._mac = mac
        self._round_up = BLOCK_BYTES - 1 - link.framing_overhead_bytes
        self._is_silent = [False] * link.vls  # whether the last FCP of a VL was lost
        self._last_fcp_ps = 0
        self._refresh = Timer(engine, self._on_refresh)
        self._sent = [0] * link.vls  # blocks, for the books
        self._lost = [0] * link.vls  # of them, on the link
        self._counted = [0] * link.vls  # blocks that came in
        self._stranger = Ingress(engine, number, port)  # where frames come in that are not counted
        self._switch: Forwarder | None = None
        self._receive: Callable[[Frame], object] = self.release  # never called before `end_at`
        self._receive_ps = 0
        self._starvation: Starvation | None = None  # once something was lost that leaves here, or that would let it go
        self._act_later_ps = 0  # from an FCP's last bit in until what it says of what left before it is held true
        self.has_lost = False  # whether the peer may not have been told yet of frames that were lost
        self.peer: LinkCredits | None = None
        self.senders = tuple(CreditSender() for _ in range(link.vls))
        self.receivers = tuple(CreditReceiver(link.config) for _ in range(link.vls))

    def lead_to(self, switch: Forwarder, hop_latency_ps: int) -> None:
        """This end is a switch's, which counts a frame as it acts on it."""
        self._switch, self._act_later_ps = switch, hop_latency_ps

    def end_at(self, receive: Callable[[Frame], object], receive_ps: int) -> None:
        """This end is a NIC's, which counts a frame at its last bit and takes it `receive_ps` later."""
        self._receive, self._receive_ps = receive, receive_ps

    def initialise(self) -> None:
        """The link comes up: an FCP for each VL, before the clock starts."""
        for vl in range(self._link.vls):
            self.port.credit_frames += 1
            self.port.hand_over(self._fcp(vl, FCP_INITIALISE), 0)

    def blocks_of(self, frame: Frame) -> int:
        """What a frame costs."""
        return frame.wire_bytes + self._round_up >> 6

    def may_start(self, frame: Frame) -> bool:
        sender = self.senders[frame.envelope.lane]
        return sender.fccl - sender.fctbs - (frame.wire_bytes + self._round_up >> 6) & _MASK <= _WINDOW

    def started(self, frame: Frame) -> None:
        vl = frame.envelope.lane
        blocks = frame.wire_bytes + self._round_up >> 6
        sender = self.senders[vl]
        sender.fctbs = sender.fctbs + blocks & _MASK
        self._sent[vl] += blocks

    def arrive(self, frame: Frame) -> None:
        """A frame comes out of the switch's pipeline."""
        self._count_in(frame)
        if self._switch is not None:
            self._switch.receive(frame)

    def take(self, frame: Frame) -> None:
        """The last bit of a frame is in at the NIC, which sinks all that comes: it leaves the buffer at once."""
        self._count_in(frame)
        self.release(frame)
        engine = self._engine
        heappush(engine.queue, (engine.now_ps + self._receive_ps, engine.tick(), self._receive, frame))

    def _count_in(self, frame: Frame) -> None:
        vl = frame.envelope.lane
        blocks = frame.wire_bytes + self._round_up >> 6
        self._counted[vl] += blocks
        if self.receivers[vl].first_bit_in(blocks):
            self._ask(vl)

    def take_in(self, frame: Frame, deliver: Callable[[Frame], object]) -> None:
        """A stranger's frame, that nobody granted credit, takes no room: the counts of both ends are not of it."""
        frame.ingress = self._stranger
        if self._switch is not None:
            self._switch.receive(frame)
        else:
            self._receive(frame)

    def release(self, frame: Frame) -> None:
        vl = frame.envelope.lane
        if self.receivers[vl].last_bit_out(frame.wire_bytes + self._round_up >> 6):
            self._ask(vl)
        elif not self._refresh.running:
            self._start_refresh()

    def lost(self, frame: Frame) -> None:
        if isinstance(frame, ControlFrame):
            vl = frame.control.vl
            self._is_silent[vl] = True
            if self.peer is not None and not self.peer._look_out().lost(vl):
                return
        else:
            self._lost[frame.envelope.lane] += self.blocks_of(frame)
            self.has_lost = True
            self._look_out()
        self._start_refresh()

    def control_frame(self) -> ControlFrame:
        vl = (self.due & -self.due).bit_length() - 1
        self._count_idle_refreshes()
        self._last_fcp_ps = self._engine.now_ps
        self.port.credit_frames += 1
        return self._fcp(vl, FCP_NORMAL)

    def on_control(self, control: Any) -> None:
        if not isinstance(control, Fcp) or control.op > FCP_INITIALISE or control.vl >= self._link.vls:
            return
        moved = self.senders[control.vl].on_fcp(control.fccl)
        self.check(control.vl)
        if self._starvation is not None:
            self._starvation.heard(control.vl)
        if self.peer is not None and self.peer.has_lost:
            self.on_counts(control)
        if moved:
            self.port.recheck()

    def on_counts(self, control: Any) -> None:
        if isinstance(control, Fcp) and self.peer is not None and self.peer.has_lost:
            # Counts of what left must meet the counts of what came in at the same instant, before what left later.
            when_ps = self._engine.now_ps + self._act_later_ps
            heappush(self._engine.queue, (when_ps, self._engine.tick() + URGENT, self._heal, control))

    def on_late(self, control: Any) -> None:
        if isinstance(control, Fcp):
            if self._starvation is not None:
                self._starvation.heard(control.vl)
            if self.senders[control.vl].on_fcp(control.fccl):
                self.check(control.vl)
                self.port.recheck()

    def interpose(self, between: Forwarder) -> bool:
        if self._switch is not None:
            self._switch = between
        else:
            self._receive = between.receive
        return True

    def copy_in(self, frame: Frame) -> bool:
        """It takes no room: the counts of both ends are not of it."""
        frame.ingress = self._stranger
        return True

    def check(self, vl: int) -> None:
        """Hold the books of both ends against each other, for what leaves here. Raises InvariantBroken."""
        if self.peer is not None:
            on_wire = self._sent[vl] - self._lost[vl] - self.peer._counted[vl]
            check_credits(self.senders[vl], self.peer.receivers[vl], on_wire, self._lost[vl])

    def available_blocks(self, vl: int) -> int:
        """What may still leave here on a VL."""
        return self.senders[vl].available_blocks

    def settle(self) -> None:
        """The run is over: count the refreshes up to now that nobody saw, and check the books."""
        self._count_idle_refreshes()
        for vl in range(self._link.vls):
            self.check(vl)

    def _fcp(self, vl: int, op: int) -> ControlFrame:
        self.due &= ~(1 << vl)
        self._is_silent[vl] = False
        fccl = self.receivers[vl].fcp_out()
        fctbs = self.senders[vl].fctbs
        return control_frame(Fcp(op, vl, fctbs, fccl, self._mac, self._link.fcp_wire_bytes))

    def _ask(self, vl: int) -> None:
        self.due |= 1 << vl
        self.port.kick()

    def _heal(self, fcp: Fcp) -> None:
        """Take the peer's count: what was lost on the way is granted again."""
        if self.receivers[fcp.vl].on_fcp(fcp.fctbs):
            self._ask(fcp.vl)
        elif self.receivers[fcp.vl].has_news:
            self._start_refresh()

    def _start_refresh(self) -> None:
        """An FCP leaves at the next regular moment, since it would tell something new."""
        refresh_ps = self._link.refresh_ps
        if refresh_ps is not None:
            since_ps = self._engine.now_ps - self._last_fcp_ps
            self._refresh.start(self._last_fcp_ps + (since_ps // refresh_ps + 1) * refresh_ps)

    def _on_refresh(self) -> None:
        for vl, receiver in enumerate(self.receivers):
            if receiver.has_news or self._is_silent[vl] or self.has_lost:
                self.due |= 1 << vl
        self.has_lost = any(self._unhealed(vl) for vl in range(self._link.vls))
        if self.due:
            self.port.kick()

    def _look_out(self) -> Starvation:
        """Something was lost, so that what waits here may wait in vain."""
        if self._starvation is None:
            port, peer = self.port, self.peer
            assert isinstance(port, Port)
            largest_ps = port.serialization_ps(
                self._link.config.mtu_blocks * BLOCK_BYTES + self._link.framing_overhead_bytes
            )
            self._starvation = Starvation(
                self._engine,
                port,
                self._link.vls,
                refresh_ps=self._link.refresh_ps,
                flight_ps=2 * (port.propagation_ps + largest_ps + (peer._act_later_ps if peer is not None else 0)),
                unhealed=self._unhealed,
                tell=self._tell,
            )
        return self._starvation

    def _tell(self) -> None:
        for end in (self, self.peer):
            if end is not None and (end.has_lost or any(end._is_silent)):
                end._start_refresh()

    def _unhealed(self, vl: int) -> int:
        return self._lost[vl] - (self.peer.receivers[vl].healed_blocks if self.peer is not None else 0)

    def _count_idle_refreshes(self) -> None:
        """Refreshes that would have changed nothing were not simulated; they are counted."""
        if self._link.refresh_ps is not None:
            idle = (self._engine.now_ps - self._last_fcp_ps - 1) // self._link.refresh_ps
            self.port.credit_frames += max(0, idle) * self._link.vls
