"""Priority flow control at one end of a link: what came in and when to pause the peer; whom the peer paused.

IEEE 802.1Qbb; an 802.3x PAUSE pauses all priorities. A frame is admitted as its first bit comes in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappush
from typing import Any

from emu.devices.ingress import Beside, Forwarder, Ingress
from emu.engine import Engine, Timer
from emu.frame import ControlFrame, Frame
from emu.framing.control import PRIORITIES, Pause, Pfc, control_frame
from emu.linklayer.pause import PauseConfig, PauseSchedule, PauseTimer
from emu.linklayer.pfc import IngressAccount, Signal


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseLink:
    """How one end of a link pauses and is paused. Times in picoseconds."""

    config: PauseConfig
    overhead_bytes: int  # of a frame's wire bytes, what no buffer holds: preamble and gap
    response_ps: int = 0
    resume_ps: int = 0


class LinkPauses(Ingress):
    """One end. A NIC has no accounts: it takes in all that comes and pauses nobody, unless it storms."""

    __slots__ = (
        "_expiry",
        "_hop_latency_ps",
        "_mac",
        "_overhead_bytes",
        "_refresh",
        "_stores",
        "_storms",
        "_switch",
        "accounts",
        "first_pause_ps",
        "on_paused",
        "schedule",
        "timers",
    )

    def __init__(self, engine: Engine, number: int, port: Beside, link: PauseLink, mac: int) -> None:
        super().__init__(engine, number, port)
        self._mac = mac
        self._overhead_bytes = link.overhead_bytes
        self._switch: Forwarder | None = None
        self._hop_latency_ps = 0
        self._stores = False
        self._storms: dict[int, int] = {}  # until when the peer's priorities are paused for nothing
        self._refresh = Timer(engine, self._on_refresh)
        self._expiry = Timer(engine, self._on_expiry)
        self.accounts: tuple[IngressAccount, ...] = ()  # by priority
        self.first_pause_ps = -1  # when the peer was first paused
        self.on_paused: Callable[[], object] | None = None  # whenever a pause of ours begins, ends or goes on
        self.schedule = PauseSchedule(link.config)
        self.timers = tuple(
            PauseTimer(port.rate_bps, response_ps=link.response_ps, resume_ps=link.resume_ps) for _ in range(PRIORITIES)
        )

    def lead_to(
        self, switch: Forwarder, accounts: tuple[IngressAccount, ...], hop_latency_ps: int, *, stores: bool
    ) -> None:
        """This end is a switch's: what comes in is accounted for, and acted on after its hop latency."""
        self._switch, self.accounts = switch, accounts
        self._hop_latency_ps, self._stores = hop_latency_ps, stores

    def may_start(self, frame: Frame) -> bool:
        timer = self.timers[frame.envelope.priority]
        return not timer.from_ps <= self._engine.now_ps < timer.until_ps

    def arrive(self, frame: Frame) -> None:
        """The first bit of a frame is in."""
        engine = self._engine
        switch = self._switch
        signal = self.accounts[frame.envelope.priority].admit(frame.wire_bytes - self._overhead_bytes)
        if signal is not Signal.NONE and not self._heed(frame, signal):
            return
        if switch is not None:
            when_ps = engine.now_ps + self._hop_latency_ps + (frame.ser_ps if self._stores else 0)
            heappush(engine.queue, (when_ps, engine.tick(), switch.receive, frame))

    def interpose(self, between: Forwarder) -> bool:
        if self._switch is None:
            return False
        self._switch = between
        return True

    def copy_in(self, frame: Frame) -> bool:
        """It takes room, and is refused where there is none."""
        if not self.accounts:
            return True
        signal = self.accounts[frame.envelope.priority].admit(frame.wire_bytes - self._overhead_bytes)
        return signal is Signal.NONE or self._heed(frame, signal)

    def _heed(self, frame: Frame, signal: Signal) -> bool:
        """An account had something to say of a frame; returns whether it is held."""
        priority = frame.envelope.priority
        if signal is not Signal.DROP:
            self.want(priority, paused=True)
        if signal is Signal.XOFF:
            return True
        if self._switch is not None:
            account = self.accounts[priority]
            self._switch.refuse(frame, lossless=account.is_lossless, place=account.name)
        return False

    def release(self, frame: Frame) -> None:
        priority = frame.envelope.priority
        if self.accounts[priority].release(frame.wire_bytes - self._overhead_bytes) is Signal.XON:
            self.want(priority, paused=False)

    def want(self, priority: int, *, paused: bool) -> None:
        """Pause the peer's priority, or let it go on, as soon as a frame can leave."""
        self.due = self.schedule.want(priority, paused)
        if self.due:
            self.port.kick()

    def storm(self, priority: int, duration_ps: int) -> None:
        """Pause the peer's priority from now on, for so long and for nothing; storms that overlap are one."""
        engine = self._engine
        end_ps = self._storms[priority] = max(engine.now_ps + duration_ps, self._storms.get(priority, 0))
        self.want(priority, paused=True)
        engine.at(end_ps, lambda _: self.want(priority, paused=self._storms[priority] > engine.now_ps))

    def control_frame(self) -> ControlFrame:
        named, quanta = self.schedule.frame_out(self._engine.now_ps)
        self.due = self.schedule.is_due
        if self.schedule.deadline_ps < 0:
            self._refresh.stop()
        else:
            self._refresh.start(self.schedule.deadline_ps)
        self.port.pause_frames += 1
        if self.first_pause_ps < 0:
            self.first_pause_ps = self._engine.now_ps
        return control_frame(Pfc(self._mac, named, quanta))

    def on_control(self, control: Any) -> None:
        now_ps = self._engine.now_ps
        if isinstance(control, Pfc):
            for priority, timer in enumerate(self.timers):
                if control.enabled >> priority & 1:
                    timer.on_quanta(control.quanta[priority], now_ps)
        elif isinstance(control, Pause):
            for timer in self.timers:
                timer.on_quanta(control.quanta, now_ps)
        self._await_expiry()
        self._tell()

    def on_stranger(self, control: Any) -> None:
        self.on_control(control)

    def is_paused(self, priority: int, now_ps: int) -> bool:
        """Whether the peer keeps a priority from starting frames."""
        return not self.timers[priority].may_start(now_ps)

    def paused_ps(self) -> int:
        return sum(timer.paused_ps(self._engine.now_ps) for timer in self.timers)

    def _await_expiry(self) -> None:
        now_ps = self._engine.now_ps
        ends = [timer.until_ps for timer in self.timers if timer.until_ps > now_ps]
        if ends:
            self._expiry.start(min(ends))
        else:
            self._expiry.stop()

    def _on_expiry(self) -> None:
        self._await_expiry()
        self._tell()

    def _tell(self) -> None:
        if self.on_paused is not None:
            self.on_paused()
        self.port.recheck()

    def _on_refresh(self) -> None:
        self.due = self.schedule.on_deadline(self._engine.now_ps)
        if self.due:
            self.port.kick()
