"""The memory wire: nothing crosses it, the frame object is handed over."""

from __future__ import annotations

from collections.abc import Callable

from emu.frame import Frame


class MemoryWire:
    """One direction of one link that loses nothing, changes nothing and makes no system call."""

    __slots__ = ("disturbed", "foreign", "in_flight", "lost", "name", "on_foreign", "warnings")

    def __init__(self, name: str) -> None:
        self.name = name
        self.foreign = 0
        self.in_flight: tuple[Frame, ...] = ()  # what is sent is there
        self.lost = 0
        self.disturbed = False
        self.warnings: list[str] = []
        self.on_foreign: Callable[[Frame], object] | None = None  # never called

    def send(self, frame: Frame) -> bool:
        """Always taken; the frame's bytes are not even made."""
        return True

    def receive(self, frame: Frame) -> Frame:
        """The frame itself."""
        return frame

    def poll(self) -> None:
        """Nobody else can reach it."""

    def finish(self) -> None:
        """Nothing is left on a wire of this kind."""
