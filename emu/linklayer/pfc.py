"""Priority flow control at one ingress: counts the bytes held for one (port, priority), says when to pause its peer.

IEEE 802.1Qbb. A frame goes into reserved memory while there is some, then into shared memory up to a threshold, then
into headroom; the first one in headroom asks for the pause. What leaves, leaves headroom first.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from emu.errors import InvariantBroken, ScenarioError
from emu.linklayer.buffer import SwitchMemory


class Signal(Enum):
    """What one frame's coming or going means for the peer."""

    NONE = "none"
    XOFF = "xoff"  # the frame was taken; pause the peer
    XON = "xon"  # let the peer go on
    DROP = "drop"  # no room: the frame was not taken
    XOFF_AND_DROP = "xoff and drop"  # both: there is not headroom enough for one frame


_NONE, _XOFF, _XON, _DROP, _BOTH = Signal.NONE, Signal.XOFF, Signal.XON, Signal.DROP, Signal.XOFF_AND_DROP


@dataclass(frozen=True, slots=True, kw_only=True)
class IngressConfig:
    """Thresholds of one (ingress port, priority).

    It may take shared memory up to `xoff_bytes`, and up to `alpha` times what is free of it. Paused, it goes on when
    headroom is empty and it holds `xoff_bytes - xon_bytes` less than that limit. Without `lossless` nothing pauses.
    """

    alpha: Fraction
    xoff_bytes: int
    xon_bytes: int
    reserved_bytes: int = 0
    headroom_bytes: int = 0
    lossless: bool = True

    def __post_init__(self) -> None:
        if self.alpha <= 0:
            raise ScenarioError(f"alpha is {self.alpha}: a queue may take nothing; above 0, like 1/8")
        if self.xon_bytes > self.xoff_bytes:
            raise ScenarioError(f"XON at {self.xon_bytes} bytes lies above XOFF at {self.xoff_bytes}")
        for what, value in (("XON", self.xon_bytes), ("reserved", self.reserved_bytes)):
            if value < 0:
                raise ScenarioError(f"{what}: {value} bytes; at least 0")
        if self.headroom_bytes < 0 or (self.headroom_bytes and not self.lossless):
            raise ScenarioError(f"headroom of {self.headroom_bytes} bytes: at least 0, and 0 for a lossy priority")


class IngressAccount:
    """The books of one (ingress port, priority). A frame counts from its first bit in to its last bit out."""

    __slots__ = (
        "_alpha_den",
        "_alpha_num",
        "_headroom",
        "_hysteresis",
        "_lossless",
        "_memory",
        "_reserved",
        "_xoff",
        "dropped_bytes",
        "dropped_frames",
        "headroom_held_bytes",
        "main_held_bytes",
        "max_headroom_bytes",
        "name",
        "paused",
    )

    def __init__(self, name: str, config: IngressConfig, memory: SwitchMemory) -> None:
        memory.set_aside(config.reserved_bytes + config.headroom_bytes, name)
        self.name = name
        self._memory = memory
        self._reserved = config.reserved_bytes
        self._headroom = config.headroom_bytes
        self._xoff = config.xoff_bytes
        self._hysteresis = config.xoff_bytes - config.xon_bytes
        self._alpha_num, self._alpha_den = config.alpha.as_integer_ratio()
        self._lossless = config.lossless
        self.main_held_bytes = 0  # in reserved and shared memory
        self.headroom_held_bytes = 0
        self.max_headroom_bytes = 0  # the most that headroom ever held
        self.paused = False  # what the peer should be
        self.dropped_frames = 0
        self.dropped_bytes = 0

    @property
    def is_lossless(self) -> bool:
        """Whether it pauses its peer, and should never drop."""
        return self._lossless

    @property
    def held_bytes(self) -> int:
        """All that is held for this port and priority."""
        return self.main_held_bytes + self.headroom_held_bytes

    @property
    def shared_held_bytes(self) -> int:
        """Of it, in shared memory."""
        return max(0, self.main_held_bytes - self._reserved)

    @property
    def set_aside_bytes(self) -> int:
        """Memory that is this account's alone."""
        return self._reserved + self._headroom

    def admit(self, size_bytes: int) -> Signal:
        """The first bit of a frame is in: NONE or XOFF, the frame is held; DROP or XOFF_AND_DROP, it is not."""
        held = self.main_held_bytes + size_bytes
        shared = held - self._reserved
        if shared <= 0:
            self.main_held_bytes = held
            return _NONE
        memory = self._memory
        free = memory.shared_bytes - memory.used_bytes
        taken = shared if shared < size_bytes else size_bytes
        if taken <= free and shared <= self._xoff and shared * self._alpha_den <= free * self._alpha_num:
            self.main_held_bytes = held
            memory.used_bytes += taken
            return _NONE
        return self._beyond(size_bytes)

    def release(self, size_bytes: int) -> Signal:
        """The last bit of a frame is out: NONE, or XON."""
        if size_bytes > self.main_held_bytes + self.headroom_held_bytes:
            raise InvariantBroken(f"{self.name}: {size_bytes} bytes left an account that held {self.held_bytes}")
        headroom = self.headroom_held_bytes
        if headroom:
            from_headroom = size_bytes if size_bytes < headroom else headroom
            self.headroom_held_bytes = headroom - from_headroom
            size_bytes -= from_headroom
        held = self.main_held_bytes
        shared = held - self._reserved
        if shared > 0:
            self._memory.used_bytes -= size_bytes if size_bytes < shared else shared
        self.main_held_bytes = held - size_bytes
        if self.paused and self._may_resume():
            self.paused = False
            return _XON
        return _NONE

    def _beyond(self, size_bytes: int) -> Signal:
        """Over the threshold: into headroom, or nowhere."""
        held = self.headroom_held_bytes + size_bytes
        fits = held <= self._headroom
        # Nothing ever leaves an account that holds nothing, so nothing would ever end its pause.
        pause = self._lossless and not self.paused and (fits or self.held_bytes > 0)
        if pause:
            self.paused = True
        if not fits:
            self.dropped_frames += 1
            self.dropped_bytes += size_bytes
            return _BOTH if pause else _DROP
        self.headroom_held_bytes = held
        if held > self.max_headroom_bytes:
            self.max_headroom_bytes = held
        return _XOFF if pause else _NONE

    def _may_resume(self) -> bool:
        if self.headroom_held_bytes:
            return False
        shared = self.main_held_bytes - self._reserved
        if shared <= 0:
            return True
        shared += self._hysteresis
        memory = self._memory
        free = memory.shared_bytes - memory.used_bytes
        return shared <= self._xoff and shared * self._alpha_den <= free * self._alpha_num
